"""The tables of working memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import ledger
from ..checksums import with_version
from ..resealing import OwnerTable, SealedColumn
from ..schema import Schema, Table
from .entries import entry_checksum
from .pieces import SessionKey, value_identity

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

#: The roles of the tables, in the order of their creation.
ROLES = ("sessions", "entries", "checkpoints", "history", "ledger")

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# One row per session. Every write locks it first, and updates its counts, which include expired variables until they
# are swept. sid identifies the session in the other tables; a session that is created again has another sid. stamp
# rises with every write; prior is the stamp before the current write, and replaced has the bytes of the variable that
# it replaces. last_note is the number of the newest note.
SESSIONS = """(
  tenant     VARCHAR(128)    NOT NULL,
  session_id VARCHAR(512)    NOT NULL,
  sid        BINARY(16)      NOT NULL,
  stamp      BIGINT UNSIGNED NOT NULL,
  prior      BIGINT UNSIGNED NOT NULL,
  replaced   BIGINT          NOT NULL,
  ttl_us     BIGINT UNSIGNED NULL,
  variables  BIGINT          NOT NULL,
  notes      BIGINT          NOT NULL,
  size_bytes BIGINT          NOT NULL,
  last_note  BIGINT UNSIGNED NOT NULL,
  created_at DATETIME(6)     NOT NULL,
  expires_at DATETIME(6)     NULL,
  PRIMARY KEY (tenant, session_id),
  KEY expiry (expires_at)
"""

# One row per variable (kind 1), for the task state (kind 2), and per note (kind 3), whose name is its number in 20
# digits. value is the caller's JSON, as bytes. If it is NULL, the entry was deleted, and the row exists for the next
# checkpoint and for readers of versions; its checksum is 0. Else the checksum covers tenant, session id, kind, name,
# value and canonical form.
ENTRIES = """(
  tenant     VARCHAR(128)     NOT NULL,
  sid        BINARY(16)       NOT NULL,
  kind       TINYINT UNSIGNED NOT NULL,
  name       VARCHAR(512)     NOT NULL,
  value      LONGBLOB         NULL,
  canonical  VARBINARY(32)    NULL,
  size_bytes INT UNSIGNED     NOT NULL,
  version    BIGINT UNSIGNED  NOT NULL,
  used       BIGINT UNSIGNED  NOT NULL,
  expires_at DATETIME(6)      NULL,
  checksum   INT UNSIGNED     NOT NULL,
  PRIMARY KEY (tenant, sid, kind, name)
"""

# One row per checkpoint. Its entries are the newest rows of `history` up to its stamp, except those expired by then.
# The checksum covers tenant, session id, checkpoint id, label and stamp.
CHECKPOINTS = """(
  tenant        VARCHAR(128)    NOT NULL,
  sid           BINARY(16)      NOT NULL,
  checkpoint_id VARCHAR(128)    NOT NULL,
  stamp         BIGINT UNSIGNED NOT NULL,
  label         TEXT            NULL,
  variables     BIGINT          NOT NULL,
  notes         BIGINT          NOT NULL,
  size_bytes    BIGINT          NOT NULL,
  created_at    DATETIME(6)     NOT NULL,
  checksum      INT UNSIGNED    NOT NULL,
  PRIMARY KEY (tenant, sid, checkpoint_id)
"""

# The entries at the time of checkpoints: for each checkpoint, only those that had changed since the one before. The
# checksum covers the version, too.
HISTORY = """(
  tenant     VARCHAR(128)     NOT NULL,
  sid        BINARY(16)       NOT NULL,
  kind       TINYINT UNSIGNED NOT NULL,
  name       VARCHAR(512)     NOT NULL,
  version    BIGINT UNSIGNED  NOT NULL,
  value      LONGBLOB         NULL,
  canonical  VARBINARY(32)    NULL,
  size_bytes INT UNSIGNED     NOT NULL,
  expires_at DATETIME(6)      NULL,
  checksum   INT UNSIGNED     NOT NULL,
  PRIMARY KEY (tenant, sid, kind, name, version)
"""

_DEFINITIONS = {
    "sessions": SESSIONS,
    "entries": ENTRIES,
    "checkpoints": CHECKPOINTS,
    "history": HISTORY,
}


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles."""
    return {role: f"{table_prefix}working_{role}" for role in ROLES}


def working_schema(table_prefix: str) -> Schema:
    """The tables of working memory.

    Args:
        table_prefix: The prefix of their names.
    """
    names = table_names(table_prefix)
    tables = tuple(Table(names[role], definition + _ENGINE) for role, definition in _DEFINITIONS.items())
    return Schema("working", LAYOUT_VERSION, (*tables, ledger.table(names["ledger"])), encrypts=True)


def encrypted_columns(table_prefix: str) -> tuple[SealedColumn, ...]:
    """Return the encrypted columns: the values of entries, now and at checkpoints."""
    names = table_names(table_prefix)

    def column(role: str, *further_key: str) -> SealedColumn:
        def checksum(row: Mapping[str, Any], value: bytes) -> int:
            own = entry_checksum(SessionKey(row["tenant"], row["session_id"]), row["kind"], row["name"], value)
            return with_version(own, row["version"]) if further_key else own

        return SealedColumn(
            names[role],
            key=("tenant", "sid", "kind", "name", *further_key),
            owner=("session_id",),
            row=("kind", "name"),
            column="value",
            name="value",
            cleared=("canonical",),
            owner_table=OwnerTable(names["sessions"], ("tenant", "session_id"), ("tenant", "sid")),
            identity=lambda row: value_identity(row["kind"], row["name"]),
            checksum=checksum,
        )

    return column("entries"), column("history", "version")
