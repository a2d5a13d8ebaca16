"""Running the service by itself, with Uvicorn: `run`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette

from ..errors import ConfigError, LocusMySQLError, SetupError
from ..families.checkpoints.store import StoreOperations
from .application import Application
from .change_poller import PATIENCE_S
from .fork_server import ForkServer
from .hosts import is_loopback
from .limits import Limits
from .listening import connections_under
from .pages.rendering import compile_templates
from .processes import PROCESSES, Processes
from .request_process import work
from .services import Services

#: What happened to the service as a whole: INFO. The database is away as it starts: WARNING.
SERVICE = logging.getLogger("locus_mysql.service")

#: How long an idle connection is kept, in seconds: longer than httpx, and so Locus' client, uses it again (5). Else the
#: service would close it just as a request comes, and a POST would fail.
KEEP_ALIVE_S = 10

#: How long the service may take to end beyond what it gives to the requests that it has, in seconds: statements and
#: request processes are ended then, and connections closed.
END_S = 10.0

#: How long threads may go on once all requests have ended, in seconds: nobody waits for what they do.
THREADS_S = 2.0

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server(uvicorn.Server):
    """Uvicorn, which when asked to stop tells those that would go on for ever.

    Args:
        config: Uvicorn's options.
        services: Those of the application.
        limits: How long requests may take.
        ready: Called when clients may come.
    """

    def __init__(self, config: uvicorn.Config, services: Services, limits: Limits, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.services = services
        self.limits = limits
        self.ready = ready
        #: Whether the process is to end with the service.
        self.ends_process = False
        self._timed = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept clients."""
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, finish what was accepted, and end."""
        self.services.stopping.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal asks to stop."""
        self._end_in_time()
        super().handle_exit(sig, frame)

    def _end_in_time(self) -> None:
        """See to it that the process ends within its limit, whatever runs: also if the event loop never does again."""
        if self.ends_process and not self._timed:
            self._timed = True
            exit_after(stop_s(self.limits), 1)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and on a second SIGINT at once. Uvicorn by itself would raise them again at the end."""
        is_main = threading.current_thread() is threading.main_thread()  # only that one can listen to signals
        signals = [one for one in STOP_SIGNALS if is_main and signal.getsignal(one) != signal.SIG_IGN]
        before = {one: signal.signal(one, self.handle_exit) for one in signals}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def run(
    app: Starlette,
    sockets: list[socket.socket],
    *,
    root_path: str = "",
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ready: Callable[[], None] = lambda: None,
    stopping: int | None = None,
    ends_process: bool = False,
) -> None:
    """Serve until a signal asks to stop; then finish what was accepted.

    The event loop is uvloop's where that is installed.

    Args:
        app: What `create_app` made.
        sockets: Where to listen, bound by `bind`.
        root_path: The path under which a proxy shows the service, and which it takes off.
        tls_cert: File of the certificate (PEM).
        tls_key: File of its key (PEM).
        ready: Called when the database was asked, and clients may come.
        stopping: A file descriptor that asks to stop as well, once it can be read from.
        ends_process: Whether this process is to end with the service, within `stop_s`, whatever its threads do.

    Raises:
        SetupError: The database answers, and cannot be used.
    """
    server = server_of(app, ready, root_path=root_path, ssl_certfile=tls_cert, ssl_keyfile=tls_key)
    server.ends_process = ends_process
    begin_processes(app, sockets, [] if stopping is None else [stopping])

    def stop() -> None:
        asyncio.get_running_loop().remove_reader(cast(int, stopping))
        server._end_in_time()
        server.should_exit = True

    async def serve() -> None:
        if stopping is not None:
            asyncio.get_running_loop().add_reader(stopping, stop)
        await _check_database(server.services)
        await server.serve(sockets)
        if server.ends_process:
            exit_after(THREADS_S, 0)

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(serve())


def begin_processes(app: Starlette, sockets: list[socket.socket], descriptors: list[int]) -> None:
    """Have requests that may take long carried out in processes, where that is possible.

    Args:
        app: What `create_app` made. It must not have answered a request yet.
        sockets: Where the service listens; the processes must not keep them open.
        descriptors: Other descriptors that they must not keep open.
    """
    limits: Limits = app.state.limits
    if isinstance(app, Application) and len(app.dispatcher.routers) > 1:
        compile_templates()  # before anybody waits, and once for all processes
    if not limits.processes or not isinstance(app, Application):
        return
    fork_server = ForkServer.start(partial(work, app), sockets, descriptors)
    if fork_server is None:
        PROCESSES.warning(
            "Requests that take long are carried out in the service's own process, and others wait for them: this "
            "system cannot fork, or has forbidden it."
        )
        return
    app.dispatcher.processes = Processes(fork_server, limits.processes)


def stop_s(limits: Limits) -> float:
    """How long a service with these limits may take to end, in seconds."""
    return math.ceil(limits.body_s + limits.request_s) + END_S


def exit_after(seconds: float, code: int) -> None:
    """End this process after some time, unless it has ended by then: without waiting for threads, or for anything."""

    def end() -> None:
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def server_of(app: Starlette, ready: Callable[[], None] = lambda: None, **options: Any) -> Server:
    """Uvicorn as the service needs it.

    Args:
        app: What `create_app` made.
        ready: Called when clients may come.
        options: Further ones of Uvicorn.
    """
    limits: Limits = app.state.limits
    config = uvicorn.Config(
        app,
        http=connections_under(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(limits.body_s + limits.request_s),
        **options,
    )
    return Server(config, app.state.services, limits, ready)


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at every address that a host has.

    Args:
        host: A name or an address.
        port: The port; 0 for a free one.

    Raises:
        ConfigError: It cannot be listened there.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((one[0], one[4]) for one in found):
            if sockets and port == 0:
                break
            sockets.append(open_at(family, address))
    except (OSError, UnicodeError, OverflowError) as error:
        for bound in sockets:
            bound.close()
        reason = error.strerror if isinstance(error, OSError) else "this is no host and port"
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        advice = " Stop what listens there, or give another --port; 0 takes a free one." if taken else ""
        raise ConfigError(f"The service cannot listen at {host!r:.100}, port {port}: {reason}.{advice}") from None
    return sockets


def open_at(family: int, address: Any, *, among_others: bool = False) -> socket.socket:
    """A socket bound to an address.

    Args:
        family: Of IP.
        address: With the port.
        among_others: Whether others of this process may listen there, too; new clients are shared out among them.
    """
    # Of others than IPPROTO_TCP asyncio does not switch off Nagle's algorithm, by which an answer's body would wait
    # 40 ms for its head to be acknowledged.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if among_others:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def is_local(sockets: list[socket.socket]) -> bool:
    """Whether only this machine can reach them all."""
    return all(is_loopback(one.getsockname()[0]) for one in sockets)


async def _check_database(services: Services) -> None:
    """Refuse to start with a database that cannot be used; one that is away may come back."""
    asking = StoreOperations(services.database.config)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await services.database.asynchronous.run(asking.health_check())
    except SetupError:
        await services.database.aclose()
        raise
    except (LocusMySQLError, TimeoutError):
        servers = ", ".join(map(str, services.config.endpoints))
        SERVICE.warning("MySQL at %s does not answer. Until it does, requests are answered 503.", servers)
