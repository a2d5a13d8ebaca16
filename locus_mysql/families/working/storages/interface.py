"""The protocol of a storage: `Storage`; of one whose outages are bridged: `MayDegrade`; and a base: `TwoSided`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Generator
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from ....runtime.arguments import check_tenant
from ..calls import Address, Call, Reply
from .fair_lock import FairLock, SessionLocks

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
        """See `Storage.sweep`."""

    def forget_tenant(self, tenant: str) -> Generator[Any, Any, int]:
        """See `Storage.forget_tenant`."""


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
