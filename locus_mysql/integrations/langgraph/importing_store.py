"""Moving over from the store of the package ``langgraph-checkpoint-mysql``: `LangGraphStoreImport`.

Its table (version 3.0.0) is ``store``: a row for each item, its namespace as labels with periods between them, its
value as JSON. Its collation takes labels and keys that differ in case or accents alone for one, so it holds one of
them, and that is moved as it is written there. That package need not be installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.memories.moving import KeptRow
from ...drivers.interface import Row
from ...engine.asynchronous import AsyncEngine
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, SchemaMismatch
from ...families.memories.arguments import encode_value
from ...families.memories.lines import default_text
from ...families.memories.moving import KeptItem, time_text
from ...families.memories.namespaces import encoded_key, path_of
from ...families.memories.restoring import write_whole
from ...families.memories.store import MemoryProcedures
from ...runtime.database import Database
from ...runtime.exporting import Tally
from ..counting import counted

#: Items that are read and written at a time.
_ITEMS_AT_ONCE = 200

#: Items between two lines of progress.
_PROGRESS_EVERY = 2_000

_COLUMNS = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'store'
"""
_NEEDED = {"prefix", "key", "value", "created_at", "updated_at"}

_COUNT = "SELECT COUNT(*), CAST(MAX(updated_at) AS CHAR) FROM store"

# In the order of the primary key, by the table's own collation. A time may be NULL, if somebody wrote it.
_PAGE = """
SELECT s.prefix, s.`key`, s.value,
       CAST(COALESCE(s.created_at, s.updated_at, '1970-01-01') AS DATETIME(6)),
       CAST(COALESCE(s.updated_at, s.created_at, '1970-01-01') AS DATETIME(6))
  FROM store s<after>
 ORDER BY s.prefix, s.`key`
 LIMIT %s
"""
_AFTER = "\n WHERE s.prefix > %s OR (s.prefix = %s AND s.`key` > %s)"


@dataclass(slots=True)
class StoreSummary:
    """What an import did, or would do.

    Args:
        dry_run: Whether it only counted.
        found: How many items the source has.
        restored: What became of those that were written or compared.
        refused: How many cannot be kept here.
        changed: Whether the source was written to meanwhile.
    """

    dry_run: bool
    found: int = 0
    restored: Tally = field(default_factory=Tally)
    refused: int = 0
    changed: bool = False

    @property
    def complete(self) -> bool:
        """Whether all that the source had at the end is in the target, the same."""
        return not (self.restored.differing or self.refused or self.changed)

    def __str__(self) -> str:
        if self.dry_run:
            return f"Would copy {counted(self.found, 'item')}, or pass over those that are there already."
        parts = [f"Copied {counted(self.restored.written, 'item')}"]
        if self.restored.present:
            parts.append(f"{self.restored.present} there already")
        if self.restored.differing:
            parts.append(f"{self.restored.differing} left alone, as they are there as something else")
        if self.refused:
            parts.append(f"{self.refused} that cannot be kept here")
        if self.changed:
            parts.append("the source was written to meanwhile, so run it again")
        return ", ".join(parts) + "."


class LangGraphStoreImport:
    """Copies the items of that package's store, with their times. May be repeated: it goes on where it stopped.

    Each item is read from the target again and compared. One that is there as something else, as it was put there
    since, is left alone. The source is only read. It has no embeddings; an item has some when it is put again by a
    store with an ``index``.

    Args:
        source: The server and database of that package's table.
        target: Where to copy to, and whose (``tenant``).
        dry_run: Only count what would be copied; writes nothing and makes no tables.
        tell: Told of progress, and of what is not copied.
    """

    def __init__(
        self,
        source: MySQLConfig,
        target: MySQLConfig,
        *,
        dry_run: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = AsyncEngine(source)
        self._source_database = source.database
        self._target = target
        self._procedures = MemoryProcedures(target)
        self._tell = tell
        self._summary = StoreSummary(dry_run)

    async def run(self) -> StoreSummary:
        """Copy all there is.

        Raises:
            SchemaMismatch: The source does not have that package's table.
            LocusMySQLError: A server cannot be used. Run it again: it goes on where it stopped.
        """
        try:
            before = await self._source.run(check(self._source_database))
            self._summary.found = before[0]
            if not self._summary.dry_run:
                async with Database(self._target) as database:
                    read = await self._copy(database)
                after = await self._source.run(check(self._source_database))
                self._summary.changed = before != after or read != after[0]
        finally:
            await self._source.close()
        return self._summary

    async def _copy(self, database: Database) -> int:
        after: tuple[str, str] | None = None
        read = 0
        while rows := await self._source.run(page(after, _ITEMS_AT_ONCE)):
            items = [item for item in map(self._item_of, rows) if item is not None]
            await write_whole(database, self._procedures, items, self._summary.restored, self._tell)
            after = (cast(str, rows[-1][0]), cast(str, rows[-1][1]))
            read += len(rows)
            if read % _PROGRESS_EVERY == 0:
                self._tell(f"{read} of {self._summary.found} items …")
        return read

    def _item_of(self, row: Row) -> KeptItem | None:
        prefix, key, text, created_at, updated_at = row
        try:
            value = json.loads(cast(str, text))
            kept = KeptRow(
                path_of(tuple(cast(str, prefix).split("."))),
                encoded_key(key),
                encode_value(value),
                None,
                1,
                None,
                default_text(value),
                time_text(cast(datetime, created_at)),
                time_text(cast(datetime, updated_at)),
                None,
            )
        except InvalidInput as error:
            self._summary.refused += 1
            self._tell(f"Item {key!r} in {prefix!r} cannot be kept here: {error}")
            return None
        return KeptItem(kept)


def check(database: str) -> Operation[tuple[int, str | None]]:
    """See that the table is there, with the columns that are read; how many items it has, and the time of the newest.

    Args:
        database: To name it.

    Raises:
        SchemaMismatch: It is not.
    """
    (found,) = yield Batch.of(Statement(_COLUMNS.strip()))
    if missing := _NEEDED - {str(row[0]).casefold() for row in found.rows}:
        raise SchemaMismatch(
            f"Database {database!r} has no table 'store' as langgraph-checkpoint-mysql makes it (missing: "
            f"{', '.join(sorted(missing))}). Name its database with --source-dsn."
        )
    (count,) = yield Batch.of(Statement(_COUNT))
    items, newest = count.rows[0]
    return cast(int, items), cast("str | None", newest)


def page(after: tuple[str, str] | None, limit: int) -> Operation[Sequence[Row]]:
    """Rows of the table, behind a namespace and key."""
    text = _PAGE.strip().replace("<after>", _AFTER if after else "")
    (found,) = yield Batch.of(Statement(text, (*((after[0], *after) if after else ()), limit)))
    return found.rows
