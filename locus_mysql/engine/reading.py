"""How much a piece of work may read from the database: `ReadLimit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..drivers.interface import AsyncConnection, Traffic
from .operation import Batch


class ReadLimit:
    """The bytes that all answers to one piece of work may have together, until it writes.

    Once it has sent a write there is no limit: it could not be begun anew elsewhere without writing twice.

    Args:
        most_bytes: How many.
    """

    def __init__(self, most_bytes: int) -> None:
        self.left = most_bytes
        #: Whether it has sent anything but reads.
        self.wrote = False

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
def limited_reads(most_bytes: int) -> Iterator[ReadLimit]:
    """Limit what is read within the block. `errors.AnswerTooLarge` is raised beyond it."""
    limit = ReadLimit(most_bytes)
    token = READ_LIMIT.set(limit)
    try:
        yield limit
    finally:
        READ_LIMIT.reset(token)
