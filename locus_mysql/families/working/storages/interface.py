"""The protocol of a storage, `Storage`, with a base: `TwoSided`; locks; and `MayDegrade`, of one with a fallback."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine, Generator, Hashable
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from ....drivers.interface import WATCH
from ....runtime.arguments import check_tenant
from ..calls import Address, Call, Reply


class FairLock:
    """A lock that is passed to waiters in the order in which they asked for it: ``with`` and ``async with`` wait.

    Args:
        places: The number of holders at a time.
    """

    def __init__(self, places: int = 1) -> None:
        self._guard = threading.Lock()
        self._free = places
        #: Each waiter with its event loop, if it has one.
        self._waiters: deque[tuple[Future[None], asyncio.AbstractEventLoop | None]] = deque()

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        with self._guard:
            return self._take()

    def release(self) -> None:
        """Pass the lock to the next waiter."""
        while True:
            with self._guard:
                if not self._waiters:
                    self._free += 1
                    return
                waiter, loop = self._waiters.popleft()
            if not (loop is not None and loop.is_closed()) and waiter.set_running_or_notify_cancel():
                waiter.set_result(None)
                return

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the lock is held; raises `TimeoutError` after the timeout, in seconds."""
        waiter = self._enter(asyncio.get_running_loop())
        if waiter is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.wrap_future(waiter)
        except BaseException:
            self._give_up(waiter)
            raise

    def wait_blocking(self, timeout_s: float | None = None) -> None:
        """The same, blocking."""
        waiter = self._enter(None)
        if waiter is None:
            return
        watch = WATCH.get()
        if watch is not None:  # the holder may wait for what the watch of this thread's call holds
            watch.begin()
        try:
            waiter.result(timeout_s)
        except BaseException:
            self._give_up(waiter)
            raise
        if watch is not None:
            watch.end()

    __aenter__, __enter__ = wait, wait_blocking

    async def __aexit__(self, *error: object) -> None:
        self.release()

    def __exit__(self, *error: object) -> None:
        self.release()

    def _take(self) -> bool:
        taken = self._free > 0
        self._free -= taken
        return taken

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> Future[None] | None:
        """Take the lock, or return a waiter that is done once it holds the lock."""
        with self._guard:
            if self._take():
                return None
            waiter = Future[None]()
            self._waiters.append((waiter, loop))
            return waiter

    def _give_up(self, waiter: Future[None]) -> None:
        """Stop waiting. If the waiter was given the lock meanwhile, the lock is passed on."""
        if not waiter.cancel():
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


T = TypeVar("T")

#: What a call holds that waits for no others.
ANY_TIME = nullcontext()


@runtime_checkable
class Storage(Protocol):
    """Keeps sessions. Has an asynchronous and a blocking side; each may be used from any event loop, or thread.

    Both sides raise:
        Unavailable: The storage did not answer in time. Whether the call was carried out is not known; the same call
            with the same token may be made again for a quarter of an hour, and is then carried out once.
        CapacityExceeded: The session would exceed a limit; nothing was changed.
        InvalidInput, NotFound: See the commands; nothing was changed.
        StampMoved: The session has another stamp than the call's ``if_stamp``; nothing was changed.
    """

    async def execute(self, call: Call) -> Reply:
        """Carry out a call: all its commands or none."""

    def execute_blocking(self, call: Call) -> Reply:
        """The same, blocking."""

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove expired sessions, each whole; returns their number. They are invisible to calls even before that.

        Args:
            limit: The maximum number of sessions to remove.
        """

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """The same, blocking."""

    async def forget_tenant(self, tenant: str) -> int:
        """Remove all sessions of a tenant with all their content; returns their number. Those begun meanwhile may stay.

        Another call removes the remaining ones. The random tokens by which repeated calls are recognised may stay for a
        quarter of an hour, and the tenant's name with them.

        Args:
            tenant: The tenant.
        """

    def forget_tenant_blocking(self, tenant: str) -> int:
        """The same, blocking."""

    async def aclose(self) -> None:
        """Close the connections that the storage opened."""

    def close(self) -> None:
        """Close the connections of the blocking side."""


class Operations(Protocol):
    """What a storage does, as generators of steps."""

    def execute(self, call: Call) -> Generator[Any, Any, Reply]:
        """Carry out a call. Only one write to a session runs at a time."""

    def sweep(self, limit: int) -> Generator[Any, Any, int]:
        """Remove expired sessions, each whole; returns their number. They are invisible to calls even before that."""

    def forget_tenant(self, tenant: str) -> Generator[Any, Any, int]:
        """Remove all sessions of a tenant with all their content; returns their number."""


class TwoSided(ABC):
    """Base of storages whose operations are generators, which either side runs. See `Storage` for the methods.

    Args:
        operations: The operations.
        locks: The locks of sessions that are written to; None if the operations let writes wait for each other.
    """

    def __init__(self, operations: Operations, locks: SessionLocks | None) -> None:
        self._both, self._locks = operations, locks

    @abstractmethod
    def _run(self, steps: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Run a generator in this task."""

    @abstractmethod
    def _run_blocking(self, steps: Generator[Any, Any, T]) -> T:
        """Run a generator in this thread."""

    def _lock_of(self, call: Call) -> FairLock | nullcontext[None]:
        """Return what a call holds: the session's lock if it writes."""
        return ANY_TIME if self._locks is None or not call.writes else self._locks.of(call.address)

    async def execute(self, call: Call) -> Reply:
        """Carry out a call: all its commands or none."""
        async with self._lock_of(call):
            return await self._run(self._both.execute(call))

    def execute_blocking(self, call: Call) -> Reply:
        """The same, blocking."""
        with self._lock_of(call):
            return self._run_blocking(self._both.execute(call))

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove expired sessions of all tenants, each whole; returns their number."""
        return await self._run(self._both.sweep(limit))

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """The same, blocking."""
        return self._run_blocking(self._both.sweep(limit))

    async def forget_tenant(self, tenant: str) -> int:
        """Remove all sessions of a tenant with all their content; returns their number."""
        return await self._run(self._both.forget_tenant(check_tenant(tenant)))

    def forget_tenant_blocking(self, tenant: str) -> int:
        """The same, blocking."""
        return self._run_blocking(self._both.forget_tenant(check_tenant(tenant)))


class OutageStatus(NamedTuple):
    """The effects of an outage on a session.

    Args:
        degraded: Whether another storage serves the session, as its own is unavailable.
        pending: The number of writes that wait for the storage.
        lost: Descriptions of writes that were dropped, because another process had written meanwhile.
    """

    degraded: bool = False
    pending: int = 0
    lost: tuple[str, ...] = ()


@runtime_checkable
class MayDegrade(Protocol):
    """A storage with a fallback that serves calls during outages."""

    def condition(self, address: Address) -> OutageStatus:
        """Return the effects of an outage on a session. Calls no server."""
