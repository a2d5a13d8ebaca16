"""`fork_workers`: several processes that serve at the same addresses.

One Python process keeps one processor busy. So the calling process opens sockets, forks workers that serve on them,
and replaces a worker that dies by a new one on the same sockets, so that waiting clients are not refused. The workers
read from a pipe that only the calling process can write to: when that process closes it or dies, they stop. They need
no signal.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from .running import STOP_SIGNALS, open_at

#: WARNING: a worker ended without being stopped.
WORKERS = logging.getLogger("locus_mysql.service")

#: The least time between two replacements of workers, in seconds.
PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process, from within that process.

    Args:
        sockets: The sockets to listen on.
        stopping: A file descriptor that becomes readable when the worker has to finish its requests and end.
        reporting: The file descriptor to which it reports that it accepts clients.
    """

    sockets: Sequence[socket.socket]
    stopping: int
    reporting: int

    def ready(self) -> None:
        """Report that this worker accepts clients."""
        os.write(self.reporting, b".")


def fork_workers(
    count: int, sockets: Sequence[socket.socket], ready: Callable[[], None], stop_s: float
) -> Worker | int:
    """Start workers, and replace those that die until a signal asks to stop. A second SIGINT stops at once.

    Args:
        count: Number of workers.
        sockets: The sockets to listen on, made by `bind`; closed here when the workers have to stop.
        ready: Called when all workers accept clients.
        stop_s: How long the workers may take to stop, in seconds; then they are killed.

    Returns:
        In each worker its `Worker`, with which the caller then serves. In the calling process, once all workers
        have ended, the exit code: that of a worker that failed before all were ready, else 0.

    Raises:
        ConfigError: The system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("Several workers need a system that can fork; this one cannot.")
    return _Watch(count, sockets, ready, stop_s).run()


class _Watch:
    """The supervisor of workers; see `fork_workers`."""

    def __init__(self, count: int, sockets: Sequence[socket.socket], ready: Callable[[], None], stop_s: float) -> None:
        self._sockets = _of_each(count, sockets)
        self._stop_s = stop_s
        self._kill_at = math.inf
        self._ready = ready
        #: For each process id, the index of the sockets that it serves on.
        self._workers: dict[int, int] = {}
        self._ready_count = 0
        self._stops = 0
        self._code = 0
        self._next_at = 0.0

    def run(self) -> Worker | int:
        stopping, self._keeps_going = os.pipe()
        reports, reporting = os.pipe()
        with _signals() as signals, selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            selector.register(reports, selectors.EVENT_READ)
            while self._workers or not self._stops:
                for index in self._vacant():
                    pid = os.fork()
                    if not pid:
                        os.close(self._keeps_going)
                        return Worker(self._only(index), stopping, reporting)
                    self._workers[pid] = index
                for key, _ in selector.select(PAUSE_S):
                    if key.fd == reports:
                        self._count_ready(os.read(reports, 64))
                    else:
                        for number in signals.recv(64):
                            self._obey(number)
                if time.monotonic() >= self._kill_at:
                    self._kill()
                self._reap()
        for one in (stopping, reports, reporting):
            os.close(one)
        return self._code

    def _vacant(self) -> list[int]:
        """Return the indices of sockets that need a new worker now."""
        if self._stops or time.monotonic() < self._next_at:
            return []
        return [index for index in range(len(self._sockets)) if index not in self._workers.values()]

    def _only(self, index: int) -> Sequence[socket.socket]:
        """Return the sockets with this index, and close all others in the calling worker."""
        own = self._sockets[index]
        for others in self._sockets:
            for one in others:
                if one not in own:
                    one.close()
        return own

    def _count_ready(self, reports: bytes) -> None:
        before, self._ready_count = self._ready_count, self._ready_count + len(reports)
        if before < len(self._sockets) <= self._ready_count:
            self._ready()

    def _obey(self, number: int) -> None:
        if number == signal.SIGINT and self._stops:
            self._kill()
        elif number in STOP_SIGNALS:
            self._stop()

    def _kill(self) -> None:
        for pid in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _stop(self) -> None:
        if not self._stops:
            for sockets in self._sockets:
                for one in sockets:
                    one.close()
            os.close(self._keeps_going)
            self._kill_at = time.monotonic() + self._stop_s
        self._stops += 1

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._workers[pid]
            if self._stops:
                continue
            code = os.waitstatus_to_exitcode(status)
            if code and self._ready_count < len(self._sockets):
                self._code = code if code > 0 else 1
                self._stop()
                continue
            WORKERS.warning("Worker %d ended (%s). A new one replaces it.", pid, _how(code))
            self._next_at = time.monotonic() + PAUSE_S


def _of_each(count: int, sockets: Sequence[socket.socket]) -> list[Sequence[socket.socket]]:
    """Return sockets for each worker, bound to the same addresses.

    Linux distributes new clients among sockets with SO_REUSEPORT. On one shared socket, two workers got 29 and 3 of 32
    clients; other systems keep one shared socket. The option is set after the first sockets are bound, so that a port
    which another service uses is reported as used.
    """
    if sys.platform != "linux":
        return [sockets] * count
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    more = [[open_at(one.family, one.getsockname(), among_others=True) for one in sockets] for _ in range(count - 1)]
    return [sockets, *more]


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket from which the numbers of received signals can be read: those to stop, and SIGCHLD.

    Restores all handlers at the end, in a worker as well, except that a worker ignores SIGINT: a terminal sends that to
    all processes, and the supervisor handles it.
    """
    process = os.getpid()
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)
    listening = [one for one in STOP_SIGNALS if signal.getsignal(one) != signal.SIG_IGN]
    before = {one: signal.signal(one, lambda *_: None) for one in (*listening, signal.SIGCHLD)}
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wakeup)
        for one, handler in before.items():
            signal.signal(one, handler)
        if os.getpid() != process:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        reading.close()
        writing.close()
