"""The protocol of a storage: `Storage`; and of one whose outages are bridged: `MayDegrade`."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from ..calls import Address, Call, Reply


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
