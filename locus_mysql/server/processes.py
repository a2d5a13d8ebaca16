"""`Processes`: request processes, which carry out requests that may take long.

Python's global lock lets one thread of a process run at a time, and a single call can hold it for a second: parsing a
large body, decoding a large state. So the process whose event loop all tenants share only passes bytes on, and another
process carries out each request that may be large. A request process handles one request at a time. When no client
waits for the answer any more, it ends the request's running statement, or is killed.
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
from .quotas import FairSemaphore
from .request_process import END_S, header_of

#: WARNING: a request process was killed, or could not be started.
PROCESSES = logging.getLogger("locus_mysql.service")

#: Seconds for which an idle process is kept.
IDLE_S = 60.0

#: Seconds that a new process may take to start.
BEGIN_S = 10.0

#: Seconds after which an abandoned process is killed if it has not ended.
GRACE_S = END_S + 0.5


@dataclass(slots=True)
class _Process:
    """A request process.

    Args:
        pid: Its process id.
        socket: The connection to it.
        tenant: The tenant of its last request.
        idle_since: When its last request ended, by the event loop's clock.
    """

    pid: int
    socket: socket.socket
    tenant: Hashable
    idle_since: float = 0.0


class Processes:
    """The request processes of a service.

    Args:
        fork_server: Forks them.
        count: The largest number of processes at once.
    """

    def __init__(self, fork_server: ForkServer, count: int) -> None:
        self._fork_server = fork_server
        self.semaphore = FairSemaphore(count)
        self._idle: list[_Process] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def run(self, request: Request, body: bytes, tenant: Hashable, hold: Callable[[int], None]) -> Response:
        """Carry out a request; waits until the tenant may have a process for it.

        Args:
            request: The request.
            body: Its body.
            tenant: The tenant of the caller.
            hold: Called with the size of the answer before it is received; raises `Problem` if the quota is used up.

        Raises:
            Problem: The process died or could not be started, or the answer exceeds the quota.
        """
        await self.semaphore.enter(tenant)
        try:
            process = await self._process_for(tenant)
        except BaseException:
            self.semaphore.leave(tenant)
            raise
        try:
            response = await self._ask(process, header_of(request.scope), body, hold)
        except Ended:
            self._drop(process)
            self.semaphore.leave(tenant)
            PROCESSES.warning("Request process %d died; its request was answered 503.", process.pid)
            raise try_later(
                "process_died",
                "The process that carried out this request died, perhaps because it needed too much memory. A write "
                "may have been carried out. Request less, or repeat the request.",
            ) from None
        except BaseException:
            self._abandon(process, tenant)
            raise
        self._keep(process, tenant)
        self.semaphore.leave(tenant)
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
        with suppress(ConnectionError):  # receiving the answer reports that the process died
            await send(process.socket, header, body)
        header, size = await receive_header(process.socket)
        if header.get("failed") == "memory":
            raise Problem(
                400, "answer_too_large", "The request needs more memory than one request may use. Request less."
            )
        hold(size)
        answer = await receive(process.socket, size)
        response = Response(bytes(answer) if size < 65_536 else answer, header["status"])
        response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in header["headers"]]
        return response

    async def _process_for(self, tenant: Hashable) -> _Process:
        """Return the last process of the tenant, whose caches hold the tenant's threads; else any idle or a new one."""
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
                header, _ = await receive_header(leading)
        except (OSError, Ended, TimeoutError) as error:
            if leading is not None:
                leading.close()
            PROCESSES.warning("A request process could not be started: %s.", type(error).__name__)
            raise try_later("busy", "The service cannot start a process for this request. Try again.") from None
        except BaseException:
            if leading is not None:
                leading.close()
            raise
        return _Process(header["pid"], leading, tenant)

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
        """Close the connection to a process and kill it."""
        process.socket.close()
        self._fork_server.kill(process.pid)

    def _abandon(self, process: _Process, tenant: Hashable) -> None:
        """End a process whose client has left. Its slot becomes free when it has ended."""
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
                    while await loop.sock_recv(process.socket, 1 << 20):  # the rest of an answer, then the end
                        pass
        finally:
            self._drop(process)
            self.semaphore.leave(tenant)


def _is_dead(leading: socket.socket) -> bool:
    """Return whether an idle process has ended. A running one sends nothing."""
    try:
        return leading.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
