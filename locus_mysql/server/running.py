"""`run`: the service as a separate program, on Uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette

from ..errors import ConfigError, LocusMySQLError, SetupError
from ..families.checkpoints.store import StoreOperations
from .health_probe import PATIENCE_S
from .hosts import is_loopback
from .limits import Limits
from .services import Services

#: INFO: start and stop of the service. WARNING: the database is unavailable at the start.
SERVICE = logging.getLogger("locus_mysql.service")

#: Seconds for which an idle connection is kept: longer than httpx, and so Locus' client, reuses it (5 s). Otherwise the
#: service could close it just as a request arrives, and a POST would fail.
KEEP_ALIVE_S = 10

#: Seconds that stopping may take after the time given to running requests: for ending what still runs, and
#: for closing connections.
END_S = 10.0

#: Seconds for which threads may continue after all requests have ended. Their results are discarded.
THREADS_S = 2.0

#: Seconds for which a thread may hold Python's global lock while others wait. With the default, 5 ms, a request that
#: passes through several threads would wait ten times as long behind busy ones.
SWITCH_S = 0.000_5

#: Thresholds of the garbage collector: a pass over the values of a large state stops all threads. Few values here are
#: in cycles; all others are freed without it.
GC_THRESHOLDS = (50_000, 20, 1_000)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server(uvicorn.Server):
    """A Uvicorn server that also ends event streams when it is stopped.

    Args:
        config: Uvicorn's options.
        services: The application's services.
        limits: The limits, with the longest time of a request.
        ready: Called when the service accepts clients.
    """

    def __init__(self, config: uvicorn.Config, services: Services, limits: Limits, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.services = services
        self.limits = limits
        self.ready = ready
        #: Whether the process ends with the service.
        self.ends_process = False
        self._timed = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept clients."""
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting clients, finish the running requests, and end."""
        self.services.stopping.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to stop."""
        self._end_in_time()
        super().handle_exit(sig, frame)

    def _end_in_time(self) -> None:
        """Make sure that the process ends within its limit, even if the event loop never runs again."""
        if self.ends_process and not self._timed:
            self._timed = True
            exit_after(stop_s(self.limits), 1)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and at once on a second SIGINT. Uvicorn would raise the signals again at the end."""
        is_main = threading.current_thread() is threading.main_thread()  # only the main thread can handle signals
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
    """Serve until a signal asks to stop; then finish the running requests.

    Runs on uvloop if that is installed.

    Args:
        app: The application that `create_app` made.
        sockets: The sockets to listen on, bound by `bind`.
        root_path: The path under which a proxy publishes the service, and which the proxy strips.
        tls_cert: File of the certificate (PEM).
        tls_key: File of its key (PEM).
        ready: Called when the database was checked and the service accepts clients.
        stopping: A file descriptor; the service also stops when it becomes readable.
        ends_process: Whether this process ends with the service, within `stop_s`, whatever its threads do.

    Raises:
        SetupError: The database answers, but cannot be used.
    """
    server = server_of(app, ready, root_path=root_path, ssl_certfile=tls_cert, ssl_keyfile=tls_key)
    server.ends_process = ends_process
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)

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


def stop_s(limits: Limits) -> float:
    """Return how long a service with these limits may take to end, in seconds."""
    return math.ceil(limits.body_s + limits.request_s) + END_S


def exit_after(seconds: float, code: int) -> None:
    """End this process after some time, if it still runs then, without waiting for threads or exit handlers."""

    def end() -> None:
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def server_of(app: Starlette, ready: Callable[[], None] = lambda: None, **options: Any) -> Server:
    """Return the Uvicorn server with the service's options.

    Args:
        app: The application that `create_app` made.
        ready: Called when the service accepts clients.
        options: Further options of Uvicorn.
    """
    limits: Limits = app.state.limits
    config = uvicorn.Config(
        app,
        http="h11",  # httptools loses the body of a POST that offers an upgrade
        limit_concurrency=limits.connections,
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
    """Bind sockets to every address of a host.

    Args:
        host: A name or an address.
        port: The port; 0 for a free one.

    Raises:
        ConfigError: The address cannot be bound.
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
        reason = error.strerror if isinstance(error, OSError) else "this is not a host and port"
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        advice = " Stop what listens there, or give another --port; 0 takes a free one." if taken else ""
        raise ConfigError(f"The service cannot listen at {host!r:.100}, port {port}: {reason}.{advice}") from None
    return sockets


def open_at(family: int, address: Any, *, among_others: bool = False) -> socket.socket:
    """Return a socket bound to an address.

    Args:
        family: The IP version.
        address: The address with the port.
        among_others: Whether other sockets of this process listen at the same address (SO_REUSEPORT).
    """
    # asyncio switches off Nagle's algorithm for IPPROTO_TCP only. With it, an answer's body would wait 40 ms for its
    # head to be acknowledged.
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
    """Return whether only this machine can reach all of the sockets."""
    return all(is_loopback(one.getsockname()[0]) for one in sockets)


async def _check_database(services: Services) -> None:
    """Raise if the database cannot be used. Only warn if it is unavailable, as it may recover."""
    asking = StoreOperations(services.database.config)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await services.database.asynchronous.run(asking.health_check())
    except SetupError:
        await services.database.aclose()
        raise
    except (LocusMySQLError, TimeoutError):
        servers = ", ".join(map(str, services.config.endpoints))
        SERVICE.warning("MySQL at %s does not respond. Until it does, requests get status 503.", servers)
