"""The tables of long-term memory."""

from __future__ import annotations

from typing import Literal

from ..schema import NeededIndex, Schema, Table

#: Raised when a change of layout needs a migration.
LAYOUT_VERSION = 3

#: The roles of the tables, in the order in which they are made.
ROLES = ("scopes", "items", "vectors", "codes", "signs", "settled")

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# One row per namespace that was ever written to. It is locked by every write to the namespace, and its stamp rises with
# each: so whoever has seen a stamp has seen all that was written under a smaller one, which commits alone, arriving in
# any order, would not tell. A stamp is of the server's clock in microseconds, or one more than the last if that is
# later: a row removed and made anew never shows an old stamp. Whoever has seen none since `purged` must read all anew:
# codes of items deleted up to then are gone, or the row itself was made then. token is that of the last write, as in
# settled, and earlier that of the write before. A server that lost its last transactions may draw their stamps again,
# but no token: a cache goes on from what it knows only if the write that it knows of is still found by its token.
SCOPES = """(
  tenant VARCHAR(128)    NOT NULL,
  path   VARBINARY(1000) NOT NULL,
  stamp  BIGINT UNSIGNED NOT NULL,
  purged BIGINT UNSIGNED NOT NULL,
  token  BINARY(16)      NOT NULL,
  earlier BINARY(16)     NULL,
  PRIMARY KEY (tenant, path)
"""

# One row per item. path is the namespace, each label followed by a NUL; both it and the key are bytes, so that they
# compare by code point. value and metadata are the JSON text that was given: a JSON column would reorder keys and round
# large numbers. A write puts its text into pending_text; it is moved to search_text, which the full-text index
# covers, before a search (see the tables of checkpoints). checksum covers
# tenant, path, key, value, metadata and version.
ITEMS = """(
  tenant       VARCHAR(128)    NOT NULL,
  path         VARBINARY(1000) NOT NULL,
  item_key     VARBINARY(1000) NOT NULL,
  value        LONGTEXT        NOT NULL,
  metadata     LONGTEXT        NULL,
  version      BIGINT UNSIGNED NOT NULL,
  ttl_us       BIGINT UNSIGNED NULL,
  search_text  LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  pending_text LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  unindexed    TINYINT         NULL,
  created_at   DATETIME(6)     NOT NULL,
  updated_at   DATETIME(6)     NOT NULL,
  expires_at   DATETIME(6)     NULL,
  checksum     INT UNSIGNED    NOT NULL,
  PRIMARY KEY (tenant, path, item_key),
  KEY expiry (expires_at)"""

# One row per embedding: 32-bit floats, little-endian, which is the VECTOR type's own format. Not that type: it came
# with MySQL 9, and PyMySQL 1.2.4 fails on reading it. digest is of the text that was embedded. checksum
# covers all other columns.
VECTORS = """(
  tenant    VARCHAR(128)      NOT NULL,
  path      VARBINARY(1000)   NOT NULL,
  item_key  VARBINARY(1000)   NOT NULL,
  place     SMALLINT UNSIGNED NOT NULL,
  digest    BINARY(16)        NULL,
  embedding MEDIUMBLOB        NOT NULL,
  checksum  INT UNSIGNED      NOT NULL,
  PRIMARY KEY (tenant, path, item_key, place)
"""

# The same embeddings in a byte per dimension, for the caches of processes. A code that is NULL tells of an embedding
# that was removed; such rows are purged after a while.
CODES = """(
  tenant     VARCHAR(128)      NOT NULL,
  path       VARBINARY(1000)   NOT NULL,
  item_key   VARBINARY(1000)   NOT NULL,
  place      SMALLINT UNSIGNED NOT NULL,
  stamp      BIGINT UNSIGNED   NOT NULL,
  code       MEDIUMBLOB        NULL,
  PRIMARY KEY (tenant, path, item_key, place),
  KEY changes (tenant, path, stamp)
"""

# The same in a bit per dimension, for searches on the server: narrow, as it reads all of a scope. owner is tenant and
# path in one, with a NUL between them, so that of each row less is decoded and compared with the ends of a range.
# expires tells whether the item has to be asked if it is still alive. dims is the width of the embedding, which several
# widths with as many bytes of signs would not tell.
SIGNS = """(
  owner    VARBINARY(1513)   NOT NULL,
  item_key VARBINARY(1000)   NOT NULL,
  place    SMALLINT UNSIGNED NOT NULL,
  expires  TINYINT           NOT NULL,
  dims     SMALLINT UNSIGNED NOT NULL,
  sig      VARBINARY(2048)   NOT NULL,
  PRIMARY KEY (owner, item_key, place)
"""

# Every write leaves its token here, in its own transaction. So a write whose answer was lost is recognised when it is
# repeated, and a late duplicate of a packet fails by the primary key. outcome is what the write has to answer.
SETTLED = """(
  tenant     VARCHAR(128)    NOT NULL,
  token      BINARY(16)      NOT NULL,
  outcome    BIGINT UNSIGNED NULL,
  settled_at DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, token),
  KEY age (settled_at)
"""


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles."""
    return {role: f"{table_prefix}memory_{role}" for role in ROLES}


def memory_schema(table_prefix: str, *, search: bool, search_parser: Literal["default", "ngram"] = "default") -> Schema:
    """The tables of long-term memory.

    Args:
        table_prefix: Put before their names.
        search: Whether they have a full-text index.
        search_parser: Its parser.
    """
    names = table_names(table_prefix)
    parser = " WITH PARSER ngram" if search_parser == "ngram" else ""
    keys = ("KEY pending (unindexed)", f"FULLTEXT KEY words (search_text){parser}")
    indexes = "".join(f",\n  {key}" for key in keys) if search else ""
    definitions = {
        "scopes": SCOPES,
        "items": f"{ITEMS}{indexes}\n",
        "vectors": VECTORS,
        "codes": CODES,
        "signs": SIGNS,
        "settled": SETTLED,
    }
    added = ", ".join(f"ADD {key}" for key in keys)
    advice = f"Set search=False, or add the index: ALTER TABLE `{names['items']}` {added}"
    return Schema(
        "memories",
        LAYOUT_VERSION,
        tuple(Table(names[role], definitions[role] + _ENGINE) for role in ROLES),
        (NeededIndex(names["items"], "words", advice),) if search else (),
    )
