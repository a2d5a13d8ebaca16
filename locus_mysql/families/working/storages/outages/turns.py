"""One at a time on a session, of threads and of tasks on any event loop. It wakes those who wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

#: Wakes one who waits; False if he is not there any more.
Wake: TypeAlias = Callable[[], bool]


class Turn:
    """A lock that is handed on in the order in which it was asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Wake] = deque()

    def take(self, wake: Wake | None = None) -> bool:
        """Take the turn if nobody has it; else be woken when it is one's own.

        Args:
            wake: Called, from any thread, when the turn has come; None: do not wait for it.
        """
        with self._lock:
            if not self._taken:
                self._taken = True
                return True
            if wake is not None:
                self._waiting.append(wake)
            return False

    def give(self) -> None:
        """Give the turn to the next."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._taken = False
                    return
                wake = self._waiting.popleft()
            if wake():
                return

    def leave(self, wake: Wake) -> None:
        """Wait no longer; if the turn has come meanwhile, it is given on."""
        with self._lock:
            waited = wake in self._waiting
            if waited:
                self._waiting.remove(wake)
        if not waited:
            self.give()
