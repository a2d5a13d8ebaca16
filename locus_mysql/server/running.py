"""`serve`: the service as a separate program, on Uvicorn."""

from __future__ import annotations

import asyncio
import errno
import functools
import gc
import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess, multiprocess

from ..config import MySQLConfig
from ..errors import ConfigError, LocusMySQLError, SetupError
from ..runtime.database import Database
from .access import is_loopback
from .limits import Limits
from .monitoring import PATIENCE_S
from .services import Services

#: INFO: start and stop of the service. WARNING: the database is unavailable at the start.
SERVICE = logging.getLogger("locus_mysql.service")

#: Seconds for which an idle connection is kept: longer than httpx, and so Locus' client, reuses it (5 s). Otherwise the
#: service could close it just as a request arrives, and a POST would fail.
KEEP_ALIVE_S = 10

#: Number of clients that may wait at a socket until they are accepted.
BACKLOG = 2_048

#: Seconds that stopping may take after the time given to running requests: for ending what still runs, and
#: for closing connections.
END_S = 10.0

#: Seconds for which a worker may not react before it is replaced; and in which it must start, on a busy machine.
WORKER_S, START_S = 30, 300

#: Seconds for which a thread may hold Python's global lock while others wait. With the default, 5 ms, a request that
#: passes through several threads would wait ten times as long behind busy ones.
SWITCH_S = 0.000_5

#: Thresholds of the garbage collector: a pass over the values of a large state stops all threads. Few values here are
#: in cycles; all others are freed without it.
GC_THRESHOLDS = (50_000, 20, 1_000)


def serve(
    create: Callable[[], Starlette],
    sockets: Sequence[socket.socket],
    limits: Limits,
    *,
    workers: int = 1,
    ready: Callable[[], None] = lambda: None,
    **options: Any,
) -> None:
    """Serve until a signal asks to stop; then finish the running requests.

    Runs on uvloop if that is installed.

    Args:
        create: Makes the application, in each process that serves it. Picklable, if there are several workers.
        sockets: The sockets to listen on, made by `bind`.
        limits: The application's limits.
        workers: The number of processes that serve; with more than one, this process only supervises them.
        ready: Called when clients are accepted.
        options: Further options of Uvicorn.
    """
    start = functools.partial(_start, create, limits)
    config = uvicorn_config(start, limits, factory=True, workers=workers, **options)
    if workers > 1:
        multiprocess.logger.setLevel(SERVICE.getEffectiveLevel())  # logs that a worker died
        _Workers(config, sockets, ready).run()
        return
    for one in sockets:
        one.listen(BACKLOG)
    ready()
    uvicorn.Server(config).run(list(sockets))


def uvicorn_config(app: Callable[..., Any], limits: Limits, **options: Any) -> uvicorn.Config:
    """Return the service's options of Uvicorn.

    Args:
        app: The application that `create_app` made, or a factory of it.
        limits: Its limits.
        options: Further options.
    """
    return uvicorn.Config(
        app,
        http="h11",  # httptools loses the body of a POST that offers an upgrade
        limit_concurrency=limits.connections,
        ws="none",
        lifespan="on",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=_running_s(limits),
        timeout_worker_healthcheck=WORKER_S,
        **{"log_config": None, **options},
    )


def _running_s(limits: Limits) -> int:
    """Return how long requests may run on when the service is being stopped, in seconds."""
    return math.ceil(limits.body_s + limits.request_s)


def _start(create: Callable[[], Starlette], limits: Limits) -> Starlette:
    """Return the application, in the process that serves it; called when Uvicorn already handles signals."""
    app = create()
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    services: Services = app.state.services
    loop = asyncio.get_running_loop()
    handle = cast(Callable[[int, FrameType | None], None], signal.getsignal(signal.SIGTERM))

    def stop(signum: int, frame: FrameType | None) -> None:
        """End event streams as well, and the process within its limit, even if the event loop never runs again."""
        if not services.stopping.is_set():
            loop.call_soon_threadsafe(services.stopping.set)
            _exit_after(_running_s(limits) + END_S)
        handle(signum, frame)

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    if multiprocessing.parent_process() is not None:
        threading.Thread(target=_stop_with_parent, daemon=True).start()
    return app


def _stop_with_parent() -> None:
    """Stop this worker when the process that supervises it has died."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - called in workers only
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _exit_after(seconds: float) -> None:
    """End this process after some time, if it still runs then, without waiting for threads or exit handlers."""

    def end() -> None:
        logging.shutdown()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


class _Workers(Multiprocess):
    """Uvicorn's supervisor of workers, which reports when all of them accept clients.

    Args:
        config: Uvicorn's options.
        sockets: Bound sockets, which do not listen on Linux: each worker opens its own.
        ready: Called when all workers accept clients.
    """

    def __init__(self, config: uvicorn.Config, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
        super().__init__(config, _of_workers(sockets))
        self._ready = ready

    def init_processes(self) -> None:
        """Start the workers."""
        super().init_processes()
        if all(one.wait_until_ready(START_S, self.should_exit) for one in self.processes):
            self._ready()


class _Address(NamedTuple):
    """An address that becomes a listening socket when a worker unpickles it."""

    family: int
    address: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_among_others, tuple(self)


def _of_workers(sockets: Sequence[socket.socket]) -> list[socket.socket]:
    """Return what each worker gets: its own sockets at the same addresses, where the system distributes clients.

    Linux distributes new clients among sockets with SO_REUSEPORT. On one shared socket, two workers got 29 and 3 of 32
    clients. The option is set after the first sockets are bound, so that a port which another service uses is reported
    as used.
    """
    if sys.platform != "linux":
        return list(sockets)
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return cast(list[socket.socket], [_Address(one.family, one.getsockname()) for one in sockets])


def _open_among_others(family: int, address: Any) -> socket.socket:
    opened = open_at(family, address, among_others=True)
    opened.listen(BACKLOG)
    return opened


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


async def check_database(config: MySQLConfig) -> None:
    """Check the database before the service starts. Only warn if it is unavailable, as it may recover.

    Raises:
        SetupError: The database answers, but cannot be used.
    """
    async with Database(config) as database:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await database.health_check()
        except SetupError:
            raise
        except (LocusMySQLError, TimeoutError):
            servers = ", ".join(map(str, config.endpoints))
            SERVICE.warning("MySQL at %s does not respond. Until it does, requests get status 503.", servers)
