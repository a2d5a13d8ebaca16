"""A family of tables that exists only in the tests: toys, some of which are broken.

It follows ``docs/design/adding-a-family.md``, in one file instead of folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Dialect, Schema
from locus_mysql.dialect.schema import Table
from locus_mysql.dialect.sql import SQL, Select
from locus_mysql.engine.operation import Batch, Operation, fetch
from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.family import DeclaredFamily
from locus_mysql.records import ledger
from locus_mysql.records.tables import Owner, Part, Seal, Sealed, Tables
from locus_mysql.runtime.arguments import check_text, tenant_of
from locus_mysql.runtime.database import Database, share
from locus_mysql.runtime.sealing import Sealing
from locus_mysql.runtime.stores import AsyncStore, SyncStore, awaited_method, blocking_method

# families/toys/statements/tables.py

LAYOUT_VERSION = 1

TOYS = """(
  tenant VARCHAR(128) NOT NULL,
  name   VARCHAR(128) NOT NULL,
  broken BOOLEAN      NOT NULL,
  version BINARY(16)  NOT NULL,
  crc    INT UNSIGNED NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT '2026-01-01',
  updated_at DATETIME(6) NOT NULL DEFAULT '2026-01-01',
  expires_at DATETIME(6) NULL,
  PRIMARY KEY (tenant, name),
  KEY expiry (expires_at),
  KEY recent (tenant, updated_at)
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
    tables = (Table(names["toys"], TOYS), Table(names["wheels"], WHEELS), ledger.table(names["ledger"]))
    return Schema("toys", LAYOUT_VERSION, tables, encrypts=True)


class ToyKey(NamedTuple):
    """The key of a toy: parameters of most statements."""

    tenant: str
    name: str


@lru_cache
def toy_dialect(table_prefix: str) -> Dialect:
    """Return the dialect of the tables with one prefix, which all stores share."""
    return Dialect(toy_schema(table_prefix), table_names(table_prefix))


# families/toys/statements/toys.py. All statements use the primary key.


class ToyRow(NamedTuple):
    name: str
    broken: int
    crc: int


class WheelRow(NamedTuple):
    wheel: int
    content: bytes


class CountRow(NamedTuple):
    toys: int


COUNT = Select("SELECT COUNT(*) FROM {toys} WHERE tenant = :tenant AND broken IN (:broken)", CountRow)

FIND = Select("SELECT name, broken, crc FROM {toys} WHERE tenant = :tenant AND name IN (:names)", ToyRow)

PAGE = Select(
    "SELECT name, broken, crc FROM {toys} WHERE tenant = :tenant AND name > :after ORDER BY name LIMIT :limit", ToyRow
)

#: Writes a toy. An existing one is replaced or kept.
PUT = SQL("""
INSERT INTO {toys} (tenant, name, broken, version, crc, created_at, updated_at)
VALUES (:tenant, :name, :broken, UUID_TO_BIN(UUID()), :crc, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)) AS new
    ON DUPLICATE KEY UPDATE {changes}
""")
REPLACES = "broken = new.broken, version = new.version, crc = new.crc, updated_at = new.updated_at"
KEEPS = "name = {toys}.name"

PUT_WHEELS = SQL(
    "INSERT INTO {wheels} (tenant, name, wheel, content) VALUES [rows: (:tenant, :name, :wheel, :content)]"
)

WHEELS_OF = Select(
    "SELECT wheel, content FROM {wheels} WHERE tenant = :tenant AND name = :name ORDER BY wheel", WheelRow
)


REMOVE = SQL("DELETE FROM {toys} WHERE tenant = :tenant AND name = :name")
REMOVE_WHEELS = SQL("DELETE FROM {wheels} WHERE tenant = :tenant AND name = :name")


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
        self.sql = toy_dialect(config.table_prefix)
        self.schema = self.sql.schema
        self._tenant = tenant_of(config)
        self._sealing = Sealing(config.encryption, self.schema.family)

    def wheels(self, name: str) -> Operation[dict[int, bytes]]:
        """Return the wheels of a toy by their numbers."""
        rows = yield from fetch(WHEELS_OF(self.sql, ToyKey(self._tenant, name)))
        sealing = self._sealing.of(self._tenant, name)
        return {row.wheel: bytes(sealing.open(row.content, "A wheel", "content", row.wheel).body) for row in rows}

    def put(
        self, name: str, *, broken: bool = False, replace: bool = True, wheels: Sequence[bytes] = (), first: int = 0
    ) -> Operation[None]:
        """Store a toy, and add wheels to it, the first of which has the number ``first``."""
        key, token = ToyKey(self._tenant, check_name(name)), os.urandom(16)
        sealing = self._sealing.of(*key)
        crc = sealing.checksum("row", key.name, int(broken))
        changes = {"changes": REPLACES if replace else KEEPS}
        rows = [
            WheelRow(number, sealing.seal(b"\x01", (one,), "content", number))
            for number, one in enumerate(wheels, first)
        ]
        yield Batch.of(
            PUT(self.sql, key, broken=int(broken), crc=crc, pieces=changes),
            (PUT_WHEELS(self.sql, key, rows=rows),) if rows else (),
            ledger.RECORD(self.sql, key, token=token),
            outcome_query=ledger.FIND(self.sql, key, token=token),
        )

    def remove(self, name: str) -> Operation[None]:
        """Remove a toy with its wheels."""
        key, token = ToyKey(self._tenant, check_name(name)), os.urandom(16)
        yield Batch.of(
            REMOVE(self.sql, key),
            REMOVE_WHEELS(self.sql, key),
            ledger.RECORD(self.sql, key, token=token),
            outcome_query=ledger.FIND(self.sql, key, token=token),
        )

    def count(self, *broken: bool) -> Operation[int]:
        (counted,) = yield from fetch(COUNT(self.sql, tenant=self._tenant, broken=[int(one) for one in broken]))
        return counted.toys

    def find(self, names: Sequence[str]) -> Operation[dict[str, Toy]]:
        """Return toys by their names."""
        found = yield from fetch(FIND(self.sql, tenant=self._tenant, names=list(names)))
        return {row.name: self.read(row) for row in found}

    def page(self, after: str, limit: int) -> Operation[list[ToyRow]]:
        """Return toys in the order of their names."""
        return (yield from fetch(PAGE(self.sql, tenant=self._tenant, after=after, limit=limit)))

    def read(self, row: ToyRow) -> Toy:
        """Return the toy in a row.

        Raises:
            CorruptCheckpoint: Its checksum is wrong.
        """
        if self._sealing.of(self._tenant, row.name).checksum("row", row.name, row.broken) != row.crc:
            raise CorruptCheckpoint(f"Toy {row.name!r} cannot be read: its checksum is wrong. Write it again.")
        return Toy(row.name, bool(row.broken))


# families/toys/store.py


class ToyBox(AsyncStore[ToyOperations]):
    """The toys of one tenant."""

    def __init__(self, where: MySQLConfig | Database) -> None:
        database, config, owned = share(type(self), where, {})
        super().__init__(ToyOperations(config), database, owned=owned)

    put = awaited_method(ToyOperations.put)
    wheels = awaited_method(ToyOperations.wheels)
    find = awaited_method(ToyOperations.find)
    page = awaited_method(ToyOperations.page)
    remove = awaited_method(ToyOperations.remove)


class SyncToyBox(SyncStore[ToyOperations]):
    """The toys of one tenant, with blocking methods."""

    def __init__(self, where: MySQLConfig | Database) -> None:
        database, config, owned = share(type(self), where, {})
        super().__init__(ToyOperations(config), database, owned=owned)

    put = blocking_method(ToyOperations.put)
    wheels = blocking_method(ToyOperations.wheels)
    find = blocking_method(ToyOperations.find)
    page = blocking_method(ToyOperations.page)
    remove = blocking_method(ToyOperations.remove)


# families/toys/tables.py


def toy_tables(table_prefix: str) -> Tables:
    """Return the declaration from which exports, imports and copies are derived."""
    return Tables(
        toy_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "toys",
            key=("name",),
            seals=(Seal("crc", lambda sealing, row: sealing.checksum("row", row["name"], int(row["broken"]))),),
            noun="toy",
            version=("version",),
            named="name",
            updated="updated_at",
            recent="updated_at",
        ),
        (Part("wheels", key=("name", "wheel"), sealed=(Sealed("content", "content", row=("wheel",)),), noun="wheel"),),
    )


# families/toys/family.py


class ToyFamily(DeclaredFamily):
    name = "toys"
    title = "Toys"
    users = "ToyBox"
    unit = "wheel"

    def declaration(self, config: MySQLConfig) -> Tables:
        return toy_tables(config.table_prefix)
