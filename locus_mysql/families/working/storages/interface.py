"""What a storage must do: `Storage`; and what one tells that may be away: `MayDegrade`."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from ..calls import Address, Call, Reply


@runtime_checkable
class Storage(Protocol):
    """Keeps sessions. Has an asynchronous and a blocking side; each may be used from any event loop, or thread.

    Both sides raise:
        Unavailable: It did not answer in time. Whether the call was carried out is not known; the same call with the
            same token may be made again for a quarter of an hour, and is then carried out once.
        CapacityExceeded: The session would exceed a limit; nothing was changed.
        InvalidInput, NotFound: See the commands; nothing was changed.
        StampMoved: The session has another stamp than the call's ``if_stamp``; nothing was changed.
    """

    async def execute(self, call: Call) -> Reply:
        """Carry out a call: all its commands or none."""

    def execute_blocking(self, call: Call) -> Reply:
        """The same, blocking."""

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove sessions that have expired, each whole; how many. They are no longer seen anyway.

        Args:
            limit: At most this many.
        """

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """The same, blocking."""

    async def forget_tenant(self, tenant: str) -> int:
        """Remove all sessions of a tenant with all that they hold; how many. Those begun meanwhile may stay.

        Made again, it removes what is left. Random tokens by which repeated calls are recognised may stay for a quarter
        of an hour, and the tenant's name with them.

        Args:
            tenant: Whose.
        """

    def forget_tenant_blocking(self, tenant: str) -> int:
        """The same, blocking."""

    async def aclose(self) -> None:
        """Close the connections that it opened."""

    def close(self) -> None:
        """Close those of the blocking side."""


class Condition(NamedTuple):
    """Whether a storage serves a session.

    Args:
        degraded: Whether another one serves it, as it is away.
        pending: How many writes wait for it to be back.
        lost: What was not written when it was back, as somebody else had written meanwhile.
    """

    degraded: bool = False
    pending: int = 0
    lost: tuple[str, ...] = ()


@runtime_checkable
class MayDegrade(Protocol):
    """A storage that may be away while another one serves in its place."""

    def condition(self, address: Address) -> Condition:
        """How it is with a session now. Asks no server."""
