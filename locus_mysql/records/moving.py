"""Moves the owners of any family with all their rows: `OwnerReader` and `OwnerWriter`. Generators that do no I/O.

A row is moved with its stored bytes. Only its seal is opened and made anew, as it covers the tenant and the owner. What
rows hold is not decoded.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from ..config import MySQLConfig
from ..dialect import Statement
from ..engine.operation import Batch, Duplicate, Operation, Outdated
from ..errors import CorruptCheckpoint, StateTooLarge, ThreadExists, VersionConflict
from ..runtime.sealing import Sealing
from ..runtime.transfer import TransferReport
from .ledger import FIND, RECORD
from .row_statements import (
    ALL,
    EXPECT,
    INSERT,
    OWNERS_AT,
    PAGE_OF_PARTS,
    PUT,
    REMOVE,
    REMOVE_SEEN,
    REMOVE_SOME,
    RowStatements,
    Selection,
    TableStatements,
    after_row,
)
from .tables import Row, Sealed, Tables

#: Limits of a page, and of one transaction: owners, rows, and bytes of sealed columns.
MAX_OWNERS, MAX_ROWS, MAX_BYTES = 100, 500, 4_000_000

#: How often an owner is read again because another process wrote to it.
TRIES = 5

#: Rows that one transaction removes.
REMOVED_AT_ONCE = 1_000


class OwnerRecord(NamedTuple):
    """The row of an owner. Times are text, sealed bytes are their content.

    Args:
        values: The values of the columns of `TableStatements.columns`.
    """

    values: tuple[Any, ...]


class PartRecord(NamedTuple):
    """A row of the owner before it.

    Args:
        role: Its table.
        values: As for `OwnerRecord`; what identifies the rows that it builds on follows.
    """

    role: str
    values: tuple[Any, ...]


class Restart(NamedTuple):
    """The owner before it was written to while it was read: its rows are void. It may follow once more."""


Record: TypeAlias = OwnerRecord | PartRecord | Restart


class Position(NamedTuple):
    """Where reading continues.

    Args:
        owner: The values of the last owner.
        role: The table of the last part; empty if none was read.
        part: The values of the last part.
        void: Whether the owner is to be read again.
    """

    owner: tuple[Any, ...]
    role: str = ""
    part: tuple[Any, ...] = ()
    void: bool = False


class Page(NamedTuple):
    """Records that were read.

    Args:
        records: The records.
        damaged: Messages about rows that were left out.
        last: Where reading continues; None at the end.
    """

    records: list[Record]
    damaged: list[str]
    last: Position | None


class Stored(NamedTuple):
    """Owners in the tables.

    Args:
        owners: Their rows by their keys, each with whether it is live.
        now: The server's time.
    """

    owners: dict[tuple[Any, ...], tuple[dict[str, Any], bool]]
    now: str


NOW = Statement("SELECT UTC_TIMESTAMP(6)")


class Moving:
    """What moving the owners of one tenant needs.

    Args:
        tables: The family's tables.
        config: The options, with the tenant.
    """

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self.tables = tables
        self.sql = RowStatements(tables)
        self.tenant = config.tenant
        self.searched = config.search and config.encryption is None
        self._sealing = Sealing(config.encryption, tables.schema.family)

    def statements(self, role: str) -> TableStatements:
        """Return the statements about a table of parts."""
        return self.sql.parts[role]

    def key_of(self, owner: Row) -> tuple[Any, ...]:
        """Return the key of an owner, without the tenant."""
        return tuple(owner[one] for one in self.tables.owner.key)

    def link_of(self, owner: Row) -> tuple[Any, ...]:
        """Return the values that an owner's parts have."""
        return (self.tenant, *(owner[one] for one in self.tables.link))

    def described(self, owner: Row) -> str:
        """Return the name of an owner for messages."""
        names = [one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in self.key_of(owner)]
        return f"{self.tables.owner.noun} {'/'.join(one for one in names if one)!r}"

    def open(self, table: TableStatements, row: Row, owner: Row) -> tuple[Any, ...]:
        """Return the values of a row that was read, opened.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: It was changed or moved.
        """
        sealing = self._sealing.of(self.tenant, *self.key_of(owner))
        title = table.table.title or "key"
        name = row[title] if title != "key" else "/".join(str(row[one]) for one in table.table.key[-1:])
        what = f"{table.table.noun.capitalize()} {name!r} of {self.described(owner)}"
        if table is self.sql.owners:
            what = self.described(owner).capitalize()
        seal = table.table.seal
        if seal is not None and seal.of(sealing, row) not in (None, row[seal.column]):
            raise CorruptCheckpoint(f"{what} does not fit its seal: a column was changed, or it was moved. Delete it.")
        opened = dict(row)
        for one in table.table.sealed:
            if stored := row[one.column]:
                content = sealing.open(bytes(stored), what, one.name, *self._identity(one, row, sealing))
                opened[one.column] = content.kind + content.body
        return tuple(plain(opened[one]) for one in (*table.columns, *table.bases))

    def seal(self, table: TableStatements, row: dict[str, Any], owner: Row) -> Any:
        """Return a row to write, of `TableStatements.row_type`."""
        sealing = self._sealing.of(self.tenant, *self.key_of(owner))
        row["tenant"] = self.tenant
        for one in table.table.sealed:
            if content := row[one.column]:
                identity = self._identity(one, row, sealing)
                row[one.column] = sealing.seal(content[:1], (content[1:],), one.name, *identity)
        if not self.searched:
            row.update(dict.fromkeys(table.table.cleared))
        if table.table.seal is not None:
            row[table.table.seal.column] = table.table.seal.of(sealing, row) or 0
        return table.row_type(*(row[one] for one in table.written))

    def _identity(self, sealed: Sealed, row: Row, sealing: Sealing) -> tuple[Any, ...]:
        identity = tuple(row[one] for one in sealed.row)
        if sealed.identity is not None and sealing.is_on:
            identity = sealed.identity(row)
        base = row[f"base_{sealed.column}"] if sealed.base else None
        return identity if base is None else (*identity, base)

    def owner_row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the row of an owner to be moved, with the id that its parts get."""
        row = dict(zip(self.sql.owners.columns, values, strict=True))
        owner = self.tables.owner
        row.update((name, os.urandom(length)) for name, length in owner.fresh)
        if owner.id:  # a repeated attempt continues with its parts, and no file can name those of another owner
            place = repr((self.tables.schema.family, self.tenant, self.key_of(row), self.version_of(row)))
            row[owner.id] = hashlib.sha256(place.encode()).digest()[:16]
        return row

    def version_of(self, owner: Row) -> tuple[Any, ...]:
        """Return the version of an owner."""
        return tuple(plain(owner[one]) for one in self.tables.owner.version)

    def epoch_of(self, owner: Row) -> tuple[Any, ...]:
        """Return what stays the same while no row of an owner is changed or removed."""
        own = self.tables.owner
        return tuple(plain(owner[one]) for one in (own.epoch or own.version))

    def digest_of(self, record: OwnerRecord | PartRecord) -> bytes:
        """Return a row as bytes that are equal for equal rows of two owners."""
        table = self.sql.owners if isinstance(record, OwnerRecord) else self.statements(record.role)
        left = table.table.cleared | {name for name, _ in self.tables.owner.fresh}
        row = zip(table.columns, record.values, strict=False)
        return repr([value for name, value in row if name not in left]).encode()

    def at(self, keys: Sequence[tuple[Any, ...]]) -> Operation[Stored]:
        """Return stored owners by their keys. One round trip."""
        owners = self.sql.owners
        statement = owners(OWNERS_AT, keys=[(self.tenant, *key) for key in keys])
        found, now = yield Batch((statement, NOW), atomic=False)
        rows = [(owners.row(row), bool(row[-1])) for row in found.rows]
        return Stored({self.key_of(row): (row, live) for row, live in rows}, str(plain(now.rows[0][0])))

    def live(self, key: tuple[Any, ...]) -> Operation[dict[str, Any] | None]:
        """Return a stored owner; None if there is none, or it has expired. One round trip."""
        found, live = (yield from self.at([key])).owners.get(key, (None, False))
        return found if live else None

    def parts(self, role: str, owners: Sequence[Row], after: Row | None = None) -> Statement:
        """Return the statement that reads a page of the parts of some owners."""
        table = self.statements(role)
        condition, values = after_row(table.table, after)
        links = [self.link_of(one) for one in owners]
        pieces = {"AFTER": condition}
        return table(PAGE_OF_PARTS, pieces, links=links, limit=MAX_ROWS, limit_bytes=MAX_BYTES, **values)

    def is_cut(self, role: str, rows: Sequence[Row]) -> bool:
        """Return whether a page may have ended before the last row."""
        columns = [one.column for one in self.statements(role).table.sealed]
        return len(rows) >= MAX_ROWS or sum(len(row[one] or b"") for row in rows for one in columns) >= MAX_BYTES


def plain(value: Any) -> Any:
    """Return a value of a column as it is written to lines, and to MySQL: times as text."""
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


@dataclass(slots=True)
class _Reading:
    """An owner that is read page by page.

    Args:
        owner: Its row.
        role: The table that is read; empty before the first.
        after: The last row of that table.
        tries: How often it was begun.
    """

    owner: dict[str, Any]
    role: str = ""
    after: dict[str, Any] | None = None
    tries: int = 1


class OwnerReader:
    """Reads owners with their parts, in the order of their keys. An owner is complete, and as it was at one time.

    Args:
        moving: The family and the tenant.
        selection: Which owners.
        after: Where to continue; None for the beginning.
    """

    def __init__(self, moving: Moving, selection: Selection = ALL, after: Position | None = None) -> None:
        self._moving = moving
        self._selection = selection
        self._after: dict[str, Any] | None = None
        self._owners = 8  # that one page reads
        self._reading: _Reading | None = None
        self._resumed = after

    def page(self) -> Operation[Page]:
        """Return the next records. Two round trips for many small owners; one for each page of a large one."""
        if self._resumed is not None:
            return (yield from self._resume())
        if self._reading is not None:
            return (yield from self._continue(self._reading))
        moving = self._moving
        find = moving.sql.page_of_owners(moving.tenant, self._selection, self._after, self._owners)
        (found,) = yield Batch.of(find)
        owners = [moving.sql.owners.row(row) for row in found.rows]
        if not owners:
            return Page([], [], None)
        return (yield from self._several(owners))

    def alone(self, key: tuple[Any, ...]) -> Operation[Iterator[Operation[Page]] | None]:
        """Return the pages of one owner; None if there is none."""
        stored = yield from self._moving.live(key)
        if stored is None:
            return None

        def pages() -> Iterator[Operation[Page]]:
            yield self._several([stored])
            while self._reading is not None:
                yield self._continue(self._reading)

        return pages()

    def _several(self, owners: list[dict[str, Any]]) -> Operation[Page]:
        moving = self._moving
        while True:
            parts = {role: moving.parts(role, owners) for role in moving.sql.parts}
            again = moving.sql.owners(OWNERS_AT, keys=[(moving.tenant, *moving.key_of(one)) for one in owners])
            results = yield Batch((*parts.values(), again))
            rows = {
                role: [moving.statements(role).row(row) for row in results.of(statement).rows]
                for role, statement in parts.items()
            }
            if not any(moving.is_cut(role, some) for role, some in rows.items()):
                break
            if len(owners) == 1:
                return (yield from self._begin(owners[0]))
            owners = owners[: len(owners) // 2]
            self._owners = len(owners)
        self._owners = min(MAX_OWNERS, 2 * self._owners)
        now = {moving.key_of(row): row for row in map(moving.sql.owners.row, results.of(again).rows)}
        page = Page([], [], None)
        by_link: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for role, some in rows.items():
            for row in some:
                by_link[moving.link_of(row)].append((role, row))
        for owner in owners:
            stored = now.get(moving.key_of(owner))
            if stored is None or moving.epoch_of(stored) != moving.epoch_of(owner):
                if page.last is None:
                    return (yield from self._begin(owner))
                break
            last = self._add(page, owner)
            for role, row in by_link[moving.link_of(owner)] if last is not None else ():
                last = self._add_part(page, owner, role, row) or last
            self._after = owner
            page = page._replace(last=last or Position(self._moving_values(owner)))
        return page

    def _moving_values(self, owner: Row) -> tuple[Any, ...]:
        return tuple(plain(owner[one]) for one in self._moving.sql.owners.columns)

    def _add(self, page: Page, owner: Row) -> Position | None:
        """Add an owner to a page; None if it is damaged."""
        try:
            values = self._moving.open(self._moving.sql.owners, owner, owner)
        except CorruptCheckpoint as error:
            page.damaged.append(str(error))
            return None
        page.records.append(OwnerRecord(values))
        return Position(values)

    def _add_part(self, page: Page, owner: Row, role: str, row: Row) -> Position | None:
        try:
            values = self._moving.open(self._moving.statements(role), row, owner)
        except CorruptCheckpoint as error:
            page.damaged.append(str(error))
            return None
        page.records.append(PartRecord(role, values))
        return Position(self._moving_values(owner), role, values)

    def _resume(self) -> Operation[Page]:
        resumed, self._resumed = self._resumed, None
        assert resumed is not None  # noqa: S101 - for the type checker
        moving = self._moving
        row = dict(zip(moving.sql.owners.columns, resumed.owner, strict=True))
        key = moving.key_of(row)
        stored = yield from moving.live(key)
        self._after = row
        if stored is None:
            return Page([Restart()], [], resumed._replace(void=True))
        if resumed.void or self._moving_values(stored) != resumed.owner:
            return (yield from self._begin(stored, void=True))
        self._reading = _Reading(stored)
        if resumed.role:
            self._reading.role = resumed.role
            table = moving.statements(resumed.role)
            self._reading.after = dict(zip(table.columns, resumed.part, strict=False)) | stored
        return (yield from self._continue(self._reading))

    def _begin(self, owner: dict[str, Any], tries: int = 1, *, void: bool = False) -> Operation[Page]:
        """Read an owner page by page."""
        moving = self._moving
        page = Page([Restart()] if void else [], [], None)
        key = moving.key_of(owner)
        self._after, self._reading = owner, None
        if tries > TRIES:
            page.damaged.append(
                f"{moving.described(owner).capitalize()} was written to whenever it was read. Try again later."
            )
            return page._replace(last=Position(self._moving_values(owner), void=True))
        stored = yield from moving.live(key)
        if stored is None:
            return page._replace(last=Position(self._moving_values(owner), void=True))
        last = self._add(page, stored)
        if last is not None:
            self._reading = _Reading(stored, tries=tries)
        return page._replace(last=last or Position(self._moving_values(stored)))

    def _continue(self, reading: _Reading) -> Operation[Page]:
        moving, owner = self._moving, reading.owner
        roles = [*moving.sql.parts]
        role = reading.role or (roles[0] if roles else "")
        page = Page([], [], Position(self._moving_values(owner), reading.role))
        if role:
            statement = moving.parts(role, [owner], reading.after)
            (found,) = yield Batch.of(statement)
            rows = [moving.statements(role).row(row) for row in found.rows]
            last = page.last
            for row in rows:
                last = self._add_part(page, owner, role, row) or last
            page = page._replace(last=last)
            reading.role, reading.after = role, rows[-1] if rows else reading.after
            if moving.is_cut(role, rows):
                return page
            if role != roles[-1]:
                reading.role, reading.after = roles[roles.index(role) + 1], None
                return page
        key = moving.key_of(owner)
        stored = yield from moving.live(key)
        if stored is not None and moving.epoch_of(stored) == moving.epoch_of(owner):
            self._after, self._reading = owner, None
            return page
        again = yield from self._begin(stored or owner, reading.tries + 1, void=True)
        return Page([*page.records, *again.records], [*page.damaged, *again.damaged], again.last)


#: What is done with an owner: it may still fit into one transaction; its rows are written, or compared at its end; it
#: is stored already; another one is stored; it has expired; it was left out.
Fate: TypeAlias = Literal["arriving", "written", "compared", "present", "differs", "expired", "left"]


@dataclass(slots=True)
class _Arriving:
    """An owner that arrives with its parts.

    Args:
        row: Its row.
        parts: Those of its parts that were not written yet, by their tables.
        rows: The number of its rows.
        waiting: The number of those that were not written yet.
        size_bytes: The bytes of those.
        counts: The numbers of parts that arrived, by their tables.
        digest: That of all its rows.
        fate: What is done with its rows; see `Fate`.
    """

    row: dict[str, Any]
    parts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 1
    waiting: int = 1
    size_bytes: int = 0
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    digest: Any = field(default_factory=hashlib.sha256)
    fate: Fate = "arriving"


class OwnerWriter:
    """Writes owners with their parts. An owner is seen only when it is complete, as its own row is written last.

    Stored owners are compared, by their version if they have one. Repeating a transfer completes it.

    Args:
        moving: The family and the tenant.
        report: Counts rows.
        overwrite: Whether stored owners that differ are replaced.
        verify: Whether all rows are compared, also those that were just written.
        rename: Changes the row of an owner before it is written.
    """

    def __init__(
        self,
        moving: Moving,
        report: TransferReport,
        *,
        overwrite: bool = False,
        verify: bool = False,
        rename: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        self._moving = moving
        self._report = report
        self._overwrite = overwrite
        self._verify = verify
        self._rename = rename
        self._complete: list[_Arriving] = []
        self._open: _Arriving | None = None

    def write(self, records: Sequence[Record]) -> Operation[None]:
        """Take records in their order, and write those that fill a transaction."""
        moving = self._moving
        for record in records:
            if isinstance(record, Restart):
                if self._open is not None and self._open.fate == "written":
                    yield from self._clear(self._open.row)
                self._open = None
            elif isinstance(record, OwnerRecord):
                yield from self._close()
                row = dict(zip(moving.sql.owners.columns, record.values, strict=True))
                self._rename(row)
                values = tuple(row[one] for one in moving.sql.owners.columns)
                self._open = _Arriving(moving.owner_row(values), size_bytes=_size(values))
                self._open.digest.update(moving.digest_of(OwnerRecord(values)))
            elif self._open is not None:
                yield from self._take(self._open, record)

    def finish(self) -> Operation[None]:
        """Write what is left."""
        yield from self._close()
        yield from self._flush()

    def _take(self, owner: _Arriving, part: PartRecord) -> Operation[None]:
        moving = self._moving
        table = moving.statements(part.role)
        owner.rows += 1
        owner.counts[part.role] += 1
        owner.digest.update(moving.digest_of(part))
        if owner.fate not in ("arriving", "written"):
            return
        row = dict(zip((*table.columns, *table.bases), part.values, strict=True))
        row.update((one, owner.row[one]) for one in moving.tables.link)
        owner.parts[part.role].append(moving.seal(table, row, owner.row))
        owner.waiting += 1
        owner.size_bytes += _size(part.values)
        if owner.waiting >= MAX_ROWS or owner.size_bytes >= MAX_BYTES:
            yield from self._write_part_of(owner)

    def _close(self) -> Operation[None]:
        """The owner that arrives is complete."""
        owner, self._open = self._open, None
        if owner is None:
            return
        if owner.fate == "arriving":
            self._complete.append(owner)
            waiting = self._complete
            if sum(one.rows for one in waiting) >= MAX_ROWS or sum(one.size_bytes for one in waiting) >= MAX_BYTES:
                yield from self._flush()
        elif owner.fate == "written":
            yield from self._finish_large(owner)
        elif owner.fate == "compared":
            self._count_unwritten(owner, "present" if (yield from self._is_same(owner)) else "differs")
        else:
            self._count_unwritten(owner, owner.fate)

    def _flush(self) -> Operation[None]:
        """Write complete owners, in one transaction."""
        owners, self._complete = self._complete, []
        if owners:
            yield from self._write_small(owners)

    def _write_small(self, owners: Sequence[_Arriving]) -> Operation[None]:
        moving = self._moving
        for attempt in range(TRIES):
            stored = yield from moving.at([moving.key_of(one.row) for one in owners])
            chosen, seen = list[_Arriving](), list[dict[str, Any]]()
            for owner in owners:
                found, _ = stored.owners.get(moving.key_of(owner.row), (None, False))
                fate = yield from self._fate_of(owner, stored)
                if fate != "written":
                    self._count_unwritten(owner, fate)
                    continue
                chosen.append(owner)
                seen += [found] if found is not None else []
                if attempt and found is None:  # rows without an owner, which nobody reads
                    yield from self._clear(owner.row)
            if not chosen:
                return
            try:
                yield from self._transaction(chosen, seen)
            except (Duplicate, StateTooLarge) as error:
                if len(chosen) > 1:
                    for one in chosen:
                        yield from self._write_small([one])
                    return
                if isinstance(error, StateTooLarge):
                    self._report.leave_out(f"{self._title(chosen[0])} was left out: {error}")
                    return
                owners = chosen
                continue
            for one in chosen:
                yield from self._count(one)
            return
        for one in owners:
            self._report.differ(f"{self._title(one)} was written to at each attempt to write it. Try again.")

    def _fate_of(self, owner: _Arriving, stored: Stored, *, complete: bool = True) -> Operation[Fate]:
        """Return what is to be done with an owner.

        Args:
            owner: The owner.
            stored: The owner in the tables.
            complete: Whether all its parts have arrived.
        """
        expires_at = owner.row.get(self._moving.tables.owner.expires)
        if expires_at is not None and expires_at <= stored.now:
            return "expired"
        found, live = stored.owners.get(self._moving.key_of(owner.row), (None, False))
        if found is None or not live:
            return "written"
        version = self._moving.version_of(found)
        if version and not self._verify:
            same = version == self._moving.version_of(owner.row)
        elif not complete:
            return "written" if self._overwrite else "compared"
        else:
            same = yield from self._is_same(owner)
        if same:
            return "present"
        return "written" if self._overwrite else "differs"

    def _count_unwritten(self, owner: _Arriving, fate: Fate) -> None:
        report = self._report
        if fate == "present":
            report.present += owner.rows
            report.verified += owner.rows if self._verify else 0
        elif fate == "differs":
            report.differ(f"{self._title(owner)} differs in the tables. --overwrite replaces it.")
        elif fate == "expired":
            report.leave_out(f"{self._title(owner)} was left out: it has expired.")

    def _is_same(self, owner: _Arriving) -> Operation[bool]:
        """Return whether an owner is stored with the same rows."""
        moving, digest = self._moving, hashlib.sha256()
        pages = yield from OwnerReader(moving).alone(moving.key_of(owner.row))
        for page in pages or ():
            read = yield from page
            if read.damaged:
                return False
            for record in read.records:
                if isinstance(record, Restart):
                    digest = hashlib.sha256()
                else:
                    digest.update(moving.digest_of(record))
        return bool(digest.digest() == owner.digest.digest())

    def _transaction(self, owners: Sequence[_Arriving], seen: Sequence[dict[str, Any]]) -> Operation[None]:
        """Write complete owners, and remove what is stored of them, all or nothing."""
        moving = self._moving
        steps = [self._removal(one) for one in seen]
        if seen:
            links = [moving.link_of(one) for one in seen]
            steps += [one(REMOVE, links=links) for one in moving.sql.parts.values()]
        for role, table in moving.sql.parts.items():
            if rows := [row for owner in owners for row in owner.parts[role]]:
                steps.append(table(INSERT, rows=rows))
        yield from self._once(*steps, self._insertion(owners))

    def _insertion(self, owners: Sequence[_Arriving]) -> Statement:
        moving = self._moving
        table = moving.sql.owners
        return table(INSERT, rows=[moving.seal(table, dict(one.row), one.row) for one in owners])

    def _removal(self, seen: Row) -> Statement:
        """Remove a stored owner, if it is still the one that was read."""
        values = {one: seen[one] for one in self._moving.tables.seen}
        return self._moving.sql.owners(REMOVE_SEEN, tenant=self._moving.tenant, **values)

    def _once(self, *steps: Statement) -> Operation[None]:
        moving, token = self._moving, os.urandom(16)
        yield Batch.of(
            *steps,
            RECORD(moving.sql.dialect, tenant=moving.tenant, token=token),
            outcome_query=FIND(moving.sql.dialect, tenant=moving.tenant, token=token),
        )

    def _write_part_of(self, owner: _Arriving) -> Operation[None]:
        """Write rows of an owner that is too large for one transaction; nobody sees them without the owner's row."""
        moving = self._moving
        if owner.fate == "arriving":
            yield from self._flush()
            key = moving.key_of(owner.row)
            stored = yield from moving.at([key])
            owner.fate = yield from self._fate_of(owner, stored, complete=False)
            found, _ = stored.owners.get(key, (None, False))
            if owner.fate == "written" and found is not None:
                yield from self._once(self._removal(found))
                yield from self._clear(found)
        rows_of = {role: rows for role, rows in owner.parts.items() if rows}
        owner.parts.clear()
        owner.waiting, owner.size_bytes = 1, 0
        if owner.fate != "written" or not rows_of:
            return
        try:
            yield from self._once(*(moving.statements(r)(PUT, rows=v) for r, v in rows_of.items()))
        except StateTooLarge as error:
            owner.fate = "left"
            self._report.leave_out(f"{self._title(owner)} was left out: {error}")
            yield from self._clear(owner.row)

    def _finish_large(self, owner: _Arriving) -> Operation[None]:
        moving = self._moving
        yield from self._write_part_of(owner)
        if owner.fate != "written":
            return
        links = [moving.link_of(owner.row)]
        counts = [table(EXPECT, links=links, expected=owner.counts[role]) for role, table in moving.sql.parts.items()]
        try:
            yield from self._once(*counts, self._insertion([owner]))
        except Outdated:
            yield from self._clear(owner.row)
            self._report.leave_out(
                f"{self._title(owner)} was left out: rows of an earlier attempt were in its place. They were removed; "
                "repeat the transfer."
            )
        except Duplicate:
            found = yield from moving.live(moving.key_of(owner.row))
            same = found is not None and moving.version_of(found) == moving.version_of(owner.row) != ()
            self._count_unwritten(owner, "present" if same else "differs")
        else:
            yield from self._count(owner)

    def _count(self, owner: _Arriving) -> Operation[None]:
        """Count an owner that was written."""
        if self._verify:
            if not (yield from self._is_same(owner)):
                self._report.differ(f"{self._title(owner)} differs from its source after it was written.")
                return
            self._report.verified += owner.rows
        self._report.copied += owner.rows

    def _clear(self, owner: Row) -> Operation[None]:
        """Remove the parts of an owner that is not stored. May be repeated."""
        moving = self._moving
        for table in moving.sql.parts.values():
            while True:
                (removed,) = yield Batch.of(table(REMOVE_SOME, links=[moving.link_of(owner)], limit=REMOVED_AT_ONCE))
                if removed.affected < REMOVED_AT_ONCE:
                    break

    def _title(self, owner: _Arriving) -> str:
        return self._moving.described(owner.row).capitalize()


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
    stored = yield from moving.at([new_key])
    if stored.owners.get(new_key, (None, False))[1]:
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


def _size(values: Sequence[Any]) -> int:
    return sum(len(one) for one in values if isinstance(one, bytes | str))
