"""Exports, imports and copies of any family, derived from its `Tables`: `RowTransfer`.

A line is a row: ``{"owner": [values]}``, or ``{"part": table, "row": [values]}`` of the owner before it. The first line
names the family, its layout, the tenant and the selection. Bytes are in base 64. Of sealed bytes, a line has the
content, so a file is clear text, and may be imported for another tenant and with other keys.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from ..config import MySQLConfig
from ..engine.operation import Batch, Operation
from ..errors import InvalidInput, UsageError
from ..runtime.arguments import check_text
from ..runtime.checksummed_jsonl import Head, checksummed
from ..runtime.database import Database
from ..runtime.sealing import fetching_keys, refuse_clear_tables
from ..runtime.server_times import as_sql_time
from ..runtime.transfer import RecordPage, TransferReport
from .moving import Moving, OwnerRecord, PartRecord, Position, Record, Restart
from .owner_reader import OwnerReader
from .owner_writer import OwnerWriter
from .row_statements import Selection
from .tables import Tables

T = TypeVar("T")

#: The format in the first line.
FORMAT = "locus-mysql rows 1"

_RESTART = {"restart": True}


class RowTransfer:
    """Exports and imports a family. See `Transfer`.

    Args:
        tables: The family's tables.
        config: The options, with the tenant.
    """

    noun = "row"

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self._tables = tables
        self._config = config

    def source(
        self,
        threads: Sequence[str] | None = None,
        pattern: str = "*",
        since: datetime | None = None,
        namespace: Sequence[str] = (),
        **others: Any,
    ) -> RowSource:
        """Return the source that reads owners with all their rows.

        Args:
            threads: The names of the owners; None for all.
            pattern: Only owners whose names match this glob.
            since: Only owners that were written to since, and some from up to an hour before.
            namespace: Only owners in the namespace with these labels, and below.
            others: None are supported.
        """
        owner, family = self._tables.owner, self._tables.schema.family
        refused = dict(others)
        if not owner.named:
            refused |= {} if threads is None else {"threads": threads}
            refused |= {} if pattern == "*" else {"pattern": pattern}
        if not owner.updated and since is not None:
            refused["since"] = since
        if owner.spaces is None:
            refused |= {"namespace": namespace} if namespace else {}
        elif namespace:
            owner.spaces.path_of(namespace)  # refuses what is no namespace
        if refused:
            raise UsageError(f"An export of {family} cannot be limited by {', '.join(sorted(refused))}.")
        names = None if threads is None else tuple(sorted({check_text(one, "A name") for one in threads}))
        time = None if since is None else as_sql_time(since)
        selection = Selection(names, check_text(pattern, "Pattern"), time, tuple(namespace))
        return RowSource(self._tables, self._config, selection)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT and head.content.get("family") == self._tables.schema.family

    def target(self, head: Head, *, overwrite: bool = False, verify: bool = False) -> RowTarget:
        """See `Transfer.target`."""
        layout = self._tables.schema.layout_version
        if head.content.get("layout") != layout:
            raise InvalidInput(
                f"The rows have layout {head.content.get('layout')!s:.20}, and the tables have layout {layout}. "
                "Export them again after migrating the tables."
            )
        return RowTarget(self._tables, self._config, overwrite=overwrite, verify=verify)


class RowSource:
    """Reads owners in the order of their keys, each before its parts.

    Args:
        tables: The family's tables.
        config: The options, with the tenant.
        selection: Which owners.
    """

    def __init__(self, tables: Tables, config: MySQLConfig, selection: Selection) -> None:
        self._config = config
        self._moving = Moving(tables, config)
        self._selection = selection
        self._reader: OwnerReader | None = None
        self._ended = False
        self._last: OwnerRecord | None = None
        chosen = {name: value for name, value in selection._asdict().items() if value not in (None, "*", ())}
        schema = tables.schema
        self.head = checksummed(
            {"format": FORMAT, "family": schema.family, "layout": schema.layout_version, "tenant": config.tenant}
            | chosen
        )

    def position_of(self, content: Mapping[str, Any]) -> Position:
        """Return the position of the record in a line; call it for each line of a file, in their order."""
        record = record_of(self._moving, content)
        if isinstance(record, OwnerRecord):
            self._last = record
        if self._last is None:
            raise InvalidInput("The line belongs to no owner.")
        if isinstance(record, PartRecord):
            return Position(self._last.values, record.role, record.values)
        return Position(self._last.values, void=isinstance(record, Restart))

    async def count(self, database: Database) -> int:
        """Return the number of rows."""

        def counting() -> Operation[int]:
            counts = self._moving.sql.count(self._moving.tenant, self._selection)
            results = yield Batch(counts, atomic=False)
            return sum(int(str(result.rows[0][0])) for result in results)

        return await self._run(database, counting())

    async def page(self, database: Database, after: Position | None, limit: int) -> RecordPage:
        """Return the lines after those of the last page. Only the first call uses the position."""
        page = RecordPage()
        if self._ended:
            return page
        if self._reader is None:
            self._reader = OwnerReader(self._moving, self._selection, after)
        while not page.records:
            found = await self._run(database, self._reader.page())
            page.damaged += found.damaged
            page.records += map(line_of, found.records)
            page.last = found.last
            if found.last is None:
                self._ended = True
                page.last = "end" if page.damaged else None
                break
        return page

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.tables.schema, self._config.ddl_mode)


class RowTarget:
    """Writes owners that are missing, and compares the others.

    Args:
        tables: The family's tables.
        config: The options, with the tenant.
        overwrite: Whether owners that differ are replaced.
        verify: Whether all rows are compared, also those that were just written.
        options: Of `OwnerWriter`.
    """

    def __init__(self, tables: Tables, config: MySQLConfig, *, overwrite: bool, verify: bool, **options: Any) -> None:
        self._config = config
        self._options = options
        self._moving = Moving(tables, config)
        refuse_clear_tables(config, tables.schema)
        self._overwrite, self._verify = overwrite, verify
        self._writer: OwnerWriter | None = None

    def read(self, content: Mapping[str, Any]) -> Record:
        """Return the record in a line."""
        return record_of(self._moving, content)

    async def write(self, database: Database, records: Sequence[Record], report: TransferReport) -> None:
        """Take records in the order of the source. `finish` writes the last ones."""
        if self._writer is None:
            given = {"overwrite": self._overwrite, "verify": self._verify, **self._options}
            self._writer = OwnerWriter(self._moving, report, **given)
        await self._run(database, self._writer.write(records))

    async def finish(self, database: Database) -> None:
        """Write what is left, after the source has ended."""
        if self._writer is not None:
            await self._run(database, self._writer.finish())

    async def _run(self, database: Database, operation: Operation[None]) -> None:
        steps = fetching_keys(operation, self._config)
        await database.asynchronous.run(steps, self._moving.tables.schema, self._config.ddl_mode)


def line_of(record: Record) -> bytes:
    """Return the line of a record."""
    if isinstance(record, Restart):
        return checksummed(_RESTART)
    values = [{"b": b64encode(one).decode()} if isinstance(one, bytes) else one for one in record.values]
    if isinstance(record, OwnerRecord):
        return checksummed({"owner": values})
    return checksummed({"part": record.role, "row": values})


def record_of(moving: Moving, content: Mapping[str, Any]) -> Record:
    """Return the record in a line.

    Raises:
        InvalidInput: It is none of the family.
    """
    if content == _RESTART:
        return Restart()
    if content.keys() == {"owner"}:
        return OwnerRecord(_values_of(content["owner"], len(moving.sql.owners.columns)))
    role = content.get("part")
    if content.keys() != {"part", "row"} or not isinstance(role, str) or role not in moving.sql.parts:
        raise InvalidInput("A line is a row of a table of the family, or the owner of the rows after it.")
    table = moving.sql.parts[role]
    return PartRecord(role, _values_of(content["row"], len(table.columns) + len(table.bases)))


def _values_of(values: Any, number: int) -> tuple[Any, ...]:
    if not isinstance(values, list) or len(values) != number:
        raise InvalidInput(f"The row must have {number} values.")
    return tuple(map(_value_of, values))


def _value_of(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"b"} and isinstance(value["b"], str):
        try:
            return b64decode(value["b"], validate=True)
        except ValueError:
            raise InvalidInput("Bytes must be in base 64.") from None
    if isinstance(value, str):
        return check_text(value, "A value")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidInput("A value is null, a whole number, text, or bytes in base 64.")
