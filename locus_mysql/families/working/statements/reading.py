"""Statements that read sessions, for stores and for the inspector; these renew no session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.sql import Select


class HeadRow(NamedTuple):
    """A session without its entries, or only the time."""

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


class EntryWithHead(NamedTuple):
    """An entry with the session's columns, or only these."""

    now_us: int
    ttl_us: int | None
    stamp: int
    expires_us: int | None
    name: str | None
    value: bytes | None
    version: int | None
    entry_expires_us: int | None


class EntryRow(NamedTuple):
    """An entry; without a value if it was deleted, or if values are not asked for."""

    kind: int
    name: str
    value: bytes | None
    size_bytes: int
    version: int
    used: int
    expires_us: int | None


class CheckpointRow(NamedTuple):
    """A checkpoint, as it is read and written."""

    checkpoint_id: str
    stamp: int
    label: str | None
    variables: int
    notes: int
    size_bytes: int
    created_us: int
    checksum: int


#: A session and the server's time: one row, also if there is no session.
HEAD = Select(
    """
SELECT clock.now_us, s.sid, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.created_at), s.ttl_us, s.stamp, {EXPIRES},
       s.variables, s.size_bytes, s.notes, s.notes_bytes, s.notes_version, s.last_note, s.checkpoints, s.kept
  FROM (SELECT {NOW} AS now_us) AS clock
  LEFT JOIN {sessions} s ON {KEY}
""",
    HeadRow,
)

_WITH_HEAD = """
SELECT {NOW}, s.ttl_us, s.stamp, {EXPIRES}, e.name, e.value, e.version, {ENTRY_EXPIRES}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = :kind AND e.value IS NOT NULL"""

#: One entry, with what a reader needs of the session. No row: there is no session.
ONE = Select(_WITH_HEAD + " AND e.name = :name\n WHERE {KEY}", EntryWithHead)

#: The last entries of a kind, newest first, likewise.
LAST = Select(_WITH_HEAD + "\n WHERE {KEY}\n ORDER BY e.kind DESC, e.name DESC\n LIMIT :limit", EntryWithHead)

#: Entries of a session, by ranges of the primary key; deleted ones too, unless the condition leaves them out. Sizes are
#: the same without the values.
ENTRIES = Select(
    """
SELECT e.kind, e.name, e.value, e.size_bytes, e.version, e.used, {ENTRY_EXPIRES}
  FROM {sessions} s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION}
 WHERE {KEY} AND {condition}
""",
    EntryRow,
)
SIZES = Select(ENTRIES.text.replace("e.value", "NULL", 1), EntryRow)
NAMED = "e.kind = :kind AND e.name IN (:names)"
OF_VARIABLES = "e.kind = 1"
EXPIRING = "e.kind = 1 AND e.expires_at IS NOT NULL AND e.value IS NOT NULL"
NAMES_AND_TASK = "e.kind IN (1, 2)\n LIMIT :limit"
LAST_NOTES = "e.kind = 3\n ORDER BY e.kind DESC, e.name DESC\n LIMIT :limit"
EVERYTHING = "TRUE"

#: Checkpoints, oldest first.
CHECKPOINTS = Select(
    """
SELECT c.checkpoint_id, c.stamp, c.label, c.variables, c.notes, c.size_bytes,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.created_at), c.checksum
  FROM {sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE {KEY}
 ORDER BY c.stamp
""",
    CheckpointRow,
)

#: The earlier versions of entries that a checkpoint contains.
HISTORY = Select(
    """
SELECT e.kind, e.name, e.value, e.size_bytes, e.version, 0, {ENTRY_EXPIRES}
  FROM {sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = :checkpoint_id
  JOIN {history} e ON {OF_SESSION} AND e.version <= c.stamp AND e.valid_until > c.stamp
 WHERE {KEY}
""",
    EntryRow,
)


class InspectedSession(NamedTuple):
    """A session."""

    session_id: str
    created_at: datetime
    stamp: int
    expires_at: datetime | None
    variables: int
    size_bytes: int
    task_version: int | None
    task: bytes | None


#: Sessions after an id, in the order of the primary key; each with its task state, unless that is large.
SESSIONS = Select(
    """
SELECT s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes, e.version, e.value
  FROM {sessions} s
  LEFT JOIN {entries} e
    ON {OF_SESSION} AND e.kind = 2 AND e.name = '' AND {LIVE_ENTRY} AND e.size_bytes <= :largest_task
 WHERE s.tenant = :tenant AND s.session_id > :after AND {LIVE_SESSION}{conditions}
 ORDER BY s.session_id
 LIMIT :limit
""",
    InspectedSession,
)
LIKE = " AND s.session_id LIKE :pattern"

INSPECTED = Select(
    """
SELECT s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes, NULL, NULL
  FROM {sessions} s
 WHERE {KEY} AND {LIVE_SESSION}
""",
    InspectedSession,
)
