"""Limits of what a request may read from the database: `ReadLimit`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from ..drivers.interface import Traffic
from .operation import Batch


class Turns(Protocol):
    """Decides when a request may take a connection."""

    async def enter(self, tenant: Hashable) -> None:
        """Wait until a request of a tenant may take one."""

    def leave(self, tenant: Hashable) -> None:
        """Record that the request has returned its connection."""


class ReadLimit:
    """The maximum total size of all answers to one request, until it writes.

    Once the request has sent a write there is no limit: it could not be restarted elsewhere without writing twice.

    Args:
        most_bytes: The number of bytes.
        turns: Grants each connection; None if connections are taken without waiting for a turn.
        tenant: The tenant of the request.
    """

    def __init__(self, most_bytes: int, turns: Turns | None = None, tenant: Hashable = None) -> None:
        self.left = most_bytes
        self._turns = turns
        self._tenant = tenant
        #: Whether the request has sent a write.
        self.wrote = False

    async def enter(self) -> None:
        """Wait until a connection may be taken; then `leave` must be called."""
        if self._turns is not None:
            await self._turns.enter(self._tenant)

    def leave(self) -> None:
        """Record that the connection was returned."""
        if self._turns is not None:
            self._turns.leave(self._tenant)

    def set_at(self, connection: object, batch: Batch) -> None:
        """Limit the answer to a batch on this connection to the remaining bytes."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        self.wrote = self.wrote or not batch.only_reads
        if traffic is not None and not self.wrote:
            traffic.most_received = traffic.received_bytes + self.left

    def count(self, connection: object) -> None:
        """Subtract what a connection has received since it was lent."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        if traffic is not None:
            self.left -= traffic.received_bytes


#: The limit of the request that runs in this context; None if there is none.
READ_LIMIT: ContextVar[ReadLimit | None] = ContextVar("READ_LIMIT", default=None)


@contextmanager
def limited_reads(most_bytes: int, turns: Turns | None = None, tenant: Hashable = None) -> Iterator[ReadLimit]:
    """Limit the bytes that the block reads, and make it wait for its turns.

    Beyond the limit, `errors.AnswerTooLarge` is raised.

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
