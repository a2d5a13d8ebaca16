"""Detects calls that wait long for an answer, so that the engine looks for another server meanwhile.

A primary that is frozen or cut off sends nothing, and its connections stay open. Its group elects another one within
seconds, long before a call reaches its time limit.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

from ..commands import CommandGenerator
from ..loops import run_awaited, run_blocking
from ..pool import ServerConnection

#: A server is suspected if a call to it has waited for longer than this, in seconds.
SUSPICION_S = 2.0

#: Time between two inspections of the calls, in seconds.
INSPECT_EVERY_S = 1.0

#: The thread of a watch ends after this long without a call, in seconds.
REST_AFTER_S = 10.0

#: Handles a connection that waits long for an answer.
OnSuspect: TypeAlias = Callable[[ServerConnection], CommandGenerator[None]]


class Calls:
    """The calls in progress.

    Args:
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[int, tuple[ServerConnection, float]] = {}
        self._last = clock()

    def begin(self, connection: ServerConnection) -> None:
        """Record that a call on the connection begins."""
        self._last = self._clock()
        self._began[id(connection)] = (connection, self._last)

    def end(self, connection: ServerConnection) -> None:
        """Record that the call has its answer, or has failed."""
        self._began.pop(id(connection), None)

    def waiting(self) -> list[ServerConnection]:
        """The connections with a call in progress."""
        return [connection for connection, _ in list(self._began.values())]

    def suspect(self) -> ServerConnection | None:
        """A connection whose call has waited too long for an answer."""
        since = self._clock() - SUSPICION_S
        return next((connection for connection, began in list(self._began.values()) if began < since), None)

    def at_rest(self) -> bool:
        """Check whether there was no call for a while."""
        return not self._began and self._last < self._clock() - REST_AFTER_S


class Watch(Protocol):
    """Inspects the calls of a pool regularly while there are any."""

    @property
    def calls(self) -> Calls:
        """The calls in progress."""

    def begin(self, connection: ServerConnection) -> None:
        """A call on the connection begins."""

    def end(self, connection: ServerConnection) -> None:
        """The call is over."""


class ThreadWatch:
    """A watch with a thread of its own, which exists while there are calls.

    Args:
        on_suspect: Run again and again while a connection waits too long.
    """

    def __init__(self, on_suspect: OnSuspect) -> None:
        self.calls = Calls()
        self._on_suspect = on_suspect
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, connection: ServerConnection) -> None:
        """See `Watch.begin`."""
        with self._lock:
            self.calls.begin(connection)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="locus-mysql watch", daemon=True)
                thread.start()
                self._thread = thread

    def end(self, connection: ServerConnection) -> None:
        """See `Watch.end`."""
        self.calls.end(connection)

    def _run(self) -> None:
        try:
            while not self._rests():
                suspect = self.calls.suspect()
                if suspect is not None:
                    run_blocking(self._on_suspect(suspect))
                time.sleep(INSPECT_EVERY_S)
        except BaseException:
            self._thread = None  # the next call starts another one
            raise

    def _rests(self) -> bool:
        with self._lock:
            if self.calls.at_rest():
                self._thread = None
                return True
        return False


class TimerWatch:
    """A watch with a timer of the event loop, which is set while there are calls; suspects are handled in a task.

    It is not a sleeping task, because an event loop warns about pending tasks when it is closed, but not about timers.

    Args:
        on_suspect: Run again and again while a connection waits too long, once at a time.
    """

    def __init__(self, on_suspect: OnSuspect) -> None:
        self.calls = Calls()
        self._on_suspect = on_suspect
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, connection: ServerConnection) -> None:
        """See `Watch.begin`."""
        self.calls.begin(connection)
        if self._timer is None:
            self._set_timer()

    def end(self, connection: ServerConnection) -> None:
        """See `Watch.end`."""
        self.calls.end(connection)

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INSPECT_EVERY_S, self._inspect)

    def _inspect(self) -> None:
        self._timer = None
        if self.calls.waiting():
            self._set_timer()
        suspect = self.calls.suspect()
        if suspect is not None and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(run_awaited(self._on_suspect(suspect)))
