"""Imports items from the store of the package ``langgraph-checkpoint-mysql``: `import_store`.

Its table (version 3.0.0) is ``store``: a row for each item, its namespace as labels separated by periods, its value as
JSON. Its collation treats labels and keys that differ only in case or accents as equal, so the table holds one of them,
which is copied as it is written there. That package need not be installed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import NamedTuple

from ....config import MySQLConfig
from ....dialect import Query
from ....dialect.memories.moving import KeptRow
from ....engine.asynchronous import AsyncEngine
from ....engine.operation import Operation, fetch
from ....errors import InvalidInput, SchemaMismatch
from ....families.memories.arguments import encode_value
from ....families.memories.lines import default_text
from ....families.memories.moving import KeptItem, time_text
from ....families.memories.namespaces import encoded_key, path_of
from ....families.memories.transfer import ItemTarget
from ....runtime.database import Database
from ....runtime.transfer import RecordPage, TransferReport
from ....transfer.engine import Advance, UnitSource, transfer
from ....transfer.family_pages import FamilyWriter

#: Items that are read and written in one page.
PAGE_ITEMS = 200

_COLUMNS = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'store'
"""
_NEEDED = {"prefix", "key", "value", "created_at", "updated_at"}

_COUNT = "SELECT COUNT(*), CAST(MAX(updated_at) AS CHAR) FROM store"

# In the order of the primary key, by the table's own collation. A time may be NULL if another program wrote it.
_PAGE = """
SELECT s.prefix, s.`key`, s.value,
       CAST(COALESCE(s.created_at, s.updated_at, '1970-01-01') AS DATETIME(6)),
       CAST(COALESCE(s.updated_at, s.created_at, '1970-01-01') AS DATETIME(6))
  FROM store s<after>
 ORDER BY s.prefix, s.`key`
 LIMIT %s
"""
_AFTER = "\n WHERE s.prefix > %s OR (s.prefix = %s AND s.`key` > %s)"


class ColumnRow(NamedTuple):
    """A column of the table."""

    column: str


class CountRow(NamedTuple):
    """The number of items, and the time of the newest write as text."""

    items: int
    newest: str | None


class StoreRow(NamedTuple):
    """An item; ``value`` is JSON text."""

    prefix: str
    key: str
    value: str
    created_at: datetime
    updated_at: datetime


async def import_store(
    source: MySQLConfig, target: MySQLConfig, report: TransferReport, advance: Advance = lambda *_: None
) -> TransferReport:
    """Copy the items of that package's store, with their times. May be repeated: present items are skipped.

    Each item is read from the target again and compared. One that differs there, because it was changed since, is left
    unchanged. The source is only read. It has no embeddings; an item gets them when it is put again by a store with an
    ``index``.

    Args:
        source: The server and database of that package's table.
        target: The server and tenant to copy to.
        report: Filled during the import. If its ``dry_run`` is true, items are only counted, and no tables are created.
        advance: Called after each page.

    Raises:
        SchemaMismatch: The source does not have that package's table.
        LocusMySQLError: A server cannot be used. Run the import again: it continues.
    """
    reading = PackageStore(source)
    try:
        if report.dry_run:
            report.copied = await reading.open()
            return report
        async with Database(target) as database:
            return await transfer(reading, FamilyWriter(ItemTarget(target), database), report, advance=advance)
    finally:
        await reading.close()


class PackageStore(UnitSource[RecordPage]):
    """Reads that package's table.

    Args:
        config: The server and database.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._engine = AsyncEngine(config)
        self._database = config.database
        self._seen = CountRow(0, None)
        self._read = 0

    async def open(self) -> int:
        """Check the table; return the number of items.

        Raises:
            SchemaMismatch: The database does not have that package's table.
        """
        self._seen = await self._engine.run(check(self._database))
        return self._seen.items

    async def units(self) -> AsyncGenerator[RecordPage, None]:
        """Read the items, a page at a time."""
        after: tuple[str, str] | None = None
        while rows := await self._engine.run(page(after, PAGE_ITEMS)):
            after = (rows[-1].prefix, rows[-1].key)
            self._read += len(rows)
            found = RecordPage(last=after)
            for row in rows:
                try:
                    found.records.append(item_of(row))
                except InvalidInput as error:
                    found.damaged.append(f"Item {row.key!r} in {row.prefix!r} cannot be stored here: {error}")
            yield found

    async def changed(self) -> int:
        """Return 1 if an item was written or deleted meanwhile."""
        now = await self._engine.run(check(self._database))
        return int(now != self._seen or self._read != now.items)

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.close()


def item_of(row: StoreRow) -> KeptItem:
    """Return the item of a row.

    Raises:
        InvalidInput: It cannot be stored.
    """
    value = json.loads(row.value)
    kept = KeptRow(
        path=path_of(tuple(row.prefix.split("."))),
        key=encoded_key(row.key),
        value=encode_value(value),
        metadata=None,
        version=1,
        ttl_us=None,
        text=default_text(value),
        created_at=time_text(row.created_at),
        updated_at=time_text(row.updated_at),
        expires_at=None,
    )
    return KeptItem(kept)


def check(database: str) -> Operation[CountRow]:
    """Check the table and its columns; return the number of items, and the time of the newest.

    Args:
        database: Its name, for errors.

    Raises:
        SchemaMismatch: There is no such table.
    """
    columns = yield from fetch(Query(_COLUMNS.strip(), row=ColumnRow))
    if missing := _NEEDED - {row.column.casefold() for row in columns}:
        raise SchemaMismatch(
            f"Database {database!r} has no table 'store' as langgraph-checkpoint-mysql makes it (missing: "
            f"{', '.join(sorted(missing))}). Name its database with --source-dsn."
        )
    (count,) = yield from fetch(Query(_COUNT, row=CountRow))
    return count


def page(after: tuple[str, str] | None, limit: int) -> Operation[list[StoreRow]]:
    """Return rows of the table, after a namespace and key."""
    text = _PAGE.strip().replace("<after>", _AFTER if after else "")
    return (yield from fetch(Query(text, (*((after[0], *after) if after else ()), limit), row=StoreRow)))
