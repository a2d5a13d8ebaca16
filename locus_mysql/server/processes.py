"""Requests that may take long are carried out in processes of their own: `Processes`.

Python's lock lets one thread of a process run at a time, and a single call can hold it for a second: parsing a large
body, decoding a large state. So what may be large leaves the process whose event loop all tenants share, as a whole,
and that one only hands bytes on. A request process carries out one request at a time; when nobody waits for the answer
any more, it ends the statement that runs for it, or is killed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .fork_server import ForkServer
from .frames import Ended, receive, receive_header, send
from .problems import Problem, try_later
from .quotas import Places
from .request_process import END_S, header_of

#: A request process was killed, or could not be begun: WARNING.
PROCESSES = logging.getLogger("locus_mysql.service")

#: How long a process is kept that nobody needs, in seconds.
IDLE_S = 60.0

#: How long a new process may take to begin, in seconds.
BEGIN_S = 10.0

#: How long a process that nobody waits for has to end by itself, in seconds; then it is killed.
GRACE_S = END_S + 0.5


@dataclass(slots=True)
class _Process:
    """A request process.

    Args:
        pid: Its number.
        socket: Leads to it.
        tenant: For whom it worked last.
        idle_since: Since when it has had nothing to do, by the event loop's clock.
    """

    pid: int
    socket: socket.socket
    tenant: Hashable
    idle_since: float = 0.0


class Processes:
    """The request processes of a service.

    Args:
        fork_server: Forks them.
        count: How many there may be at once.
    """

    def __init__(self, fork_server: ForkServer, count: int) -> None:
        self._fork_server = fork_server
        self.places = Places(count)
        self._idle: list[_Process] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def run(self, request: Request, body: bytes, tenant: Hashable, hold: Callable[[int], None]) -> Response:
        """Carry a request out; waits until the tenant may have a process for it.

        Args:
            request: The request.
            body: Its body.
            tenant: Whose it is.
            hold: Given the size of the answer before that is taken in; raises `Problem` if there is no place for it.

        Raises:
            Problem: The process died, or could not be begun; or there is no place for the answer.
        """
        await self.places.enter(tenant)
        try:
            process = await self._process_for(tenant)
        except BaseException:
            self.places.leave(tenant)
            raise
        try:
            response = await self._ask(process, header_of(request.scope), body, hold)
        except Ended:
            self._drop(process)
            self.places.leave(tenant)
            PROCESSES.warning("Request process %d died; its request was answered 503.", process.pid)
            raise try_later(
                "process_died",
                "The process that carried out this request died, perhaps because it needed too much memory. A write "
                "may have been carried out. Ask for less, or repeat the request.",
            ) from None
        except BaseException:
            self._abandon(process, tenant)
            raise
        self._keep(process, tenant)
        self.places.leave(tenant)
        return response

    async def close(self) -> None:
        """End all processes."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for process in self._idle:
            process.socket.close()
        self._idle.clear()
        if self._ending:
            await asyncio.wait(self._ending, timeout=GRACE_S)
        await self._fork_server.close()

    async def _ask(
        self, process: _Process, header: dict[str, Any], body: bytes, hold: Callable[[int], None]
    ) -> Response:
        with suppress(ConnectionError):  # then it has died, which its answer tells
            await send(process.socket, header, body)
        told, size = await receive_header(process.socket)
        if told.get("failed") == "memory":
            raise Problem(
                400, "answer_too_large", "Carrying this out needs more memory than a request may have. Ask for less."
            )
        hold(size)
        answer = await receive(process.socket, size)
        response = Response(bytes(answer) if size < 65_536 else answer, told["status"])
        response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told["headers"]]
        return response

    async def _process_for(self, tenant: Hashable) -> _Process:
        """The process that worked for the tenant last, as it remembers the tenant's threads; or any; or a new one."""
        while self._idle:
            process = next((one for one in reversed(self._idle) if one.tenant == tenant), self._idle[0])
            self._idle.remove(process)
            if not _is_dead(process.socket):
                return process
            self._drop(process)
        return await self._begin(tenant)

    async def _begin(self, tenant: Hashable) -> _Process:
        leading = None
        try:
            leading = self._fork_server.fork()
            async with asyncio.timeout(BEGIN_S):
                told, _ = await receive_header(leading)
        except (OSError, Ended, TimeoutError) as error:
            if leading is not None:
                leading.close()
            PROCESSES.warning("A request process could not be begun: %s.", type(error).__name__)
            raise try_later("busy", "The service cannot begin a process for this request. Try again.") from None
        except BaseException:
            if leading is not None:
                leading.close()
            raise
        return _Process(told["pid"], leading, tenant)

    def _keep(self, process: _Process, tenant: Hashable) -> None:
        if self._closed:
            process.socket.close()
            return
        loop = asyncio.get_running_loop()
        process.tenant, process.idle_since = tenant, loop.time()
        self._idle.append(process)
        if self._timer is None:
            self._timer = loop.call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time() - IDLE_S
        for process in [one for one in self._idle if one.idle_since <= since]:
            self._idle.remove(process)
            process.socket.close()
        self._timer = loop.call_later(IDLE_S / 2, self._end_idle) if self._idle else None

    def _drop(self, process: _Process) -> None:
        """End a process that is dead or must not go on."""
        process.socket.close()
        self._fork_server.kill(process.pid)

    def _abandon(self, process: _Process, tenant: Hashable) -> None:
        """End a process whose answer nobody waits for. Its place is free when it is gone."""
        ending = asyncio.get_running_loop().create_task(self._end(process, tenant))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, process: _Process, tenant: Hashable) -> None:
        try:
            with suppress(OSError):
                process.socket.shutdown(socket.SHUT_WR)
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(GRACE_S):
                    loop = asyncio.get_running_loop()
                    while await loop.sock_recv(process.socket, 1 << 20):  # what was on its way, then the end
                        pass
        finally:
            self._drop(process)
            self.places.leave(tenant)


def _is_dead(leading: socket.socket) -> bool:
    """Whether an idle process has ended: it sends nothing by itself."""
    try:
        return leading.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
