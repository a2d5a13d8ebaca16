"""The tables of long-term memory; the names and pieces that its statements share; and `Range`, some namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ....config import MySQLConfig
from ....dialect.schema import Schema, Table
from ....dialect.sql import Dialect
from ....dialect.statement import fill
from ....dialect.variants import OCEANBASE
from ....dialect.words import TENANT_WORD, Parser, index_keys, needed_index, pieces_of
from ....records import ledger

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

#: The format byte of a value: JSON.
JSON = b"J"

#: The roles of the tables, in the order of their creation.
ROLES = ("scopes", "items", "vectors", "signs", "ledger")

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# One row per namespace that was ever written to. Every write to the namespace locks it and raises its stamp, so a
# process that has read a stamp has read all writes with smaller ones, although transactions may commit in any order. A
# stamp is the server's clock in microseconds, or one more than the last stamp if that is later, so a row that was
# deleted and created again never shows an old stamp. A cache that is older than `purged` must read the namespace again:
# the rows of embeddings that were removed up to then are gone, or the row itself was created then. token is the token
# of the last write, as in the ledger, and earlier that of the write before. A server that lost its last transactions
# may use their stamps again, but never a token: a cache is continued only if the ledger still has the token of its last
# known write.
SCOPES = """(
  tenant VARCHAR(128)    NOT NULL,
  path   VARBINARY(1000) NOT NULL,
  stamp  BIGINT UNSIGNED NOT NULL,
  purged BIGINT UNSIGNED NOT NULL,
  token  BINARY(16)      NOT NULL,
  earlier BINARY(16)     NULL,
  PRIMARY KEY (tenant, path)
"""

# One row per item. path is the namespace, each label followed by a NUL; path and key are bytes, so that they compare by
# code point. value and metadata are the caller's JSON text: a JSON column would reorder keys and round large numbers. A
# write stores its text in pending_text; before a search it is moved to search_text, which the full-text index covers
# (see the tables of checkpoints). embed_paths is a JSON list of the paths whose texts are embedded: NULL for those of
# the store, an empty list if nothing is. seal covers tenant, path, key, value and metadata, and is NULL if the value is
# encrypted, as it then has its own: see `runtime/sealing.py`.
ITEMS = """(
  tenant       VARCHAR(128)    NOT NULL,
  path         VARBINARY(1000) NOT NULL,
  item_key     VARBINARY(1000) NOT NULL,
  value        LONGTEXT        NOT NULL,
  metadata     LONGTEXT        NULL,
  version      BIGINT UNSIGNED NOT NULL,
  ttl_us       BIGINT UNSIGNED NULL,
  embed_paths  LONGTEXT        NULL,
  search_text  LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  {tenant_word},
  pending_text LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  unindexed    TINYINT         NULL,
  created_at   DATETIME(6)     NOT NULL,
  updated_at   DATETIME(6)     NOT NULL,
  expires_at   DATETIME(6)     NULL,
  seal         INT UNSIGNED    NULL,
  PRIMARY KEY (tenant, path, item_key),
  KEY expiry (expires_at)"""

# One row per embedding: 32-bit floats, little-endian, the format of the VECTOR type, sealed together with the digest of
# the text that was embedded, if it is known. That type is not used, as it came with MySQL 9, and PyMySQL 1.2.4 fails to
# read it. model is the digest of the name of the model: embeddings of different models are never compared. stamp is
# that of the write, by which caches find what has changed. A removed embedding is NULL; its row stays an hour.
VECTORS = """(
  tenant    VARCHAR(128)      NOT NULL,
  path      VARBINARY(1000)   NOT NULL,
  item_key  VARBINARY(1000)   NOT NULL,
  number    SMALLINT UNSIGNED NOT NULL,
  model     INT UNSIGNED      NOT NULL,
  embedding MEDIUMBLOB        NULL,
  removed   TINYINT           NOT NULL,
  stamp     BIGINT UNSIGNED   NOT NULL,
  PRIMARY KEY (tenant, path, item_key, number),
  KEY changes (tenant, removed, path, stamp)
"""

# The same with a bit per dimension, for searches on the server. The table is narrow, as a search reads all rows of a
# range. owner is tenant and path in one column, with a NUL between them, so that less of each row is decoded and
# compared with the ends of a range. expires is 1 if the item may expire, so that a search must check it. dims is the
# width of the embedding, as several widths have the same number of bytes of signs.
SIGNS = """(
  owner    VARBINARY(1513)   NOT NULL,
  item_key VARBINARY(1000)   NOT NULL,
  number   SMALLINT UNSIGNED NOT NULL,
  expires  TINYINT           NOT NULL,
  dims     SMALLINT UNSIGNED NOT NULL,
  model    INT UNSIGNED      NOT NULL,
  sig      VARBINARY(2048)   NOT NULL,
  PRIMARY KEY (owner, item_key, number)
"""


def table_names(table_prefix: str) -> dict[str, str]:
    """Return the unquoted names of the tables by their roles."""
    return {role: f"{table_prefix}memory_{role}" for role in ROLES}


def memory_schema(table_prefix: str, *, search: bool, search_parser: Parser = "default") -> Schema:
    """Return the tables of long-term memory.

    Args:
        table_prefix: The prefix of their names.
        search: Whether there is a full-text index.
        search_parser: The parser of that index.
    """
    names = table_names(table_prefix)
    indexes = "".join(f",\n  {key}" for key in index_keys(search_parser)) if search else ""
    definitions = {
        "scopes": SCOPES,
        "items": fill(ITEMS, {"tenant_word": TENANT_WORD}) + indexes + "\n",
        "vectors": VECTORS,
        "signs": SIGNS,
    }
    tables = tuple(Table(names[role], definition + _ENGINE) for role, definition in definitions.items())
    return Schema(
        "memories",
        LAYOUT_VERSION,
        (*tables, ledger.table(names["ledger"])),
        (needed_index(names["items"], search_parser),) if search else (),
        encrypts=True,
    )


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
