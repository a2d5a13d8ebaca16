"""Several processes that serve at the same addresses: `fork_workers`.

One process of Python keeps one processor busy. So the calling process opens sockets, forks what serves at them, and
puts another in the place of one that dies, at the same sockets: clients that wait there are not turned away. A pipe
that only it can write to tells the others when to stop, also by its death; no signal has to reach them.
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

#: A worker ended that nobody stopped: WARNING.
WORKERS = logging.getLogger("locus_mysql.service")

#: The least time between two workers that take another's place, in seconds.
PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that is to serve.

    Args:
        sockets: Where it is to listen.
        stopping: A file descriptor that can be read from once the worker is to finish what it accepted, and end.
        telling: Where it says that clients may come.
    """

    sockets: Sequence[socket.socket]
    stopping: int
    telling: int

    def ready(self) -> None:
        """Say that clients may come."""
        os.write(self.telling, b".")


def fork_workers(
    count: int, sockets: Sequence[socket.socket], ready: Callable[[], None], stop_s: float
) -> Worker | int:
    """Begin workers, and watch over them until a signal asks to stop. A second SIGINT stops at once.

    Args:
        count: How many.
        sockets: Where they listen, made by `bind`; closed here when they are to stop.
        ready: Called when all of them have said that clients may come.
        stop_s: How long they may take to end once they are to, in seconds; then they are killed.

    Returns:
        In each worker, what it is; its caller goes on to serve. In the calling process, once all have ended, the exit
        code: that of a worker that failed before all were ready, else 0.

    Raises:
        ConfigError: This system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("Several workers need a system that forks, which this one is not.")
    return _Watch(count, sockets, ready, stop_s).run()


class _Watch:
    """Watches over workers. See `fork_workers`."""

    def __init__(self, count: int, sockets: Sequence[socket.socket], ready: Callable[[], None], stop_s: float) -> None:
        self._sockets = _of_each(count, sockets)
        self._stop_s = stop_s
        self._kill_at = math.inf
        self._ready = ready
        #: By process, at which of the sockets it serves.
        self._workers: dict[int, int] = {}
        self._told = 0
        self._stops = 0
        self._code = 0
        self._next_at = 0.0

    def run(self) -> Worker | int:
        stopping, self._keeps_going = os.pipe()
        hearing, telling = os.pipe()
        with _signals() as signals, selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            selector.register(hearing, selectors.EVENT_READ)
            while self._workers or not self._stops:
                for place in self._vacant():
                    pid = os.fork()
                    if not pid:
                        os.close(self._keeps_going)
                        return Worker(self._only(place), stopping, telling)
                    self._workers[pid] = place
                for key, _ in selector.select(PAUSE_S):
                    if key.fd == hearing:
                        self._hear(os.read(hearing, 64))
                    else:
                        for number in signals.recv(64):
                            self._obey(number)
                if time.monotonic() >= self._kill_at:
                    self._kill()
                self._reap()
        for one in (stopping, hearing, telling):
            os.close(one)
        return self._code

    def _vacant(self) -> list[int]:
        """Places that a worker is to be begun for now."""
        if self._stops or time.monotonic() < self._next_at:
            return []
        return [place for place in range(len(self._sockets)) if place not in self._workers.values()]

    def _only(self, place: int) -> Sequence[socket.socket]:
        """The sockets of a place, in the process that is to serve there; all others are closed in it."""
        own = self._sockets[place]
        for others in self._sockets:
            for one in others:
                if one not in own:
                    one.close()
        return own

    def _hear(self, told: bytes) -> None:
        before, self._told = self._told, self._told + len(told)
        if before < len(self._sockets) <= self._told:
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
            if code and self._told < len(self._sockets):
                self._code = code if code > 0 else 1
                self._stop()
                continue
            WORKERS.warning("Worker %d ended (%s). Another takes its place.", pid, _how(code))
            self._next_at = time.monotonic() + PAUSE_S


def _of_each(count: int, sockets: Sequence[socket.socket]) -> list[Sequence[socket.socket]]:
    """Sockets for each worker, at the same addresses.

    Linux shares out new clients among them. At one socket, of 32 clients two workers had 29 and 3; elsewhere than on
    Linux it stays at that. The option is set once the first ones are bound: another service there is told, not joined.
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
    """Where the numbers of signals can be read that ask to stop, or say that a worker ended.

    On the way out, also that of a worker, all is as before; but a worker leaves SIGINT, which a terminal sends to all,
    to the one that watches over it.
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
