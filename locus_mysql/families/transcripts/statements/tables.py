"""The tables of transcripts, the key of a transcript, and the pieces that statements share: `transcript_dialect`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ....dialect.schema import Schema, Table
from ....dialect.sql import Dialect
from ....records import ledger

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# One row per transcript. Every write locks it first and raises its revision: the server's clock in microseconds, or one
# more than the last revision if that is later, so a transcript that was deleted and created again has a later one.
# prior is the revision before the current write, 0 for a new transcript. kind, collection, name and part are UTF-8 as
# bytes, so they compare by code point. sid identifies the transcript in the other table. tag, scope and state are data
# of the caller; state is sealed JSON. seal covers the key, tag and scope, and whether there is a state: see
# `runtime/sealing.py`.
TRANSCRIPTS = """(
  tenant     VARCHAR(128)    NOT NULL,
  kind       VARBINARY(32)   NOT NULL,
  collection VARBINARY(800)  NOT NULL,
  name       VARBINARY(800)  NOT NULL,
  part       VARBINARY(800)  NOT NULL,
  sid        BINARY(16)      NOT NULL,
  revision   BIGINT UNSIGNED NOT NULL,
  prior      BIGINT UNSIGNED NOT NULL,
  tag        VARBINARY(255)  NULL,
  scope      VARBINARY(800)  NULL,
  state      LONGBLOB        NULL,
  items      BIGINT          NOT NULL,
  size_bytes BIGINT          NOT NULL,
  last_seq   BIGINT UNSIGNED NOT NULL,
  created_at DATETIME(6)     NOT NULL,
  expires_at DATETIME(6)     NULL,
  seal       INT UNSIGNED    NOT NULL,
  PRIMARY KEY (tenant, kind, collection, name, part),
  KEY recent (tenant, revision),
  KEY scope (tenant, kind, scope, revision),
  KEY expiry (expires_at)
"""

# One row per item. seq rises by one with each item that is added, and is never reused. content is JSON, sealed with the
# key of the transcript and item_id. The index identity refuses a second item with the same id in a transcript, and
# finds an item by its id alone.
ITEMS = """(
  tenant     VARCHAR(128)    NOT NULL,
  sid        BINARY(16)      NOT NULL,
  seq        BIGINT UNSIGNED NOT NULL,
  item_id    VARBINARY(255)  NULL,
  content    LONGBLOB        NOT NULL,
  created_at DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, sid, seq),
  UNIQUE KEY identity (tenant, item_id, sid)
"""

_DEFINITIONS = {"transcripts": TRANSCRIPTS, "items": ITEMS}


#: Pieces by name. ``{KEY}`` selects a transcript ``t`` by its key, ``{GROUP}`` the transcript and all its parts.
#: ``{LIVE_TRANSCRIPT}``: it has not expired. ``{OF_TRANSCRIPT}`` joins items ``i`` to it. ``{US_SINCE_1970}`` is the
#: server's clock in microseconds.
PIECES = {
    "US_SINCE_1970": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "KEY": "{GROUP} AND t.part = :part",
    "GROUP": "t.tenant = :tenant AND t.kind = :kind AND t.collection = :collection AND t.name = :name",
    "ONE_OF": "(t.tenant, t.kind, t.collection, t.name, t.part) IN (:keys)",
    "LIVE_TRANSCRIPT": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    "OF_TRANSCRIPT": "i.tenant = t.tenant AND i.sid = t.sid",
    "HEADER": (
        "t.kind, t.collection, t.name, t.part, t.revision, t.tag, t.scope, t.items, t.size_bytes, t.last_seq,"
        " t.created_at, t.expires_at, t.seal, t.sid"
    ),
}


class RowKey(NamedTuple):
    """The key of a transcript's row: parameters of most statements."""

    tenant: str
    kind: bytes
    collection: bytes
    name: bytes
    part: bytes


@lru_cache
def transcript_dialect(table_prefix: str = "locus_") -> Dialect:
    """Return the dialect of the tables with one prefix, which all stores share.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """
    return Dialect(transcript_schema(table_prefix), table_names(table_prefix), PIECES)


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles."""
    return {
        "transcripts": f"{table_prefix}transcripts",
        "items": f"{table_prefix}transcript_items",
        "ledger": f"{table_prefix}transcript_ledger",
    }


def transcript_schema(table_prefix: str) -> Schema:
    """The tables of transcripts.

    Args:
        table_prefix: The prefix of their names.
    """
    names = table_names(table_prefix)
    tables = tuple(Table(names[role], definition + _ENGINE) for role, definition in _DEFINITIONS.items())
    return Schema("transcripts", LAYOUT_VERSION, (*tables, ledger.table(names["ledger"])), encrypts=True)


def encrypted_identity(item_id: bytes | None, seq: int) -> tuple[bytes | int | None, ...]:
    """Return what the encrypted content of an item is bound to: its id, or its seq if it has none."""
    return (item_id,) if item_id is not None else (None, seq)
