"""Families as the two ends of a transfer, a page of records at a time: `FamilyPages`, `FamilyWriter`."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ..engine.retry import Backoff
from ..runtime.database import Database
from ..runtime.transfer import RecordPage, Source, Target, TransferReport
from .engine import UnitSource, UnitTarget

#: Limits of a page, and of one write.
MAX_RECORDS, MAX_BYTES = 500, 4_000_000


class FamilyPages(UnitSource[RecordPage]):
    """Reads a family's records as pages of lines.

    Args:
        source: The family's source.
        database: The database of its tables.
        after: Position to start after; None for the beginning.
    """

    def __init__(self, source: Source, database: Database, after: object = None) -> None:
        self._source = source
        self._database = database
        self._after = after

    async def open(self) -> int:
        """Create or check the tables; return the number of records."""
        return await self._source.count(self._database)

    async def units(self) -> AsyncGenerator[RecordPage, None]:
        """Read the pages, shorter ones where records are large."""
        after, limit = self._after, 100
        backoff = Backoff("A page of records ended where the page before it had ended")
        while True:
            page = await self._source.page(self._database, after, min(limit, MAX_RECORDS))
            if page.last is None:
                return
            yield page
            after = page.last
            backoff.compare(after)
            size = sum(map(len, page.records))
            limit = max(1, limit // 4) if size > MAX_BYTES else min(MAX_RECORDS, 2 * limit)


class FamilyWriter(UnitTarget[RecordPage]):
    """Writes pages of records into a family's tables.

    Args:
        target: The family's target.
        database: The database of its tables.
    """

    def __init__(self, target: Target, database: Database) -> None:
        self._target = target
        self._database = database

    async def write(self, page: RecordPage, report: TransferReport) -> None:
        """Write a page."""
        for damage in page.damaged:
            report.leave_out(damage)
        if page.records:
            await self._target.write(self._database, page.records, report)
