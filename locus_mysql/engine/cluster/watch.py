"""Detects calls that wait long for an answer, so that the engine looks for another server meanwhile.

A primary that is frozen or cut off sends nothing, and its connections stay open. Its group elects another one within
seconds, long before a call reaches its time limit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ..commands import CommandGenerator
from ..pool import ServerConnection

if TYPE_CHECKING:
    from ..sides import Side

#: A server is suspected if a call to it has waited for longer than this, in seconds.
SUSPICION_S = 2.0

#: Time between two inspections of the calls, in seconds.
INSPECT_EVERY_S = 1.0

#: Handles a connection that waits long for an answer.
OnSuspect: TypeAlias = Callable[[ServerConnection], CommandGenerator[None]]


class Watch:
    """The calls of a pool that are in progress. They are inspected regularly while there are any.

    Args:
        side: The pool's, which runs the inspections.
        on_suspect: Run again and again, once at a time, while a connection waits too long.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, side: Side, on_suspect: OnSuspect, clock: Callable[[], float] = time.monotonic) -> None:
        self._side = side
        self._on_suspect = on_suspect
        self._clock = clock
        self._began: dict[int, tuple[ServerConnection, float]] = {}
        self._lock = threading.Lock()
        self._is_scheduled = self._is_handling = False

    def begin(self, connection: ServerConnection) -> None:
        """Record that a call on the connection begins."""
        self._began[id(connection)] = (connection, self._clock())
        if not self._is_scheduled:
            self._schedule()

    def end(self, connection: ServerConnection) -> None:
        """Record that the call has its answer, or has failed."""
        self._began.pop(id(connection), None)

    def waiting(self) -> list[ServerConnection]:
        """Return the connections with a call in progress."""
        return [connection for connection, _ in list(self._began.values())]

    def inspect(self) -> CommandGenerator[None]:
        """Handle a connection that has waited too long, beside other work; inspect again later if there are calls."""
        yield from ()  # nothing here waits
        with self._lock:
            self._is_scheduled = False
        since = self._clock() - SUSPICION_S
        suspects = (connection for connection, began in list(self._began.values()) if began < since)
        suspect = next(suspects, None)
        if suspect is not None and not self._is_handling:
            self._is_handling = True
            self._side.start(partial(self._handle, suspect))
        if self._began:
            self._schedule()

    def _handle(self, suspect: ServerConnection) -> CommandGenerator[None]:
        try:
            yield from self._on_suspect(suspect)
        finally:
            self._is_handling = False

    def _schedule(self) -> None:
        with self._lock:
            if not self._is_scheduled:
                self._side.call_later(self.inspect, INSPECT_EVERY_S)
                self._is_scheduled = True
