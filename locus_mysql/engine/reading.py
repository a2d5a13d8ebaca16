"""How much a piece of work may take of the database: `ReadLimit`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from ..drivers.interface import AsyncConnection, Traffic
from .operation import Batch


class Turns(Protocol):
    """Says when a piece of work may have a connection."""

    async def enter(self, tenant: Hashable) -> None:
        """Wait until a tenant may have one."""

    def leave(self, tenant: Hashable) -> None:
        """It needs the connection no more."""


class ReadLimit:
    """The bytes that all answers to one piece of work may have together, until it writes.

    Once it has sent a write there is no limit: it could not be begun anew elsewhere without writing twice.

    Args:
        most_bytes: How many.
        turns: Asked before each connection that is taken; None: there is no need.
        tenant: Whose work it is.
    """

    def __init__(self, most_bytes: int, turns: Turns | None = None, tenant: Hashable = None) -> None:
        self.left = most_bytes
        self._turns = turns
        self._tenant = tenant
        #: Whether it has sent anything but reads.
        self.wrote = False

    async def enter(self) -> None:
        """Wait until a connection may be taken; then `leave` must be called."""
        if self._turns is not None:
            await self._turns.enter(self._tenant)

    def leave(self) -> None:
        """The connection was given back."""
        if self._turns is not None:
            self._turns.leave(self._tenant)

    def set_at(self, connection: AsyncConnection, batch: Batch) -> None:
        """Have a connection keep to what is left, for this batch."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        self.wrote = self.wrote or not batch.only_reads
        if traffic is not None and not self.wrote:
            traffic.most_received = traffic.received_bytes + self.left

    def count(self, connection: AsyncConnection) -> None:
        """Take off what a connection has received since it was lent."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        if traffic is not None:
            self.left -= traffic.received_bytes


#: The limit of what runs in this context; None: there is none.
READ_LIMIT: ContextVar[ReadLimit | None] = ContextVar("READ_LIMIT", default=None)


@contextmanager
def limited_reads(most_bytes: int, turns: Turns | None = None, tenant: Hashable = None) -> Iterator[ReadLimit]:
    """Limit what is read within the block, and have it wait for its turns. Beyond it `errors.AnswerTooLarge` is raised.

    Args:
        most_bytes: See `ReadLimit`, as for the others.
        turns: See there.
        tenant: See there.
    """
    limit = ReadLimit(most_bytes, turns, tenant)
    token = READ_LIMIT.set(limit)
    try:
        yield limit
    finally:
        READ_LIMIT.reset(token)
