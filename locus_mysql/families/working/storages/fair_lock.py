"""First-come, first-served locks for threads and for tasks of any event loop: `FairLock`, and `Turns` of sessions."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

#: Wakes a waiter; returns False if the waiter no longer exists.
Wake: TypeAlias = Callable[[], bool]


class FairLock:
    """A lock that is passed to waiters in the order in which they asked for it. It wakes them by callbacks."""

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


class Turns:
    """Lets the writes to one session run one after another, in threads and in tasks of any event loop."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[Hashable, tuple[FairLock, int]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Await work when it is its turn."""
        lock = self._enter(key)
        try:
            await acquire(lock)
            try:
                return await work()
            finally:
                lock.release()
        finally:
            self._leave(key)

    def run_blocking(self, key: Hashable, work: Callable[[], T]) -> T:
        """Do work when it is its turn."""
        lock = self._enter(key)
        try:
            acquire_blocking(lock)
            try:
                return work()
            finally:
                lock.release()
        finally:
            self._leave(key)

    def _enter(self, key: Hashable) -> FairLock:
        with self._guard:
            lock, users = self._locks.get(key) or (FairLock(), 0)
            self._locks[key] = lock, users + 1
            return lock

    def _leave(self, key: Hashable) -> None:
        with self._guard:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = lock, users - 1


async def acquire(lock: FairLock) -> None:
    """Wait until the lock is held."""
    if lock.acquire():
        return
    loop = asyncio.get_running_loop()
    held: asyncio.Future[None] = loop.create_future()

    def wake() -> bool:
        try:
            loop.call_soon_threadsafe(_settle, held)
        except RuntimeError:  # the loop is closed
            return False
        return True

    if lock.acquire(wake):
        return
    try:
        await held
    except BaseException:
        lock.cancel(wake)
        raise


def _settle(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)


def acquire_blocking(lock: FairLock) -> None:
    """Wait until the lock is held, blocking."""
    if lock.acquire():
        return
    held = threading.Event()

    def wake() -> bool:
        held.set()
        return True

    if lock.acquire(wake):
        return
    try:
        held.wait()
    except BaseException:
        lock.cancel(wake)
        raise
