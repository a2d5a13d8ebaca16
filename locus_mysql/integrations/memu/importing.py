"""Moving over from the tables of memU's unmerged MySQL pull request: `MemuImport`.

They are ``resources``, ``memory_categories``, ``memory_items`` and ``category_items``, with embeddings as JSON text and
times in UTC to the second; ``happened_at`` and ``extra`` came later, and need not be there. memU need not be installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from ...config import MySQLConfig
from ...database.database import Database
from ...database.exporting import Tally
from ...dialect import Statement
from ...dialect.memu.tables import CORE, NAMES
from ...drivers.interface import Row
from ...engine.asynchronous import AsyncEngine
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, SchemaMismatch, UsageError
from ..counting import counted
from .database import own_prefix
from .exporting import KINDS, MemuTarget
from .scope_names import kinds_of

#: Records that are read and written at a time.
_AT_ONCE = 100

#: Records between two lines of progress.
_PROGRESS_EVERY = 2_000

_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('resources', 'memory_categories', 'memory_items', 'category_items')
"""
_COUNT = "SELECT COUNT(*), CAST(MAX(updated_at) AS CHAR) FROM `{table}`"

# Relies on the primary key, in the order of its own collation.
_PAGE = "SELECT {columns} FROM `{table}` r{after} ORDER BY r.id LIMIT %s"
_AFTER = " WHERE r.id > %s"

#: Columns that need not be there.
_LATER = frozenset(("happened_at", "extra"))


@dataclass(slots=True)
class MemuSummary:
    """What an import did, or would do.

    Args:
        dry_run: Whether it only counted.
        found: How many records the source has.
        done: What became of them.
        damaged: How many could not be taken as they are.
        changed: Whether the source was written to meanwhile.
    """

    dry_run: bool
    found: int = 0
    done: Tally = field(default_factory=Tally)
    damaged: int = 0
    changed: bool = False

    @property
    def complete(self) -> bool:
        """Whether all that the source had at the end is in the target, the same."""
        return not (self.done.differing or self.damaged or self.changed)

    def __str__(self) -> str:
        if self.dry_run:
            return f"Would copy {counted(self.found, 'record')}, or pass over those that are there already."
        parts = [f"Copied {counted(self.done.written, 'record')}"]
        if self.done.present:
            parts.append(f"{self.done.present} there already")
        if self.done.differing:
            parts.append(f"{self.done.differing} left alone, as they are there as something else")
        if self.damaged:
            parts.append(f"{self.damaged} that could not be read or kept as they are")
        if self.changed:
            parts.append("the source was written to meanwhile, so run it again")
        return ", ".join(parts) + "."


class MemuImport:
    """Copies the records of those tables, with their ids and times. May be repeated: it goes on where it stopped.

    Each record is read from the target again and compared. Of several categories of one name and scope, which those
    tables let happen, one is kept, and the items of all are linked with it. The source is only read.

    Args:
        source: The server and database of those tables.
        target: Where to copy to, and whose (``tenant``).
        scope: The fields of the user model, as `scope_names` says.
        dry_run: Only count what would be copied; writes nothing and makes no tables.
        tell: Told of progress, and of what is not copied as it is.
    """

    def __init__(
        self,
        source: MySQLConfig,
        target: MySQLConfig,
        *,
        scope: Sequence[str] = ("user_id",),
        dry_run: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        same_place = source.database == target.database and source.endpoints == target.endpoints
        if same_place and not own_prefix(target).table_prefix:
            raise UsageError(
                "The tables would have the names of those that are copied. Name their database with --source-dsn, or "
                "give the new tables a --prefix."
            )
        self._source = AsyncEngine(source)
        self._source_database = source.database
        self._database = target
        self._scope = tuple(kinds_of(scope))
        self._target = MemuTarget(target, scope, tell)
        self._tell = tell
        self._summary = MemuSummary(dry_run)

    async def run(self) -> MemuSummary:
        """Copy all there is.

        Raises:
            SchemaMismatch: The source does not have those tables, or a field of the scope is no column of them.
            LocusMySQLError: A server cannot be used. Run it again: it goes on where it stopped.
        """
        try:
            columns = await self._source.run(columns_of(self._source_database, self._scope, self._tell))
            before = [await self._source.run(count_of(NAMES[role])) for role in KINDS.values()]
            self._summary.found = sum(count for count, _ in before)
            if not self._summary.dry_run:
                async with Database(self._database) as database:
                    for role in KINDS.values():
                        await self._copy(database, role, columns[role])
                after = [await self._source.run(count_of(NAMES[role])) for role in KINDS.values()]
                self._summary.changed = before != after
        finally:
            await self._source.close()
        return self._summary

    async def _copy(self, database: Database, role: str, columns: Sequence[str]) -> None:
        after: str | None = None
        read = 0
        while rows := await self._source.run(page_of(NAMES[role], columns, after, _AT_ONCE)):
            records = []
            for row in rows:
                record = self._record_of(role, dict(zip(columns, row, strict=True)))
                if record is not None:
                    records.append((role, record))
            await self._target.write(database, records, self._summary.done)
            after = cast(str, rows[-1][0])
            read += len(rows)
            if read % _PROGRESS_EVERY == 0:
                self._tell(f"{read} rows of {NAMES[role]} …")

    def _record_of(self, role: str, record: dict[str, Any]) -> dict[str, Any] | None:
        """A row as a record; None if it cannot be kept."""
        what = f"Row {record['id']!r} of {NAMES[role]}"
        for name, value in record.items():
            if isinstance(value, datetime):
                record[name] = value.replace(tzinfo=UTC)
        if isinstance(record.get("embedding"), str):
            try:
                record["embedding"] = _numbers(record["embedding"])
            except ValueError:
                self._tell(f"{what}: its embedding cannot be read; it is copied without.")
                self._summary.damaged += 1
                record["embedding"] = None
        try:
            if role == "items":
                record["extra"] = _extra(record.get("extra"))
            return self._target.checked(role, record)
        except InvalidInput as error:
            self._tell(f"{what} cannot be kept here: {error}")
            self._summary.damaged += 1
            return None


def columns_of(
    database: str, scope: Sequence[str], tell: Callable[[str], None] = lambda _: None
) -> Operation[dict[str, list[str]]]:
    """The columns to read of each table, ``id`` first.

    Args:
        database: Its name, for errors.
        scope: The fields of the user model.
        tell: Told of columns that are not read.

    Raises:
        SchemaMismatch: A table or a column is missing, or they are this package's own.
    """
    (found,) = yield Batch.of(Statement(_COLUMNS.strip()))
    there: dict[str, set[str]] = {}
    for table, column in found.rows:
        there.setdefault(str(table), set()).add(str(column))
    chosen: dict[str, list[str]] = {}
    for role in KINDS.values():
        table, columns = NAMES[role], there.get(NAMES[role], set())
        if "locus_tenant" in columns:
            raise SchemaMismatch(
                f"Table {table!r} of database {database!r} is this package's own. Move it by `memory export --memu`."
            )
        if missing := [name for name in (*CORE[role], *scope) if name not in columns and name not in _LATER]:
            raise SchemaMismatch(
                f"Database {database!r} has no table {table!r} as memU's pull request makes it (missing: "
                f"{', '.join(missing)}). Name its database with --source-dsn, and the fields of its user model with "
                "--scope."
            )
        chosen[role] = [name for name in (*CORE[role], *scope) if name in columns]
        if others := sorted(columns.difference(chosen[role])):
            tell(f"{table}: not copied are the columns {', '.join(others)}. Name what is of the user model in --scope.")
    return chosen


def count_of(table: str) -> Operation[tuple[int, str | None]]:
    """How many rows a table has, and when one was last written."""
    (found,) = yield Batch.of(Statement(_COUNT.format(table=table)))
    count, newest = found.rows[0]
    return cast(int, count), cast("str | None", newest)


def page_of(table: str, columns: Sequence[str], after: str | None, limit: int) -> Operation[Sequence[Row]]:
    """Rows of a table behind an id."""
    names = ", ".join(f"r.`{name}`" for name in columns)
    text = _PAGE.format(columns=names, table=table, after=_AFTER if after is not None else "")
    (found,) = yield Batch.of(Statement(text, (*(() if after is None else (after,)), limit)))
    return found.rows


def _numbers(text: str) -> list[float] | None:
    """The numbers of JSON text.

    Raises:
        ValueError: It is no list of numbers.
    """
    held = json.loads(text)
    if held is not None and not (isinstance(held, list) and all(type(one) in {int, float} for one in held)):
        raise ValueError
    return held


def _extra(text: Any) -> Mapping[str, Any]:
    try:
        extra = {} if text is None else json.loads(text)
    except (TypeError, ValueError):
        extra = None
    if not isinstance(extra, dict):
        raise InvalidInput("Its extra is no JSON object.")
    return extra
