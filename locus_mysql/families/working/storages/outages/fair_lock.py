"""A first-come, first-served lock for threads and for tasks of any event loop. It wakes its waiters by callbacks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

#: Wakes a waiter; returns False if the waiter no longer exists.
Wake: TypeAlias = Callable[[], bool]


class FairLock:
    """A lock that is passed to waiters in the order in which they asked for it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiters: deque[Wake] = deque()

    def acquire(self, wake: Wake | None = None) -> bool:
        """Take the lock if it is free; return whether it was.

        Args:
            wake: Called, from any thread, once the waiter holds the lock. None: do not wait.
        """
        with self._guard:
            if not self._held:
                self._held = True
                return True
            if wake is not None:
                self._waiters.append(wake)
            return False

    def release(self) -> None:
        """Pass the lock to the next waiter."""
        while True:
            with self._guard:
                if not self._waiters:
                    self._held = False
                    return
                wake = self._waiters.popleft()
            if wake():
                return

    def cancel(self, wake: Wake) -> None:
        """Stop waiting. If the waiter was given the lock meanwhile, the lock is passed on."""
        with self._guard:
            waits = wake in self._waiters
            if waits:
                self._waiters.remove(wake)
        if not waits:
            self.release()
