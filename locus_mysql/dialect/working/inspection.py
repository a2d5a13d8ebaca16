"""Statements for inspection: sessions, and the content of one. They only read, so they renew no session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..inspection import CreatedRow
from ..like import like
from ..statement import Param, Query
from ..template import Statements
from .pieces import TASK, SessionKey

#: Bytes of the largest task state that a list reads.
LARGEST_TASK = 16_384

_SESSION_COLUMNS = "s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes"

# The task state of a session, unless it is large.
TASK_OF_SESSION = """(SELECT e.value FROM {entries} e
         WHERE {OF_SESSION} AND e.kind = {task} AND {LIVE_ENTRY} AND e.size_bytes <= {bytes} LIMIT 1)"""

# In the order of their ids, as the primary key has them.
SESSIONS = """
SELECT {columns}, {task_state}
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6)){conditions}
 ORDER BY s.session_id
 LIMIT %s
"""
LIKE = " AND s.session_id LIKE %s"

ONE = "SELECT {columns}, NULL FROM {sessions} s WHERE {SESSION}"

# The sessions created on each of the last 30 days, among the first ones in the order of their ids; and a row without a
# day with the number of these.
CREATED = """
WITH first AS (
  SELECT s.created_at
    FROM {sessions} s
   WHERE s.tenant = %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
   LIMIT %s
)
(SELECT CAST(DATE(created_at) AS CHAR) AS day, COUNT(*) AS items FROM first
  WHERE created_at > UTC_TIMESTAMP(6) - INTERVAL 30 DAY
  GROUP BY day)
UNION ALL
(SELECT NULL, COUNT(*) FROM first)
"""

# Variables, the task state and the notes, in the order in which notes were made.
ENTRIES = """
SELECT e.kind, e.name, e.value, e.size_bytes, e.expires_at, {SEAL}
  FROM {sessions} s
  JOIN {entries} e ON {OF_SESSION} AND {LIVE_ENTRY}
 WHERE {SESSION}
 ORDER BY e.kind, e.name
"""
CHECKPOINTS = """
SELECT c.checkpoint_id, c.label, c.created_at, c.variables, c.notes, c.size_bytes, {CHECKPOINT_SEAL}
  FROM {sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE {SESSION}
 ORDER BY c.stamp DESC
"""


class InspectedSession(NamedTuple):
    """A session."""

    session_id: str
    created_at: datetime
    stamp: int
    expires_at: datetime | None
    variables: int
    size_bytes: int
    task: bytes | None


class InspectedEntry(NamedTuple):
    """A variable, the task state, or a note."""

    kind: int
    name: str
    value: bytes
    size_bytes: int
    expires_at: datetime | None
    checksum: int


class InspectedCheckpoint(NamedTuple):
    """A checkpoint of a session."""

    checkpoint_id: str
    label: str | None
    created_at: datetime
    variables: int
    notes: int
    size_bytes: int
    checksum: int


class InspectionStatements(Statements):
    """Listing sessions, and reading one with its content."""

    def sessions(self, tenant: str, pattern: str, after: str, limit: int) -> Query[InspectedSession]:
        """Sessions after an id, in the order of their ids."""
        conditions = "" if pattern == "*" else LIKE
        params: tuple[Param, ...] = () if pattern == "*" else (like(pattern),)
        task = {"task_state": TASK_OF_SESSION, "task": str(TASK), "bytes": str(LARGEST_TASK)}
        text = self._text(SESSIONS, columns=_SESSION_COLUMNS, conditions=conditions, **task)
        return Query(text, (tenant, after, *params, limit), row=InspectedSession)

    def created(self, tenant: str, limit: int) -> Query[CreatedRow]:
        """Return the number of sessions created on each day, among at most ``limit`` of them, and their number."""
        return Query(self._text(CREATED), (tenant, limit), row=CreatedRow)

    def session(self, key: SessionKey) -> Query[InspectedSession]:
        """One session."""
        return Query(self._text(ONE, columns=_SESSION_COLUMNS), key, row=InspectedSession)

    def entries(self, key: SessionKey) -> Query[InspectedEntry]:
        """All entries of a session."""
        return Query(self._text(ENTRIES), key, row=InspectedEntry)

    def checkpoints(self, key: SessionKey) -> Query[InspectedCheckpoint]:
        """The checkpoints of a session, newest first."""
        return Query(self._text(CHECKPOINTS), key, row=InspectedCheckpoint)
