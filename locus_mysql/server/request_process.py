"""`work`: the main function of a request process, which carries out requests one after the other.

When the socket to the service is closed, because no client waits for the answer any more or because the service has
ended, the process ends its running statement, and then itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import State

from .callers import Caller
from .frames import Ended, receive, receive_header, send

if TYPE_CHECKING:
    from .application import Application

#: Seconds that ending an abandoned request may take, including its statement.
END_S = 2.0

#: The increase of its nice value, so that the service itself gets the processors first.
NICE = 5

#: Its out-of-memory score, so that Linux kills it before other processes.
OOM_SCORE = "500"

#: Memory of the process beside a request's, in bytes.
_BASE_BYTES = 256 * 1024 * 1024


class SignedIn:
    """A sign-in, with the fields that pages show.

    Args:
        nonce: Identifies the sign-in.
    """

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce


def work(app: Application, sock: socket.socket) -> None:
    """Carry out requests from the socket until it is closed."""
    _be_modest(app.dispatcher.limits.process_bytes)
    sock.setblocking(False)
    with contextlib.suppress(Ended, OSError):
        asyncio.run(_serve(app, sock))


def _be_modest(most_bytes: int) -> None:
    with contextlib.suppress(OSError):
        os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes + _BASE_BYTES, hard))


async def _serve(app: Application, sock: socket.socket) -> None:
    await send(sock, {"pid": os.getpid()})
    try:
        while True:
            header, size = await receive_header(sock)
            body = bytes(await receive(sock, size))
            if not await _answer_one(app, sock, header, body):
                return
            del header, body
    finally:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(END_S):
                await app.state.services.database.aclose()
        os._exit(0)  # without waiting for threads, which cannot be ended


async def _answer_one(app: Application, sock: socket.socket, header: dict[str, Any], body: bytes) -> bool:
    """Answer a request; return whether the process may take another."""
    answering = asyncio.create_task(app.dispatcher.answer_in_subprocess(scope_of(app, header), body))
    gone = asyncio.create_task(_closed(sock))
    await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
    if not answering.done():
        answering.cancel()
        await asyncio.wait({answering}, timeout=END_S / 2)
        return False
    gone.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await gone
    try:
        response = answering.result()
        headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in response.raw_headers]
        await send(sock, {"status": response.status_code, "headers": headers}, response.body)
    except MemoryError:
        await send(sock, {"failed": "memory"})
        return False
    return True


async def _closed(sock: socket.socket) -> None:
    """Wait until the other end is closed. Nothing else arrives while a request is carried out."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def end() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(sock, end)
    try:
        await readable
    finally:
        loop.remove_reader(sock)


def header_of(scope: Any) -> dict[str, Any]:
    """Return the fields of a request that a request process needs, without the secrets in its headers."""
    state = State(scope["state"])
    caller: Caller = state.caller
    signed_in = getattr(state, "signed_in", None)
    return {
        "method": scope["method"],
        "path": scope["path"],
        "raw_path": None if scope.get("raw_path") is None else scope["raw_path"].decode("latin-1"),
        "query_string": scope.get("query_string", b"").decode("latin-1"),
        "root_path": scope.get("root_path", ""),
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")]
            for name, value in scope["headers"]
            if name not in {b"authorization", b"cookie"}
        ],
        "request_id": state.request_id,
        "caller": [caller.name, caller.tenant, caller.may_write],
        "signed_in": None if signed_in is None else signed_in.nonce,
        "form_secret": getattr(state, "form_secret", ""),
        "zone": getattr(state, "zone", ""),
    }


def scope_of(app: Application, header: dict[str, Any]) -> dict[str, Any]:
    """Return the ASGI scope of a request from the result of `header_of`."""
    state: dict[str, Any] = {
        "request_id": header["request_id"],
        "caller": Caller(*header["caller"]),
        "form_secret": header["form_secret"],
        "zone": header["zone"],
    }
    if header["signed_in"] is not None:
        state["signed_in"] = SignedIn(header["signed_in"])
    raw_path = header["raw_path"]
    return {
        "type": "http",
        "app": app,
        "method": header["method"],
        "path": header["path"],
        "raw_path": None if raw_path is None else raw_path.encode("latin-1"),
        "query_string": header["query_string"].encode("latin-1"),
        "root_path": header["root_path"],
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in header["headers"]],
        "state": state,
    }
