"""The tables of working memory, the key of a session, and the pieces that statements share: `working_dialect`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ....dialect.schema import Schema, Table
from ....dialect.sql import Dialect
from ....records import ledger

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

#: The roles of the tables, in the order of their creation.
ROLES = ("sessions", "entries", "checkpoints", "history", "ledger")

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# One row per session. Every write changes its stamp, under the condition that it is the one that was read. The counts
# include expired variables. sid identifies the session in the other tables; a session that is begun again has another.
# kept is the stamp of the newest checkpoint: versions of entries up to it are copied to the history before they change.
SESSIONS = """(
  tenant        VARCHAR(128)    NOT NULL,
  session_id    VARCHAR(512)    NOT NULL,
  sid           BINARY(16)      NOT NULL,
  stamp         BIGINT UNSIGNED NOT NULL,
  ttl_us        BIGINT UNSIGNED NULL,
  variables     BIGINT          NOT NULL,
  size_bytes    BIGINT          NOT NULL,
  notes         BIGINT          NOT NULL,
  notes_bytes   BIGINT          NOT NULL,
  notes_version BIGINT UNSIGNED NOT NULL,
  last_note     BIGINT UNSIGNED NOT NULL,
  checkpoints   BIGINT          NOT NULL,
  kept          BIGINT UNSIGNED NOT NULL,
  created_at    DATETIME(6)     NOT NULL,
  expires_at    DATETIME(6)     NULL,
  PRIMARY KEY (tenant, session_id),
  KEY expiry (expires_at)
"""

# One row per variable (kind 1), for the task state (kind 2), and per note (kind 3), whose name is its number in 20
# digits. value is the caller's JSON, sealed with its place, kind, name and version. If it is NULL, the variable or the
# task state was deleted, and the row exists for readers of versions.
ENTRIES = """(
  tenant     VARCHAR(128)     NOT NULL,
  sid        BINARY(16)       NOT NULL,
  kind       TINYINT UNSIGNED NOT NULL,
  name       VARCHAR(512)     NOT NULL,
  value      LONGBLOB         NULL,
  size_bytes INT UNSIGNED     NOT NULL,
  version    BIGINT UNSIGNED  NOT NULL,
  used       BIGINT UNSIGNED  NOT NULL,
  expires_at DATETIME(6)      NULL,
  PRIMARY KEY (tenant, sid, kind, name)
"""

# One row per checkpoint. It contains the rows of `entries` and `history` with a version up to its stamp, of the history
# only those that were valid beyond it; except those expired by then. The checksum covers what the client wrote.
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

# Earlier versions of entries that checkpoints contain: copied before the entry is changed or removed.
HISTORY = """(
  tenant      VARCHAR(128)     NOT NULL,
  sid         BINARY(16)       NOT NULL,
  kind        TINYINT UNSIGNED NOT NULL,
  name        VARCHAR(512)     NOT NULL,
  version     BIGINT UNSIGNED  NOT NULL,
  valid_until BIGINT UNSIGNED  NOT NULL,
  value       LONGBLOB         NULL,
  size_bytes  INT UNSIGNED     NOT NULL,
  expires_at  DATETIME(6)      NULL,
  PRIMARY KEY (tenant, sid, kind, name, version)
"""

_DEFINITIONS = {
    "sessions": SESSIONS,
    "entries": ENTRIES,
    "checkpoints": CHECKPOINTS,
    "history": HISTORY,
}


#: Pieces by name. ``{KEY}`` selects a session ``s``, ``{LIVE_SESSION}`` one that has not expired. ``{OF_SESSION}``
#: joins entries ``e`` to it, ``{ROWS}`` selects its rows in another table. ``{NOW}`` is the server's clock in
#: microseconds since 1970, as are the other times that are read.
PIECES = {
    "NOW": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "KEY": "s.tenant = :tenant AND s.session_id = :session_id",
    "LIVE_SESSION": "(s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))",
    "OF_SESSION": "e.tenant = s.tenant AND e.sid = s.sid",
    "ROWS": "tenant = :tenant AND sid = :sid",
    "EXPIRES": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.expires_at)",
    "ENTRY_EXPIRES": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', e.expires_at)",
    "LIVE_ENTRY": "e.value IS NOT NULL AND (e.expires_at IS NULL OR e.expires_at > UTC_TIMESTAMP(6))",
}


class SessionKey(NamedTuple):
    """The key of a session: parameters of most statements."""

    tenant: str
    session_id: str


@lru_cache
def working_dialect(table_prefix: str = "locus_") -> Dialect:
    """Return the dialect of the tables with one prefix, which all stores share.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """
    return Dialect(working_schema(table_prefix), table_names(table_prefix), PIECES)


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


def value_identity(kind: int, name: str, version: int) -> tuple[str, str, str]:
    """What the value of an entry is bound to within its session."""
    return str(kind), name, str(version)
