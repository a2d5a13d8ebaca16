"""Locks for threads and for tasks of any event loop: `FairLock`, and `SessionLocks`, one for each session."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import TypeAlias
from weakref import WeakValueDictionary

from ....drivers.interface import WATCH

#: Wakes a waiter; returns False if the waiter no longer exists.
Wake: TypeAlias = Callable[[], bool]


class FairLock:
    """A lock that is passed to waiters in the order in which they asked for it: ``with`` and ``async with`` wait.

    Args:
        places: The number of holders at a time.
    """

    def __init__(self, places: int = 1) -> None:
        self._guard = threading.Lock()
        self._free = places
        self._waiters: deque[Wake] = deque()

    def acquire(self, wake: Wake | None = None) -> bool:
        """Take the lock if it is free; return whether it was.

        Args:
            wake: Called, from any thread, once the waiter holds the lock. None: do not wait.
        """
        with self._guard:
            if self._free:
                self._free -= 1
                return True
            if wake is not None:
                self._waiters.append(wake)
            return False

    def release(self) -> None:
        """Pass the lock to the next waiter."""
        while True:
            with self._guard:
                if not self._waiters:
                    self._free += 1
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

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the lock is held; raises `TimeoutError` after the timeout, in seconds."""
        if self.acquire():
            return
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()

        def wake() -> bool:
            try:
                loop.call_soon_threadsafe(_settle, held)
            except RuntimeError:  # the loop is closed
                return False
            return True

        if self.acquire(wake):
            return
        try:
            async with asyncio.timeout(timeout_s):
                await held
        except BaseException:
            self.cancel(wake)
            raise

    def wait_blocking(self, timeout_s: float | None = None) -> None:
        """The same, blocking."""
        if self.acquire():
            return
        held = threading.Event()

        def wake() -> bool:
            held.set()
            return True

        if self.acquire(wake):
            return
        watch = WATCH.get()
        if watch is not None:  # the holder may wait for what the watch of this thread's call holds
            watch.begin()
        try:
            if not held.wait(timeout_s):
                raise TimeoutError
        except BaseException:
            self.cancel(wake)
            raise
        if watch is not None:
            watch.end()

    __aenter__, __enter__ = wait, wait_blocking

    async def __aexit__(self, *error: object) -> None:
        self.release()

    def __exit__(self, *error: object) -> None:
        self.release()


class SessionLocks:
    """Lets the writes to one session run one after another, in threads and in tasks of any event loop."""

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """After a fork: new locks, as a thread of the parent may hold the old ones for ever."""
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[Hashable, FairLock] = WeakValueDictionary()

    def of(self, key: Hashable) -> FairLock:
        """Return the lock of a session, which exists while somebody has it."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = FairLock()
            return lock


def _settle(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)
