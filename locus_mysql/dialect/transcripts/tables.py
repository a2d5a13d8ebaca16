"""The tables of transcripts."""

from __future__ import annotations

from .. import ledger
from ..schema import Schema, Table

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
