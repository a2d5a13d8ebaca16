"""Rows of any family as source and target, derived from its `Tables`: `RowSource`, `RowTarget`, and `copy_owner`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from ..config import MySQLConfig
from ..engine.operation import Batch, Operation
from ..engine.retry import Backoff
from ..errors import CorruptCheckpoint, InvalidInput, ThreadExists, UsageError, VersionConflict
from ..runtime.arguments import check_text, tenant_of
from ..runtime.database import Database
from ..runtime.sealing import fetching_keys, refuse_clear_tables
from ..runtime.server_rows import as_sql_time
from ..transfer.engine import Advance, TransferReport, UnitSource, UnitTarget, transfer
from .moving import Moving, Page, Position, Restart, plain
from .owner_reader import OwnerReader
from .owner_writer import OwnerWriter
from .row_statements import Selection
from .tables import Row, Tables

T = TypeVar("T")


class Place(NamedTuple):
    """Where reading continues.

    Args:
        table: The number of the table of owners.
        position: Where in it; None for its beginning.
    """

    table: int
    position: Position | None = None


class RowPage(NamedTuple):
    """Records of one table of owners.

    Args:
        table: The number of the table among the family's.
        page: The records.
    """

    table: int
    page: Page


class RowSource(UnitSource[RowPage]):
    """Reads owners in the order of their keys, each before its parts.

    Args:
        tables: The family's tables, one declaration for each table of owners, in the order in which they are read.
        config: The options, with the tenant.
        database: The database of the tables.
        threads: The names of the owners; None for all.
        pattern: Only owners whose names match this glob.
        since: Only owners that were written to since, and some from up to an hour before.
        namespace: Only owners in the namespace with these labels, and below.
        where: Only owners with these values in columns that the user chose.

    Raises:
        UsageError: The family cannot select by one of these.
    """

    def __init__(
        self,
        tables: Sequence[Tables],
        config: MySQLConfig,
        database: Database,
        *,
        threads: Sequence[str] | None = None,
        pattern: str = "*",
        since: datetime | None = None,
        namespace: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._database = database
        self.moving = [Moving(one, config) for one in tables]
        #: Where to begin.
        self.start = Place(0)
        owner, schema = tables[0].owner, tables[0].schema
        where = where or {}
        refused = {
            "threads": threads is not None and not owner.named,
            "pattern": pattern != "*" and not owner.named,
            "since": since is not None and not owner.updated,
            "namespace": bool(namespace) and owner.spaces is None,
            "where": not where.keys() <= owner.fields.keys(),
        }
        if any(refused.values()):
            names = ", ".join(name for name, is_refused in sorted(refused.items()) if is_refused)
            raise UsageError(f"An export of {schema.family} cannot be limited by {names}.")
        if namespace and owner.spaces is not None:
            owner.spaces.path_of(namespace)  # refuses what is no namespace
        self._selection = Selection(
            None if threads is None else tuple(sorted({check_text(one, "A name") for one in threads})),
            check_text(pattern, "Pattern"),
            None if since is None else as_sql_time(since),
            tuple(namespace),
            tuple((name, owner.fields[name](value)) for name, value in sorted(where.items())),
        )
        chosen = {name: value for name, value in self._selection._asdict().items() if value not in (None, "*", ())}
        #: What the first line of a file says.
        self.head = {"family": schema.family, "layout": schema.layout_version, "tenant": tenant_of(config)} | chosen
        if tables[0].scope:
            self.head["scope"] = list(tables[0].scope)

    async def open(self) -> int:
        """Check that the tables exist; return the number of rows."""

        def counting() -> Operation[int]:
            counts = [
                one for moving in self.moving for one in moving.sql.count(tenant_of(self._config), self._selection)
            ]
            results = yield Batch(tuple(counts), atomic=False)
            return sum(int(str(result.rows[0][0])) for result in results)

        check = self.moving[0].tables.check
        if check is not None:
            await self._database.asynchronous.run(check())
        return await self._run(counting())

    async def units(self) -> AsyncGenerator[RowPage, None]:
        """Read the pages."""
        for number in range(self.start.table, len(self.moving)):
            after = self.start.position if number == self.start.table else None
            reader = OwnerReader(self.moving[number], self._selection, after)
            backoff = Backoff("A page of rows ended where the page before it had ended")
            while True:
                page = await self._run(reader.page())
                if page.records or page.damaged:
                    yield RowPage(number, page)
                if page.last is None:
                    break
                backoff.compare((page.last, len(page.records)))

    async def _run(self, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await self._database.asynchronous.run(steps, self.moving[0].tables.schema, self._config.ddl_mode)


class RowTarget(UnitTarget[RowPage]):
    """Writes owners that are missing, and compares the others.

    Args:
        tables: The family's tables; see `RowSource`.
        config: The options, with the tenant.
        database: The database of the tables.
        overwrite: Whether owners that differ are replaced, or a function that decides that from a stored row.
        verify: Whether all rows are compared, also those that were just written.
        options: Of `OwnerWriter`.

    Raises:
        EncryptionError: There are keys, and the family does not encrypt.
        InvalidInput: Its owners cannot be replaced.
    """

    def __init__(
        self,
        tables: Sequence[Tables],
        config: MySQLConfig,
        database: Database,
        *,
        overwrite: bool | Callable[[Row], bool] = False,
        verify: bool = False,
        **options: Any,
    ) -> None:
        self._config = config
        self._database = database
        self.moving = [Moving(one, config) for one in tables]
        schema = tables[0].schema
        refuse_clear_tables(config, schema)
        if overwrite and not tables[0].replaceable:
            raise InvalidInput(f"Rows of {schema.family} are not replaced (--overwrite).")
        self._options = {"overwrite": overwrite, "verify": verify, **options}
        self._writer: OwnerWriter | None = None
        self._table = -1

    async def write(self, unit: RowPage, report: TransferReport) -> None:
        """Take records in the order of the source. `finish` writes the last ones."""
        for damage in unit.page.damaged:
            report.leave_out(damage)
        if unit.table != self._table:
            await self.finish()
            self._table, self._writer = unit.table, OwnerWriter(self.moving[unit.table], report, **self._options)
        assert self._writer is not None  # noqa: S101 - for the type checker
        await self._run(self._writer.write(unit.page.records))

    async def finish(self) -> None:
        """Write what is left of a table, after its last record."""
        if self._writer is not None:
            await self._run(self._writer.finish())

    async def _run(self, operation: Operation[None]) -> None:
        steps = fetching_keys(operation, self._config)
        await self._database.asynchronous.run(steps, self.moving[0].tables.schema, self._config.ddl_mode)


async def copy_rows(
    source: RowSource, target: RowTarget, report: TransferReport, advance: Advance = lambda *_: None
) -> TransferReport:
    """Copy the rows of a family. May be repeated: owners that the target has are compared and skipped.

    Args:
        source: Reads the rows.
        target: Writes them; of the same family.
        report: Filled during the copy. If its ``dry_run`` is true, rows are only counted.
        advance: Called after each page.
    """
    if report.dry_run:
        report.copied = await source.open()
        return report
    return await transfer(source, target, report, advance=advance)


def copy_owner(
    moving: Moving, key: tuple[Any, ...], new_key: tuple[Any, ...], change: Callable[[dict[str, Any], str], None]
) -> Operation[bool]:
    """Copy an owner within its tenant; False if there is none. The copy is visible when it is complete.

    Args:
        moving: The family and the tenant.
        key: The owner's key.
        new_key: That of the copy.
        change: Changes the copied row of the owner, at least its key; it receives the server's time as text too.

    Raises:
        ThreadExists: There is an owner with the new key.
        CorruptCheckpoint: A row is damaged. No copy is left.
        VersionConflict: The owner was written to whenever it was read. No copy is left.
    """
    stored = yield from moving.at([key, new_key])
    exists, copy_exists = (stored.owners.get(one, (None, False))[1] for one in (key, new_key))
    if not exists:
        return False
    if copy_exists:
        raise _exists(moving, new_key)
    report = TransferReport()
    writer = OwnerWriter(moving, report, rename=lambda row: change(row, stored.now))
    pages = yield from OwnerReader(moving).alone(key)
    if pages is None:
        return False
    for page in pages:
        read = yield from page
        if read.damaged:
            yield from writer.write([Restart()])
            if read.last is not None and read.last.void:
                raise VersionConflict(f"{read.damaged[0]} No copy is left.")
            raise CorruptCheckpoint(read.damaged[0])
        yield from writer.write(read.records)
    yield from writer.finish()
    if report.differing or report.present:
        raise _exists(moving, new_key)
    return report.copied > 0


def copy_thread(moving: Moving, source: str, destination: str, ttl_s: float | None, **changed: Any) -> Operation[bool]:
    """Copy a thread within its tenant; see `copy_owner`.

    Args:
        moving: The family and the tenant.
        source: The thread.
        destination: The copy.
        ttl_s: The seconds after which the copy expires; None for never.
        changed: Columns of the thread's row that the copy has other values of.
    """

    def change(row: dict[str, Any], now: str) -> None:
        end = None if ttl_s is None else datetime.fromisoformat(now) + timedelta(seconds=ttl_s)
        row.update(changed, thread_id=destination, updated_at=now, expires_at=plain(end))

    return (yield from copy_owner(moving, (source,), (destination,), change))


def _exists(moving: Moving, key: tuple[Any, ...]) -> ThreadExists:
    name = moving.described(dict(zip(moving.tables.owner.key, key, strict=True)))
    return ThreadExists(f"There is a {name} already. Delete it first, or choose another name.")
