"""Copies of a family's records by pages: `FamilyPages` and `FamilyWriter`, its two ends, and `copy_family`."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ..engine.retry import Backoff
from ..runtime.checksummed_jsonl import Head, content_of
from ..runtime.database import Database
from ..runtime.transfer import RecordPage, Source, Target, TransferReport
from .engine import Advance, UnitSource, UnitTarget, transfer

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

    async def finish(self) -> None:
        """Write what is left after the last page."""
        await self._target.finish(self._database)


class ParsedPages(UnitSource[RecordPage]):
    """Reads the pages of a family's source as the records that a target of that family writes.

    Args:
        pages: The pages.
        target: The target.
    """

    def __init__(self, pages: FamilyPages, target: Target) -> None:
        self._pages = pages
        self._target = target

    async def open(self) -> int:
        """Return the number of records."""
        return await self._pages.open()

    async def units(self) -> AsyncGenerator[RecordPage, None]:
        """Read the pages."""
        async for page in self._pages.units():
            records = []
            for line in page.records:
                content = content_of(line, 2)
                assert isinstance(content, dict)  # noqa: S101 - a source returns no first and last lines as records
                records.append(self._target.read(content))
            yield RecordPage(records, page.last, page.damaged)


def head_of(source: Source) -> Head:
    """Return the first line of a source's export."""
    head = content_of(source.head, 1)
    assert isinstance(head, Head)  # noqa: S101 - a first line is a head
    return head


async def copy_family(
    source: Source,
    source_database: Database,
    target: Target,
    target_database: Database,
    report: TransferReport,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Copy the records of a family. May be repeated: records that the target has are compared and skipped.

    Args:
        source: Reads the records.
        source_database: Where they are.
        target: Writes them; of the same family.
        target_database: Where it writes.
        report: Filled during the copy. If its ``dry_run`` is true, records are only counted.
        advance: Called after each page.
    """
    pages = FamilyPages(source, source_database)
    if report.dry_run:
        report.copied = await pages.open()
        return report
    parsed = ParsedPages(pages, target)
    return await transfer(parsed, FamilyWriter(target, target_database), report, advance=advance)
