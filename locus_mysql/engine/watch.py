"""Noticing calls that wait long for an answer, so that another server can be looked for meanwhile.

A primary that is frozen or cut off sends nothing, and its connections stay open. Its group elects another one within
seconds, long before a call reaches its time limit.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from .members import AsyncMember, SyncMember

#: A server is suspected if a call to it has waited for longer than this, in seconds.
SUSPICION_S = 2.0

#: Time between two looks, in seconds.
LOOK_EVERY_S = 1.0

#: The thread of a watch ends after this long without a call, in seconds.
REST_AFTER_S = 10.0

C = TypeVar("C", SyncMember, AsyncMember)


class Calls(Generic[C]):
    """The calls under way.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[int, tuple[C, float]] = {}
        self._last = clock()

    def begin(self, connection: C) -> None:
        """A call is made on the connection."""
        self._last = self._clock()
        self._began[id(connection)] = (connection, self._last)

    def end(self, connection: C) -> None:
        """The call has its answer, or has failed."""
        self._began.pop(id(connection), None)

    def waiting(self) -> list[C]:
        """The connections with a call under way."""
        return [connection for connection, _ in list(self._began.values())]

    def suspect(self) -> C | None:
        """A connection whose call waits too long for an answer."""
        since = self._clock() - SUSPICION_S
        return next((connection for connection, began in list(self._began.values()) if began < since), None)

    def at_rest(self) -> bool:
        """Whether there was no call for a while."""
        return not self._began and self._last < self._clock() - REST_AFTER_S


class SyncWatch:
    """Looks in a thread of its own, which exists while calls are made.

    Args:
        look: Called, again and again, with a connection that gives no answer.
    """

    def __init__(self, look: Callable[[SyncMember], None]) -> None:
        self.calls: Calls[SyncMember] = Calls()
        self._look = look
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, connection: SyncMember) -> None:
        """A call is made on the connection."""
        with self._lock:
            self.calls.begin(connection)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="locus-mysql watch", daemon=True)
                self._thread.start()

    def end(self, connection: SyncMember) -> None:
        """The call is over."""
        self.calls.end(connection)

    def _watch(self) -> None:
        try:
            while not self._rests():
                suspect = self.calls.suspect()
                if suspect is not None:
                    self._look(suspect)
                time.sleep(LOOK_EVERY_S)
        except BaseException:
            self._thread = None  # the next call starts another one
            raise

    def _rests(self) -> bool:
        with self._lock:
            if self.calls.at_rest():
                self._thread = None
                return True
        return False


class AsyncWatch:
    """Looks by a timer of the event loop, which is set while calls are made; what it finds is handled in a task.

    Args:
        look: Awaited, again and again, with a connection that gives no answer.
    """

    def __init__(self, look: Callable[[AsyncMember], Awaitable[None]]) -> None:
        self.calls: Calls[AsyncMember] = Calls()
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Future[None] | None = None

    def begin(self, connection: AsyncMember) -> None:
        """A call is made on the connection."""
        self.calls.begin(connection)
        if self._timer is None:
            self._set_timer()

    def end(self, connection: AsyncMember) -> None:
        """The call is over."""
        self.calls.end(connection)

    def stop(self) -> None:
        """Look no more until the next call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            with suppress(RuntimeError):  # the event loop is closed
                self._task.cancel()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._watch)

    def _watch(self) -> None:
        self._timer = None
        if self.calls.waiting():
            self._set_timer()
        suspect = self.calls.suspect()
        if suspect is not None and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._look(suspect))
