"""Statements that write sessions.

A write is one batch: `ADVANCE`, `BEGIN` or `END` changes the session's row, `record` stores the tokens and undoes the
batch if no row was changed, and the others write entries and checkpoints. ``sid`` is the id of the session in the other
tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ....dialect import Statement
from ....dialect.sql import NO_PIECES, SQL, Dialect
from ..content import DELETED_KNOWN_US
from .tables import SessionKey

#: The maximum number of rows that one statement writes.
ROWS_PER_STATEMENT = 100

_EPOCH = datetime(1970, 1, 1)


class NewEntry(NamedTuple):
    """An entry to write, or an earlier version of one with the stamp up to which it was valid."""

    kind: int
    name: str
    value: bytes | None
    size_bytes: int
    version: int
    used: int
    expires_at: str | None
    valid_until: int = 0


class Use(NamedTuple):
    """The stamp of the last use of a variable."""

    name: str
    used: int


class Outcome(NamedTuple):
    """The token of a command, and its outcome."""

    token: bytes
    outcome: int


#: Start the time to live again.
RENEW = SQL("""
UPDATE {sessions} s
   SET s.expires_at = UTC_TIMESTAMP(6) + INTERVAL (s.ttl_us + s.ttl_us DIV 8) MICROSECOND
 WHERE {KEY} AND {LIVE_SESSION} AND s.ttl_us IS NOT NULL
""")

#: Create a session. Fails with error 1062 if it exists.
BEGIN = SQL("""
INSERT INTO {sessions} (tenant, session_id, sid, stamp, ttl_us, variables, size_bytes, notes, notes_bytes,
                        notes_version, last_note, checkpoints, kept, created_at, expires_at)
VALUES (:tenant, :session_id, :sid, :stamp, :ttl_us, :variables, :size_bytes, :notes, :notes_bytes,
        :notes_version, :last_note, :checkpoints, :kept, :created_at, :expires_at)
""")

#: Change a session that has this stamp, before a time; see `advance`. The answer carries the server's clock as the last
#: insert id. LAST_INSERT_ID(expression) returns the expression.
ADVANCE = SQL("""
UPDATE {sessions}
   SET {assignments}
 WHERE tenant = :tenant AND session_id = :session_id AND sid = :sid AND stamp = :stamp
   AND LAST_INSERT_ID({NOW}) < :valid_until_us
""")

#: Remove a session that has this stamp, before a time; one that has expired; or one that still has this id.
END = SQL("""
DELETE FROM {sessions}
 WHERE tenant = :tenant AND session_id = :session_id AND sid = :sid AND stamp = :stamp AND {NOW} < :valid_until_us
""")
END_EXPIRED = SQL("""
DELETE FROM {sessions}
 WHERE tenant = :tenant AND session_id = :session_id AND sid = :sid AND expires_at <= UTC_TIMESTAMP(6)
""")

#: Record the tokens of commands with their outcomes; see `record`. Undoes the batch, with error 3141, if the statement
#: before it changed no session: it has another stamp by now, or something has expired. ROW_COUNT() is -1 after a lost
#: connection.
RECORD = SQL("""
INSERT INTO {ledger} (tenant, token, outcome, recorded_at)
VALUES (:tenant, :token, :outcome + JSON_LENGTH(IF(ROW_COUNT() > 0, '[]', '')), UTC_TIMESTAMP(6)){more}
""")
RECORD_OTHERS = ", [rows: (:tenant, :token, :outcome, UTC_TIMESTAMP(6))]"

PUT = SQL(
    """
INSERT INTO {entries} (tenant, sid, kind, name, value, size_bytes, version, used, expires_at)
VALUES [rows: (:tenant, :sid, :kind, :name, :value, :size_bytes, :version, :used, :expires_at)] AS fresh
    ON DUPLICATE KEY UPDATE
       value      = fresh.value,
       size_bytes = fresh.size_bytes,
       version    = fresh.version,
       used       = fresh.used,
       expires_at = fresh.expires_at
""",
    oceanbase="""
INSERT INTO {entries} (tenant, sid, kind, name, value, size_bytes, version, used, expires_at)
VALUES [rows: (:tenant, :sid, :kind, :name, :value, :size_bytes, :version, :used, :expires_at)]
    ON DUPLICATE KEY UPDATE
       value      = VALUES(value),
       size_bytes = VALUES(size_bytes),
       version    = VALUES(version),
       used       = VALUES(used),
       expires_at = VALUES(expires_at)
""",
)

#: Record when variables were last used.
USE = SQL("""
UPDATE (VALUES [rows: ROW(:name, :used)]) AS listed (name, used)
  STRAIGHT_JOIN {entries} e ON e.tenant = :tenant AND e.sid = :sid AND e.kind = 1 AND e.name = listed.name
   SET e.used = listed.used
""")

#: Copy the present rows of entries to the history.
KEEP = SQL("""
INSERT INTO {history} (tenant, sid, kind, name, version, valid_until, value, size_bytes, expires_at)
SELECT e.tenant, e.sid, e.kind, e.name, e.version, :valid_until, e.value, e.size_bytes, e.expires_at
  FROM {entries} e
 WHERE e.tenant = :tenant AND e.sid = :sid AND e.kind = :kind AND {condition}
    ON DUPLICATE KEY UPDATE {history}.value = {history}.value
""")
OF_NAMES, UP_TO = "e.name IN (:names)", "e.version <= :kept"

PUT_HISTORY = SQL("""
INSERT INTO {history} (tenant, sid, kind, name, version, valid_until, value, size_bytes, expires_at)
VALUES [rows: (:tenant, :sid, :kind, :name, :version, :valid_until, :value, :size_bytes, :expires_at)]
""")

#: Remove all notes, or some.
DROP_ALL = SQL("DELETE FROM {entries} WHERE {ROWS} AND kind = 3")
DROP = SQL("DELETE FROM {entries} WHERE {ROWS} AND kind = 3 AND name IN (:names)")

CREATE = SQL("""
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at, checksum)
VALUES [rows: (:tenant, :sid, :checkpoint_id, :stamp, :label, :variables, :notes, :size_bytes,
        TIMESTAMPADD(MICROSECOND, :created_us, '1970-01-01'), :checksum)]
""")
DELETE = SQL("DELETE FROM {checkpoints} WHERE {ROWS} AND checkpoint_id IN (:ids)")

#: Delete history that no checkpoint contains.
PRUNE = SQL("""
DELETE h
  FROM {history} h
 WHERE h.tenant = :tenant AND h.sid = :sid
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = h.tenant AND c.sid = h.sid AND c.stamp >= h.version AND c.stamp < h.valid_until)
""")

#: Remove all rows of a session in another table.
REMOVE_FROM = SQL("DELETE FROM {table} WHERE {ROWS}")
OTHER_TABLES = ("{history}", "{checkpoints}", "{entries}")

#: Remove the rows of variables and task states that were deleted before a time.
FORGET_REMOVED = SQL("""
DELETE e FROM {entries} e JOIN {sessions} s ON {OF_SESSION}
 WHERE {KEY} AND e.value IS NULL AND e.version < {NOW} - :known_us
""")


def advance(
    sql: Dialect, key: SessionKey, sid: bytes, stamp: int, valid_until_us: int, columns: Mapping[str, Any]
) -> Statement:
    """Change columns of a session that has this stamp, before a time."""
    assignments = ", ".join(f"{name} = :new_{name}" for name in columns)
    changed = {f"new_{name}": value for name, value in columns.items()}
    pieces = {"assignments": assignments}
    return ADVANCE(sql, key, pieces=pieces, sid=sid, stamp=stamp, valid_until_us=valid_until_us, **changed)


def record(sql: Dialect, key: SessionKey, first: Outcome, others: list[Outcome]) -> Statement:
    """Record the tokens of commands with their outcomes."""
    if not others:
        return RECORD(sql, key, first, pieces={"more": ""})
    return RECORD(sql, key, first, pieces={"more": RECORD_OTHERS}, rows=others)


def remove(sql: Dialect, key: SessionKey, sid: bytes) -> tuple[Statement, ...]:
    """Remove all rows of a session in the other tables."""
    return tuple(REMOVE_FROM(sql, key, sid=sid, pieces={"table": table}) for table in OTHER_TABLES)


def forget_removed(sql: Dialect, key: SessionKey) -> Statement:
    """Remove the rows of variables and task states whose versions need not be known any more."""
    return FORGET_REMOVED(sql, key, known_us=DELETED_KNOWN_US)


def in_portions(
    statement: SQL, name: str, rows: Sequence[Any], sql: Dialect, key: SessionKey, sid: bytes,
    *, pieces: Mapping[str, str] = NO_PIECES, **values: Any,
) -> list[Statement]:  # fmt: skip
    """Return a statement for each portion of rows, which are its list parameter of this name."""
    return [
        statement(sql, key, pieces=pieces, sid=sid, **{name: list(rows[start : start + ROWS_PER_STATEMENT])}, **values)
        for start in range(0, len(rows), ROWS_PER_STATEMENT)
    ]


def sql_time(at_us: int | None) -> str | None:
    """Return a time in microseconds since 1970 as the text of a DATETIME(6)."""
    return None if at_us is None else f"{_EPOCH + timedelta(microseconds=at_us):%Y-%m-%d %H:%M:%S.%f}"
