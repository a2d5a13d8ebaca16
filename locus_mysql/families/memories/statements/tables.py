"""The tables of long-term memory."""

from __future__ import annotations

from ....dialect.schema import Schema, Table
from ....dialect.template import fill
from ....dialect.words import TENANT_WORD, Parser, index_keys, needed_index
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
