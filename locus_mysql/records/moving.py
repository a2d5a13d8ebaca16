"""What is moved of a family, as records, and what moving needs of it: `Moving`. Generators that do no I/O.

`OwnerReader` reads the records and `OwnerWriter` writes them.

A row is moved with its stored bytes. Only its seal is opened and made anew, as it covers the tenant and the owner. What
rows hold is not decoded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from ..config import MySQLConfig
from ..dialect import Statement
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint
from ..runtime.arguments import tenant_of
from ..runtime.sealing import Sealing, sealed_by
from .row_statements import OWNERS_AT, PAGE_OF_PARTS, SEEN_AT, RowStatements, TableStatements, after_row
from .tables import Row, Sealed, Table, Tables


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

    #: Limits of a page, and of one transaction: owners, rows, and bytes of sealed columns.
    max_owners, max_rows, max_bytes = 1_000, 1_000, 4_000_000

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self.tables = tables
        self.sql = RowStatements(tables)
        self.tenant = tenant_of(config)
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
        name = self.tables.owner.described
        return f"{self.tables.owner.noun} {repr('/'.join(filter(None, names))) if name is None else name(owner)}"

    def title(self, owner: Row) -> str:
        """Return the name of an owner at the beginning of a message."""
        name = self.described(owner)
        return name[:1].upper() + name[1:]

    def sealing_of(self, owner: Row) -> Sealing:
        """Return the sealing of an owner's rows."""
        own = self.tables.owner
        return self._sealing.of(self.tenant, *(owner[one] for one in own.bound or own.key))

    def open(self, table: TableStatements, row: Row, owner: Row) -> tuple[Any, ...]:
        """Return the values of a row that was read, opened.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: It was changed or moved.
        """
        sealing = self.sealing_of(owner)
        title = table.table.title or "key"
        name = row[title] if title != "key" else "/".join(str(row[one]) for one in table.table.key[-1:])
        what = f"{table.table.noun.capitalize()} {name!r} of {self.described(owner)}"
        if table is self.sql.owners:
            what = self.title(owner)
        opened = {name: plain(value) for name, value in row.items()} | {"tenant": self.tenant}
        for made in table.table.seals:
            value = row[made.column]
            if not (made.fits(opened) if made.fits else made.of(sealing, row) in (None, value)):
                raise CorruptCheckpoint(
                    f"{what} does not fit its seal: a column was changed, or it was moved. Delete it."
                )
        for one in table.table.sealed:
            if not (stored := row[one.column]):
                continue
            encrypted = one.identity is not None and sealed_by(bytes(stored)) is not None
            identity = _identity(one, row, encrypted=encrypted)
            if one.seal:
                opened[one.column] = sealing.open_text(one.kind, stored, row[one.seal], what, one.name, *identity)
            else:
                content = sealing.open(bytes(stored), what, one.name, *identity)
                opened[one.column] = content.kind + content.body
            if one.words is not None and not self.searched:
                opened.update(one.words(opened[one.column]))
        return tuple(opened[one] for one in (*table.columns, *table.bases))

    def seal(self, table: TableStatements, row: dict[str, Any], owner: Row) -> Any:
        """Return a row to write, of `TableStatements.row_type`."""
        sealing = self.sealing_of(owner)
        row["tenant"] = row[self.tables.tenant] = self.tenant
        for one in table.table.sealed:
            if not (content := row[one.column]):
                continue
            identity = _identity(one, row, encrypted=sealing.is_on)
            if one.seal:
                row[one.column], row[one.seal] = sealing.seal_text(one.kind, content, one.name, *identity)
            else:
                row[one.column] = sealing.seal(content[:1], (content[1:],), one.name, *identity)
        if not self.searched:
            row.update(dict.fromkeys(table.table.cleared))
        for made in table.table.seals:
            value = made.of(sealing, row)
            row[made.column] = 0 if value is None else value
        return table.row_type(row[one] for one in table.written)

    def owner_row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the row of an owner to be moved, with the id that its parts get."""
        row = dict(zip(self.sql.owners.columns, values, strict=True))
        owner = self.tables.owner
        row.update((name, os.urandom(length)) for name, length in owner.fresh)
        if owner.id:  # a repeated attempt replaces its parts, and no file can name those of another owner
            place = repr((self.tables.schema.family, self.tenant, self.key_of(row)))
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

    def seen(self, owners: Sequence[Row]) -> Statement:
        """Return the statement that reads the columns of `Tables.seen` of some owners."""
        return self.sql.owners(SEEN_AT, keys=[(self.tenant, *self.key_of(one)) for one in owners])

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
        return table(PAGE_OF_PARTS, pieces, links=links, limit=self.max_rows, limit_bytes=self.max_bytes, **values)

    def is_cut(self, role: str, rows: Sequence[Row]) -> bool:
        """Return whether a page may have ended before the last row."""
        return len(rows) >= self.max_rows or size_of(self.statements(role).table, rows) >= self.max_bytes


def _identity(sealed: Sealed, row: Row, *, encrypted: bool) -> tuple[Any, ...]:
    """Return what the content of a column is bound to, which for some columns differs with encryption."""
    identity = tuple(row[one] for one in sealed.row)
    if sealed.identity is not None and encrypted:
        identity = sealed.identity(row)
    base = row[f"base_{sealed.column}"] if sealed.base else None
    return identity if base is None else (*identity, base)


def size_of(table: Table, rows: Sequence[Row]) -> int:
    """Return the size of rows by the columns that count for it."""
    return sum(len(row[one] or b"") for row in rows for one in table.sized)


def plain(value: Any) -> Any:
    """Return a value of a column as it is written to lines, and to MySQL: times as text."""
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    return bytes(value) if isinstance(value, bytearray | memoryview) else value
