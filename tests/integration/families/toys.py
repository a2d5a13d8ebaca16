"""A family of tables that exists only in the tests: toys, some of which are broken.

It follows ``docs/adding-a-family.md``, in one file instead of folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Query, Schema, Statement
from locus_mysql.dialect import ledger as ledgers
from locus_mysql.dialect.dialect import Dialect
from locus_mysql.dialect.resealing import SealedColumn
from locus_mysql.dialect.schema import Table
from locus_mysql.dialect.template import Statements, placeholders
from locus_mysql.engine.operation import Batch, Operation, fetch
from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.family import Count, Counts
from locus_mysql.records.tables import Owner, Part, Seal, Sealed, Tables
from locus_mysql.records.transfer import RowTransfer
from locus_mysql.runtime.arguments import check_text
from locus_mysql.runtime.ledger import forget_old_tokens
from locus_mysql.runtime.sealing import Sealing

# dialect/toys/tables.py

LAYOUT_VERSION = 1

TOYS = """(
  tenant VARCHAR(128) NOT NULL,
  name   VARCHAR(128) NOT NULL,
  broken BOOLEAN      NOT NULL,
  version BINARY(16)  NOT NULL,
  crc    INT UNSIGNED NOT NULL,
  PRIMARY KEY (tenant, name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"""

WHEELS = """(
  tenant  VARCHAR(128) NOT NULL,
  name    VARCHAR(128) NOT NULL,
  wheel   INT          NOT NULL,
  content LONGBLOB     NOT NULL,
  PRIMARY KEY (tenant, name, wheel)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"""


def table_names(table_prefix: str) -> dict[str, str]:
    """Return the unquoted names of the tables by their roles."""
    return {"toys": f"{table_prefix}toys", "wheels": f"{table_prefix}toy_wheels", "ledger": f"{table_prefix}toy_ledger"}


def toy_schema(table_prefix: str) -> Schema:
    names = table_names(table_prefix)
    tables = (Table(names["toys"], TOYS), Table(names["wheels"], WHEELS), ledgers.table(names["ledger"]))
    return Schema("toys", LAYOUT_VERSION, tables, encrypts=True)


# dialect/toys/dialect.py. All statements use the primary key.

COUNT = "SELECT COUNT(*) FROM {toys} WHERE tenant = %s AND broken IN ({broken})"

PUT = """
INSERT INTO {toys} (tenant, name, broken, version, crc) VALUES (%s, %s, %s, UUID_TO_BIN(UUID()), %s) AS new
    ON DUPLICATE KEY UPDATE {changes}
"""
REPLACES = "broken = new.broken, version = new.version, crc = new.crc"
KEEPS = "name = {toys}.name"

PUT_WHEELS = "INSERT INTO {wheels} (tenant, name, wheel, content) VALUES {rows}"

WHEELS_OF = "SELECT wheel, content FROM {wheels} WHERE tenant = %s AND name = %s ORDER BY wheel"

FIND = "SELECT name, broken, crc FROM {toys} WHERE tenant = %s AND name IN ({names})"

PAGE = "SELECT name, broken, crc FROM {toys} WHERE tenant = %s AND name > %s ORDER BY name LIMIT %s"

#: Number of toys that one transaction removes.
AT_ONCE = 500

REMOVE_BROKEN = "DELETE FROM {toys} WHERE tenant = %s AND broken LIMIT %s"


class ToyRow(NamedTuple):
    name: str
    broken: int
    crc: int


class WheelRow(NamedTuple):
    wheel: int
    content: bytes


class CountRow(NamedTuple):
    toys: int


def checksum_of(tenant: str, name: str, broken: bool) -> int:
    """Return the checksum of a toy's row."""
    return Sealing(None, "toys").of(tenant, name).checksum("row", name, int(broken))


class ToyStatements(Statements):
    """Statements that read and write toys."""

    def count(self, tenant: str, broken: Sequence[bool]) -> Query[CountRow]:
        """Count the toys whose ``broken`` is one of these values."""
        return Query(self._text(COUNT, broken=placeholders(len(broken))), (tenant, *map(int, broken)), row=CountRow)

    def put(self, tenant: str, name: str, broken: bool, *, replace: bool = True) -> Statement:
        """Write a toy. An existing one is replaced, or kept."""
        text = self._text(PUT, changes=REPLACES if replace else self._text(KEEPS))
        return Statement(text, (tenant, name, int(broken), checksum_of(tenant, name, broken)))

    def put_wheels(self, tenant: str, name: str, wheels: Sequence[bytes]) -> Statement:
        """Add the wheels of a toy, sealed."""
        rows = [(tenant, name, number, content) for number, content in enumerate(wheels)]
        text = self._text(PUT_WHEELS, rows=placeholders(len(rows), "(%s, %s, %s, %s)"))
        return Statement(text, tuple(value for row in rows for value in row))

    def wheels(self, tenant: str, name: str) -> Query[WheelRow]:
        """Read the wheels of a toy."""
        return Query(self._text(WHEELS_OF), (tenant, name), row=WheelRow)

    def find(self, tenant: str, names: Sequence[str]) -> Query[ToyRow]:
        """Read the toys with these names."""
        return Query(self._text(FIND, names=placeholders(len(names))), (tenant, *names), row=ToyRow)

    def page(self, tenant: str, after: str, limit: int) -> Query[ToyRow]:
        """Read a page of toys after a name."""
        return Query(self._text(PAGE), (tenant, after, limit), row=ToyRow)

    def remove_broken(self, tenant: str, limit: int) -> Statement:
        """Remove a limited number of broken toys."""
        return Statement(self._text(REMOVE_BROKEN), (tenant, limit))


class ToyDialect(Dialect):
    """The SQL for the tables with one prefix."""

    def __init__(self, table_prefix: str) -> None:
        super().__init__(toy_schema(table_prefix), table_names(table_prefix))

    @cached_property
    def toys(self) -> ToyStatements:
        return ToyStatements(self._pieces)

    @cached_property
    def ledger(self) -> ledgers.Ledger:
        return ledgers.Ledger(self._pieces)


# families/toys/records.py


class Toy(NamedTuple):
    name: str
    broken: bool


def check_name(name: object) -> str:
    if not 1 <= len(text := check_text(name, "The name of a toy")) <= 128:
        raise InvalidInput(f"The name of a toy is {len(text)} characters long; it must be 1 to 128.")
    return text


# families/toys/operations.py


class ToyOperations:
    """Stores and counts the toys of one tenant.

    Args:
        config: The options, with the tenant.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self.sql = ToyDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._tenant = config.tenant
        self._sealing = Sealing(config.encryption, self.schema.family)

    def wheels(self, name: str) -> Operation[list[bytes]]:
        rows = yield from fetch(self.sql.toys.wheels(self._tenant, name))
        sealing = self._sealing.of(self._tenant, name)
        return [bytes(sealing.open(row.content, "A wheel", "content", row.wheel).body) for row in rows]

    def put(
        self, name: str, *, broken: bool = False, replace: bool = True, wheels: Sequence[bytes] = ()
    ) -> Operation[None]:
        name, token = check_name(name), os.urandom(16)
        ledger = self.sql.ledger
        sealing = self._sealing.of(self._tenant, name)
        sealed = [sealing.seal(b"\x01", (one,), "content", number) for number, one in enumerate(wheels)]
        yield Batch.of(
            self.sql.toys.put(self._tenant, name, broken, replace=replace),
            (self.sql.toys.put_wheels(self._tenant, name, sealed),) if sealed else (),
            ledger.record(self._tenant, token),
            outcome_query=ledger.find(self._tenant, token),
        )

    def count(self, *broken: bool) -> Operation[int]:
        (counted,) = yield from fetch(self.sql.toys.count(self._tenant, broken))
        return counted.toys

    def find(self, names: Sequence[str]) -> Operation[dict[str, Toy]]:
        found = yield from fetch(self.sql.toys.find(self._tenant, names))
        return {row.name: self.read(row) for row in found}

    def page(self, after: str, limit: int) -> Operation[list[ToyRow]]:
        return (yield from fetch(self.sql.toys.page(self._tenant, after, limit)))

    def remove_broken(self) -> Operation[int]:
        # A repeat removes the toys that are broken by then, as the caller wants, so no token is needed.
        removed = 0
        while True:
            (done,) = yield Batch.of(self.sql.toys.remove_broken(self._tenant, AT_ONCE))
            removed += done.affected
            if done.affected < AT_ONCE:
                return removed

    def read(self, row: ToyRow) -> Toy:
        """Return the toy in a row.

        Raises:
            CorruptCheckpoint: Its checksum is wrong.
        """
        toy = Toy(row.name, bool(row.broken))
        if checksum_of(self._tenant, *toy) != row.crc:
            raise CorruptCheckpoint(f"Toy {row.name!r} cannot be read: its checksum is wrong. Write it again.")
        return toy


# families/toys/maintenance.py


class ToyMaintenance:
    def __init__(self, config: MySQLConfig) -> None:
        self._toys = ToyOperations(config)

    def stored(self) -> Operation[Counts]:
        return (Count((yield from self._toys.count(True, False)), "{toy}"),)

    def waste(self) -> Operation[Counts]:
        return (Count((yield from self._toys.count(True)), "{broken toy}"),)

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        removed = yield from self._toys.remove_broken()
        yield from forget_old_tokens(self._toys.sql.ledger)
        return (Count(removed, "{broken toy}"),)


# families/toys/tables.py


def tables(table_prefix: str) -> Tables:
    """Return the declaration from which exports, imports and copies are derived."""
    return Tables(
        toy_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "toys",
            key=("name",),
            seal=Seal("crc", lambda sealing, row: sealing.checksum("row", row["name"], int(row["broken"]))),
            noun="toy",
            version=("version",),
            named="name",
            expires="",
        ),
        (Part("wheels", key=("name", "wheel"), sealed=(Sealed("content", "content", row=("wheel",)),), noun="wheel"),),
    )


# families/toys/family.py


class ToyFamily:
    name = "toys"
    title = "Toys"
    users = "ToyBox"
    holds_threads = False
    vacuumed_by_age = False
    on_request = False

    def schema(self, config: MySQLConfig) -> Schema:
        return toy_schema(config.table_prefix)

    def maintenance(self, config: MySQLConfig) -> ToyMaintenance:
        return ToyMaintenance(config)

    def transfer(self, config: MySQLConfig) -> RowTransfer:
        return RowTransfer(tables(config.table_prefix), config)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        return tables(config.table_prefix).encrypted_columns()

    def inspection(self, config: MySQLConfig) -> None: ...

    def changes(self, config: MySQLConfig) -> None: ...
