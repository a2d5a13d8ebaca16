"""The statements of working memory: `WorkingDialect`.

A write is one batch: `advance` or `begin` changes the session's row, `record` stores the tokens and undoes the batch if
no row was changed, and the others write entries and checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple, TypeVar

from .. import ledger
from ..dialect import Dialect
from ..like import like
from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .inspection import InspectionStatements
from .maintenance import MaintenanceStatements
from .tables import NOTE, SessionKey, table_names, working_schema

#: The microseconds for which the versions of deleted entries are kept.
DELETED_KNOWN_US = 3_600_000_000

#: The maximum number of rows that one statement writes.
ROWS_PER_STATEMENT = 100

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1)

#: Pieces by name. ``{SESSION}`` selects a session ``s`` that has not expired, ``{OF_SESSION}`` joins entries ``e`` to
#: it; ``{NOW}`` is the server's clock in microseconds since 1970, as are the other times that are read.
PIECES = {
    "NOW": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "SESSION": "s.tenant = %s AND s.session_id = %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))",
    "OF_SESSION": "e.tenant = s.tenant AND e.sid = s.sid",
    "EXPIRES": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.expires_at)",
    "ENTRY_EXPIRES": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', e.expires_at)",
    "LIVE_ENTRY": "e.value IS NOT NULL AND (e.expires_at IS NULL OR e.expires_at > UTC_TIMESTAMP(6))",
    "DELETED_KNOWN_US": str(DELETED_KNOWN_US),
}

# One row, also if there is no session.
HEAD = """
SELECT clock.now_us, s.sid, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.created_at), s.ttl_us, s.stamp, {EXPIRES},
       s.variables, s.size_bytes, s.notes, s.notes_bytes, s.notes_version, s.last_note, s.checkpoints, s.kept
  FROM (SELECT {NOW} AS now_us) AS clock
  LEFT JOIN {sessions} s ON s.tenant = %s AND s.session_id = %s
"""

# One entry, with what a reader needs of the session.
ONE = """
SELECT {NOW}, s.ttl_us, s.stamp, {EXPIRES}, e.value, e.version, {ENTRY_EXPIRES}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = %s AND e.name = %s AND e.value IS NOT NULL
 WHERE s.tenant = %s AND s.session_id = %s
"""

# The last notes, likewise.
NOTES = """
SELECT {NOW}, s.ttl_us, s.stamp, {EXPIRES}, e.name, e.value, e.version
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 3 AND e.value IS NOT NULL
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY e.kind DESC, e.name DESC
 LIMIT %s
"""

# Entries of a session, by ranges of the primary key; deleted ones too, unless the condition leaves them out.
ENTRIES = """
SELECT e.kind, e.name, {value}, e.size_bytes, e.version, e.used, {ENTRY_EXPIRES}
  FROM {sessions} s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s AND {condition}
"""
NAMED = "e.kind = {kind} AND e.name IN ({names})"
OF_VARIABLES = "e.kind = 1"
EXPIRING = "e.kind = 1 AND e.expires_at IS NOT NULL AND e.value IS NOT NULL"
NAMES_AND_TASK = "e.kind IN (1, 2)\n LIMIT %s"
LAST_NOTES = "e.kind = 3\n ORDER BY e.kind DESC, e.name DESC\n LIMIT %s"
EVERYTHING = "TRUE"

CHECKPOINTS = """
SELECT c.checkpoint_id, c.stamp, c.label, c.variables, c.notes, c.size_bytes, c.created_at, c.checksum
  FROM {sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY c.stamp
"""

# The earlier versions of entries that a checkpoint contains.
HISTORY = """
SELECT e.kind, e.name, e.value, e.size_bytes, e.version, 0, {ENTRY_EXPIRES}
  FROM {sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = %s
  JOIN {history} e ON {OF_SESSION} AND e.version <= c.stamp AND e.valid_until > c.stamp
 WHERE s.tenant = %s AND s.session_id = %s
"""

# All history, for exports.
ALL_HISTORY = """
SELECT e.kind, e.name, e.value, e.size_bytes, e.version, 0, {ENTRY_EXPIRES}, e.valid_until
  FROM {sessions} s
  JOIN {history} e ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY e.kind, e.name, e.version
"""

# Ids of sessions after one, and their number.
IDS = """
SELECT s.session_id
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s AND s.session_id LIKE %s
   AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
 ORDER BY s.session_id
 LIMIT %s
"""
COUNT = """
SELECT COUNT(*)
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id LIKE %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
"""

RENEW = """
UPDATE {sessions} s
   SET s.expires_at = UTC_TIMESTAMP(6) + INTERVAL (s.ttl_us + s.ttl_us DIV 8) MICROSECOND
 WHERE {SESSION} AND s.ttl_us IS NOT NULL
"""

BEGIN = """
INSERT INTO {sessions} (tenant, session_id, sid, stamp, ttl_us, variables, size_bytes, notes, notes_bytes,
                        notes_version, last_note, checkpoints, kept, created_at, expires_at)
VALUES ({values})
"""

# The answer carries the server's clock as the last insert id. LAST_INSERT_ID(expression) returns the expression.
ADVANCE = """
UPDATE {sessions}
   SET {assignments}
 WHERE tenant = %s AND session_id = %s AND sid = %s AND stamp = %s AND LAST_INSERT_ID({NOW}) < %s
"""
END = "DELETE FROM {sessions} WHERE tenant = %s AND session_id = %s AND sid = %s AND stamp = %s AND {NOW} < %s"
END_EXPIRED = """
DELETE FROM {sessions} WHERE tenant = %s AND session_id = %s AND sid = %s AND expires_at <= UTC_TIMESTAMP(6)
"""

# Undoes the batch, with error 3141, if the statement before it changed no session: it has another stamp by now, or
# something has expired. ROW_COUNT() is -1 after a lost connection.
RECORD = """
INSERT INTO {ledger} (tenant, token, outcome, recorded_at)
VALUES (%s, %s, %s + JSON_LENGTH(IF(ROW_COUNT() > 0, '[]', '')), UTC_TIMESTAMP(6)){more}
"""
RECORD_ANOTHER = ", (%s, %s, %s, UTC_TIMESTAMP(6))"
GUARD = "SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)"

PUT = """
INSERT INTO {entries} (tenant, sid, kind, name, value, size_bytes, version, used, expires_at)
VALUES {rows} AS fresh
    ON DUPLICATE KEY UPDATE
       value      = fresh.value,
       size_bytes = fresh.size_bytes,
       version    = fresh.version,
       used       = fresh.used,
       expires_at = fresh.expires_at
"""
OCEANBASE.instead_of(
    PUT,
    """
INSERT INTO {entries} (tenant, sid, kind, name, value, size_bytes, version, used, expires_at)
VALUES {rows}
    ON DUPLICATE KEY UPDATE
       value      = VALUES(value),
       size_bytes = VALUES(size_bytes),
       version    = VALUES(version),
       used       = VALUES(used),
       expires_at = VALUES(expires_at)
""",
)

USE = """
UPDATE (VALUES {rows}) AS listed (name, used)
  STRAIGHT_JOIN {entries} e ON e.tenant = %s AND e.sid = %s AND e.kind = 1 AND e.name = listed.name
   SET e.used = listed.used
"""

KEEP = """
INSERT INTO {history} (tenant, sid, kind, name, version, valid_until, value, size_bytes, expires_at)
SELECT e.tenant, e.sid, e.kind, e.name, e.version, %s, e.value, e.size_bytes, e.expires_at
  FROM {entries} e
 WHERE e.tenant = %s AND e.sid = %s AND e.kind = %s AND {condition}
    ON DUPLICATE KEY UPDATE {history}.value = {history}.value
"""
OF_NAMES = "e.name IN ({names})"
UP_TO = "e.version <= %s"

PUT_HISTORY = """
INSERT INTO {history} (tenant, sid, kind, name, version, valid_until, value, size_bytes, expires_at)
VALUES {rows}
"""

DROP = "DELETE FROM {entries} WHERE tenant = %s AND sid = %s AND kind = 3{condition}"
OF_THESE = " AND name IN ({names})"

CREATE = """
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at, checksum)
VALUES {rows}
"""
DELETE = "DELETE FROM {checkpoints} WHERE tenant = %s AND sid = %s AND checkpoint_id IN ({ids})"

# Delete history that no checkpoint contains.
PRUNE = """
DELETE h
  FROM {history} h
 WHERE h.tenant = %s AND h.sid = %s
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = h.tenant AND c.sid = h.sid AND c.stamp >= h.version AND c.stamp < h.valid_until)
"""

# Remove the rows of a session in another table.
REMOVE_FROM = "DELETE FROM {table} WHERE tenant = %s AND sid = %s"

# Remove the rows of variables and task states that were deleted long ago.
FORGET_REMOVED = """
DELETE e FROM {entries} e JOIN {sessions} s ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NULL AND e.version < {NOW} - {DELETED_KNOWN_US}
"""

# Relies on the index expiry.
EXPIRED = """
SELECT s.tenant, s.session_id, s.sid FROM {sessions} s
 WHERE s.expires_at <= UTC_TIMESTAMP(6)
 ORDER BY s.expires_at
 LIMIT %s
"""

# A page of a tenant's sessions, expired ones too.
OF_TENANT = """
SELECT s.session_id, s.sid, COALESCE(s.expires_at <= UTC_TIMESTAMP(6), FALSE) FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s
 ORDER BY s.session_id
 LIMIT %s
"""
END_KNOWN = "DELETE FROM {sessions} WHERE tenant = %s AND session_id = %s AND sid = %s"


class HeadRow(NamedTuple):
    """A session without its entries, or only the time: see `HEAD`."""

    now_us: int
    sid: bytes | None
    created_us: int | None
    ttl_us: int | None
    stamp: int | None
    expires_us: int | None
    variables: int | None
    size_bytes: int | None
    notes: int | None
    notes_bytes: int | None
    notes_version: int | None
    last_note: int | None
    checkpoints: int | None
    kept: int | None


class OneRow(NamedTuple):
    """An entry, or only the session's columns: see `ONE`."""

    now_us: int
    ttl_us: int | None
    stamp: int
    expires_us: int | None
    value: bytes | None
    version: int | None
    entry_expires_us: int | None


class NoteRow(NamedTuple):
    """A note, or only the session's columns: see `NOTES`."""

    now_us: int
    ttl_us: int | None
    stamp: int
    expires_us: int | None
    name: str | None
    value: bytes | None
    version: int | None


class EntryRow(NamedTuple):
    """An entry; without a value if it was deleted, or if values are not asked for: see `ENTRIES`."""

    kind: int
    name: str
    value: bytes | None
    size_bytes: int
    version: int
    used: int
    expires_us: int | None


class HistoryRow(NamedTuple):
    """An earlier version of an entry, and the stamp up to which it was valid: see `ALL_HISTORY`."""

    kind: int
    name: str
    value: bytes | None
    size_bytes: int
    version: int
    used: int
    expires_us: int | None
    valid_until: int


class IdRow(NamedTuple):
    """The id of a session: see `IDS`."""

    session_id: str


class CountRow(NamedTuple):
    """A number of sessions: see `COUNT`."""

    sessions: int


class CheckpointRow(NamedTuple):
    """A checkpoint: see `CHECKPOINTS`."""

    checkpoint_id: str
    stamp: int
    label: str | None
    variables: int
    notes: int
    size_bytes: int
    created_at: datetime
    checksum: int


class ExpiredRow(NamedTuple):
    """An expired session: see `EXPIRED`."""

    tenant: str
    session_id: str
    sid: bytes


class TenantSession(NamedTuple):
    """A session of a tenant: see `OF_TENANT`."""

    session_id: str
    sid: bytes
    expired: int


class ReadingStatements(Statements):
    """Reading sessions."""

    def head(self, key: SessionKey) -> Query[HeadRow]:
        """A session without its entries, and the server's time."""
        return Query(self._text(HEAD), key, row=HeadRow)

    def one(self, key: SessionKey, kind: int, name: str) -> Query[OneRow]:
        """One entry. No row: there is no session."""
        return Query(self._text(ONE), (kind, name, *key), row=OneRow)

    def last_notes(self, key: SessionKey, limit: int) -> Query[NoteRow]:
        """The last notes, newest first. No row: there is no session."""
        return Query(self._text(NOTES), (*key, limit), row=NoteRow)

    def named(self, key: SessionKey, kind: int, names: Sequence[str], *, values: bool) -> Query[EntryRow]:
        """Entries by their names, deleted ones too."""
        condition = {"condition": NAMED, "kind": str(kind), "names": placeholders(len(names))}
        return Query(self._text(ENTRIES, value=_value(values), **condition), (*key, *names), row=EntryRow)

    def variables(self, key: SessionKey, *, values: bool) -> Query[EntryRow]:
        """All variables, deleted ones too."""
        return Query(self._text(ENTRIES, value=_value(values), condition=OF_VARIABLES), key, row=EntryRow)

    def expiring(self, key: SessionKey) -> Query[EntryRow]:
        """The variables that expire, without their values."""
        return Query(self._text(ENTRIES, value="NULL", condition=EXPIRING), key, row=EntryRow)

    def names_and_task(self, key: SessionKey, limit: int) -> Query[EntryRow]:
        """The first variables, and the task state if there are fewer; without values, deleted ones too."""
        return Query(self._text(ENTRIES, value="NULL", condition=NAMES_AND_TASK), (*key, limit), row=EntryRow)

    def notes(self, key: SessionKey, limit: int) -> Query[EntryRow]:
        """The last notes, newest first."""
        return Query(self._text(ENTRIES, value="e.value", condition=LAST_NOTES), (*key, limit), row=EntryRow)

    def everything(self, key: SessionKey) -> Query[EntryRow]:
        """All entries with their values, deleted ones too."""
        return Query(self._text(ENTRIES, value="e.value", condition=EVERYTHING), key, row=EntryRow)

    def checkpoints(self, key: SessionKey) -> Query[CheckpointRow]:
        """Checkpoints, oldest first."""
        return Query(self._text(CHECKPOINTS), key, row=CheckpointRow)

    def history(self, key: SessionKey, checkpoint_id: str) -> Query[EntryRow]:
        """The earlier versions of entries that a checkpoint contains."""
        return Query(self._text(HISTORY), (checkpoint_id, *key), row=EntryRow)

    def all_history(self, key: SessionKey) -> Query[HistoryRow]:
        """All earlier versions of entries."""
        return Query(self._text(ALL_HISTORY), key, row=HistoryRow)

    def ids(self, tenant: str, after: str, pattern: str, limit: int) -> Query[IdRow]:
        """Ids of sessions after an id that match a glob."""
        return Query(self._text(IDS), (tenant, after, like(pattern), limit), row=IdRow)

    def count(self, tenant: str, pattern: str) -> Query[CountRow]:
        """The number of sessions that match a glob."""
        return Query(self._text(COUNT), (tenant, like(pattern)), row=CountRow)

    def renew(self, key: SessionKey) -> Statement:
        """Restart the time to live of a session."""
        return Statement(self._text(RENEW), key)

    def expired(self, limit: int) -> Query[ExpiredRow]:
        """Expired sessions of all tenants, in the order of their expiry."""
        return Query(self._text(EXPIRED), (limit,), row=ExpiredRow)

    def of_tenant(self, tenant: str, last: str, limit: int) -> Query[TenantSession]:
        """A tenant's sessions after an id, in the order of their ids, including expired ones."""
        return Query(self._text(OF_TENANT), (tenant, last, limit), row=TenantSession)


class WritingStatements(Statements):
    """Writing sessions. ``sid`` is the id of the session in the other tables."""

    def begin(self, key: SessionKey, columns: Sequence[Param]) -> Statement:
        """Create a session; ``columns`` are those of `BEGIN` after the key. Fails with error 1062 if it exists."""
        return Statement(self._text(BEGIN, values=placeholders(len(key) + len(columns))), (*key, *columns))

    def advance(
        self, key: SessionKey, sid: bytes, stamp: int, valid_until_us: int, columns: Mapping[str, Param]
    ) -> Statement:
        """Change a session that has this stamp, before this time. The last insert id is the server's time.

        Args:
            key: The session.
            sid: Its id.
            stamp: The stamp that it must have.
            valid_until_us: The time before which the change must happen.
            columns: The columns that change.
        """
        assignments = ", ".join(f"{name} = %s" for name in columns)
        text = self._text(ADVANCE, assignments=assignments)
        return Statement(text, (*columns.values(), *key, sid, stamp, valid_until_us))

    def end(self, key: SessionKey, sid: bytes, stamp: int, valid_until_us: int) -> Statement:
        """Remove a session that has this stamp, before this time."""
        return Statement(self._text(END), (*key, sid, stamp, valid_until_us))

    def end_expired(self, key: SessionKey, sid: bytes) -> Statement:
        """Remove a session if it has expired."""
        return Statement(self._text(END_EXPIRED), (*key, sid))

    def end_known(self, key: SessionKey, sid: bytes) -> Statement:
        """Remove a session if it still has this id."""
        return Statement(self._text(END_KNOWN), (*key, sid))

    def guard(self) -> Statement:
        """Undo the batch if the statement before found no session."""
        return Statement(GUARD)

    def remove(self, tenant: str, sid: bytes) -> tuple[Statement, ...]:
        """Remove all rows of a session in the other tables."""
        tables = ("{history}", "{checkpoints}", "{entries}")
        return tuple(Statement(self._text(REMOVE_FROM, table=table), (tenant, sid)) for table in tables)

    def record(self, tenant: str, outcomes: Sequence[tuple[bytes, int]]) -> Statement:
        """Record the tokens of commands with their outcomes. Undoes the batch if the statement before found no row."""
        text = self._text(RECORD, more=RECORD_ANOTHER * (len(outcomes) - 1))
        return Statement(text, tuple(param for token, outcome in outcomes for param in (tenant, token, outcome)))

    def put(self, tenant: str, sid: bytes, rows: Sequence[EntryRow]) -> tuple[Statement, ...]:
        """Write entries."""
        params = [
            (
                tenant,
                sid,
                row.kind,
                row.name,
                row.value,
                row.size_bytes,
                row.version,
                row.used,
                sql_time(row.expires_us),
            )
            for row in rows
        ]
        return self._rows(PUT, params)

    def put_history(self, tenant: str, sid: bytes, rows: Sequence[HistoryRow]) -> tuple[Statement, ...]:
        """Write earlier versions of entries."""
        params = [
            (tenant, sid, e.kind, e.name, e.version, e.valid_until, e.value, e.size_bytes, sql_time(e.expires_us))
            for e in rows
        ]
        return self._rows(PUT_HISTORY, params)

    def use(self, tenant: str, sid: bytes, uses: Sequence[tuple[str, int]]) -> tuple[Statement, ...]:
        """Record when variables were last used."""
        return tuple(
            Statement(
                self._text(USE, rows=placeholders(len(some), "ROW(%s, %s)")),
                (*(param for use in some for param in use), tenant, sid),
            )
            for some in _portions(uses)
        )

    def keep(self, tenant: str, sid: bytes, kind: int, names: Sequence[str], until: int) -> tuple[Statement, ...]:
        """Copy the present rows of entries to the history."""
        return tuple(
            Statement(
                self._text(KEEP, condition=OF_NAMES, names=placeholders(len(some))), (until, tenant, sid, kind, *some)
            )
            for some in _portions(names)
        )

    def keep_notes(self, tenant: str, sid: bytes, stamp: int) -> Statement:
        """Copy the notes up to a stamp to the history."""
        return Statement(self._text(KEEP, condition=UP_TO), (stamp + 1, tenant, sid, NOTE, stamp))

    def drop_notes(self, tenant: str, sid: bytes, names: Sequence[str] | None = None) -> tuple[Statement, ...]:
        """Remove notes: these, or all."""
        if names is None:
            return (Statement(self._text(DROP, condition=""), (tenant, sid)),)
        return tuple(
            Statement(self._text(DROP, condition=OF_THESE, names=placeholders(len(some))), (tenant, sid, *some))
            for some in _portions(names)
        )

    def create_checkpoints(self, tenant: str, sid: bytes, rows: Sequence[CheckpointRow]) -> tuple[Statement, ...]:
        """Insert checkpoints."""
        params: list[tuple[Param, ...]] = [
            (tenant, sid, *row[:6], f"{row.created_at:%Y-%m-%d %H:%M:%S.%f}", row.checksum) for row in rows
        ]
        return self._rows(CREATE, params)

    def delete_checkpoints(self, tenant: str, sid: bytes, ids: Sequence[str]) -> tuple[Statement, ...]:
        """Delete checkpoints, and the history that no other checkpoint contains."""
        delete = Statement(self._text(DELETE, ids=placeholders(len(ids))), (tenant, sid, *ids))
        return delete, Statement(self._text(PRUNE), (tenant, sid))

    def forget_removed(self, key: SessionKey) -> Statement:
        """Remove the rows of variables and task states that were deleted long ago."""
        return Statement(self._text(FORGET_REMOVED), key)

    def _rows(self, template: str, rows: Sequence[tuple[Param, ...]]) -> tuple[Statement, ...]:
        return tuple(
            Statement(
                self._text(template, rows=placeholders(len(some), f"({placeholders(len(some[0]))})")),
                tuple(param for row in some for param in row),
            )
            for some in _portions(rows)
        )


class WorkingDialect(Dialect):
    """The statements for the tables with one prefix, by topic.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(working_schema(table_prefix), table_names(table_prefix), PIECES)

    @cached_property
    def reading(self) -> ReadingStatements:
        """Reading sessions."""
        return ReadingStatements(self._pieces)

    @cached_property
    def writing(self) -> WritingStatements:
        """Writing sessions."""
        return WritingStatements(self._pieces)

    @cached_property
    def ledger(self) -> ledger.Ledger:
        """The idempotency ledger."""
        return ledger.Ledger(self._pieces)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Lists of sessions."""
        return InspectionStatements(self._pieces)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Counting sessions."""
        return MaintenanceStatements(self._pieces)


def sql_time(at_us: int | None) -> str | None:
    """Return a time in microseconds since 1970 as the text of a DATETIME(6)."""
    return None if at_us is None else f"{_EPOCH + timedelta(microseconds=at_us):%Y-%m-%d %H:%M:%S.%f}"


def _value(values: bool) -> str:
    return "e.value" if values else "NULL"


def _portions(rows: Sequence[T]) -> list[Sequence[T]]:
    return [rows[start : start + ROWS_PER_STATEMENT] for start in range(0, len(rows), ROWS_PER_STATEMENT)]
