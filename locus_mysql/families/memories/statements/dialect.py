"""The names and pieces that the statements of long-term memory share, and the namespaces that one is about: `Range`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ....config import MySQLConfig
from ....dialect.sql import Dialect
from ....dialect.variants import OCEANBASE
from ....dialect.words import Parser, pieces_of
from .tables import memory_schema, table_names

T = TypeVar("T")

#: The path and key of an item.
ItemKey: TypeAlias = tuple[bytes, bytes]

WRITE_US = "{US_SINCE_2000}"
WRITTEN_AT = "{NOW}"
WRITTEN_AT_PLUS = "{NOW} + INTERVAL :ttl_us MICROSECOND"

# Each evaluation of the clock gives another time there, even in one statement. So the statement that begins a write
# stores its time in the session, as LAST_INSERT_ID, and all items of the write get this one. Thus the order of items
# that were written together is that of their keys.
OCEANBASE.instead_of(WRITE_US, "LAST_INSERT_ID({US_SINCE_2000})")
OCEANBASE.instead_of(WRITTEN_AT, "CAST(TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID(), '2000-01-01') AS DATETIME(6))")
OCEANBASE.instead_of(
    WRITTEN_AT_PLUS, "CAST(TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID() + :ttl_us, '2000-01-01') AS DATETIME(6))"
)

#: Pieces by name. ``{LIVE_ITEM}``: an item ``i`` has not expired. ``{US_SINCE_2000}`` is the server's clock in
#: microseconds, with which stamps begin. ``{WRITE_US}`` is the same in the statement that begins a write;
#: ``{WRITTEN_AT}`` and ``{WRITTEN_AT_PLUS}`` are the time of that write, and the time a number of microseconds later.
#: ``{COLUMNS}`` are those of an item; ``{CONTENT}`` is an embedding ``v``.
PIECES = {
    **pieces_of("i", "items"),
    "LIVE_ITEM": "(i.expires_at IS NULL OR i.expires_at > UTC_TIMESTAMP(6))",
    "US_SINCE_2000": "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))",
    "NOW": "UTC_TIMESTAMP(6)",
    "WRITE_US": WRITE_US,
    "WRITTEN_AT": WRITTEN_AT,
    "WRITTEN_AT_PLUS": WRITTEN_AT_PLUS,
    "CONTENT": "COALESCE(v.embedding, '')",
    "COLUMNS": "i.path, i.item_key, i.value, i.metadata, i.version, i.created_at, i.updated_at, i.expires_at, i.seal",
}

#: The maximum number of rows that one statement names. The limit also keeps the number of different texts small, as
#: each is cached.
ROWS_PER_STATEMENT = 100


class MemoryDialect(Dialect):
    """The names and pieces for the tables with one prefix.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        search: Whether the tables have a full-text index.
        parser: The parser of that index.
    """

    def __init__(self, table_prefix: str = "locus_", *, search: bool = True, parser: Parser = "default") -> None:
        self.parser: Parser = parser
        schema = memory_schema(table_prefix, search=search, search_parser=parser)
        super().__init__(schema, table_names(table_prefix), PIECES)


def dialect_of(config: MySQLConfig) -> MemoryDialect:
    """Return the dialect for the tables of a configuration; stores share it, and the texts that it compiles."""
    return _dialect(config.table_prefix, config.search, config.search_parser)


@lru_cache(maxsize=64)
def _dialect(table_prefix: str, search: bool, parser: Parser) -> MemoryDialect:
    return MemoryDialect(table_prefix, search=search, parser=parser)


class Place(NamedTuple):
    """The key of a namespace."""

    tenant: str
    path: bytes


class ItemPlace(NamedTuple):
    """The primary key of an item."""

    tenant: str
    path: bytes
    key: bytes


class Token(NamedTuple):
    """The key of a write in the ledger."""

    tenant: str
    token: bytes


class CountRow(NamedTuple):
    """A number of rows."""

    total: int


class PathRow(NamedTuple):
    """The path of a namespace."""

    path: bytes


class ItemKeyRow(NamedTuple):
    """The path and the key of an item."""

    path: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Range:
    """A namespace, or all namespaces that begin with one.

    In a path, each label ends with a NUL, and no label contains one. So the paths that begin with a path are exactly
    the namespaces that begin with its labels, and they are one range of the primary key.

    Args:
        path: The namespace's path.
        exact: Whether the range is this namespace only, without those below.
    """

    path: bytes
    exact: bool = False

    def condition(self, alias: str) -> str:
        """Return the condition on a table's path, beginning with AND; empty for all namespaces."""
        if self.exact:
            return f" AND {alias}.path = :range_path"
        return f" AND {alias}.path >= :range_path AND {alias}.path < :range_end" if self.path else ""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the condition."""
        return {"range_path": self.path, "range_end": self.path[:-1] + b"\1"}

    def owned(self, alias: str) -> str:
        """Return the condition on a table's owner, which is tenant and path in one, beginning with WHERE."""
        if self.exact:
            return f" WHERE {alias}.owner = :range_owner"
        return f" WHERE {alias}.owner >= :range_owner AND {alias}.owner < :range_owner_end"

    def owned_params(self, tenant: str) -> dict[str, Any]:
        """Return the parameters of that condition."""
        owner = owner_of(tenant, self.path)
        return {"range_owner": owner, "range_owner_end": owner[:-1] + b"\1"}


#: All namespaces of a tenant.
ALL = Range(b"")


def owner_of(tenant: str, path: bytes) -> bytes:
    """Return tenant and path in one, which sorts like the two; neither a tenant nor a label contains a NUL."""
    return tenant.encode() + b"\0" + path


def path_at(tenant: str) -> int:
    """Return the position of the path in an owner, counted from 1 as in SQL."""
    return len(tenant.encode()) + 2


def of_tenant(tenant: str, keys: Sequence[ItemKey]) -> list[list[ItemPlace]]:
    """Return the primary keys of items, in lists for one statement each."""
    return portions([ItemPlace(tenant, path, key) for path, key in keys])


def portions(rows: list[T]) -> list[list[T]]:
    """Divide rows into lists for one statement each."""
    return [rows[start : start + ROWS_PER_STATEMENT] for start in range(0, len(rows), ROWS_PER_STATEMENT)]
