"""Statements for inspection: sessions, and the content of one. They only read, so they renew no session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..like import like
from ..statement import Param, Query
from ..template import Statements
from .pieces import SessionKey

_SESSION_COLUMNS = "s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes"

# In the order of their ids, as the primary key has them.
SESSIONS = """
SELECT {columns}
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6)){conditions}
 ORDER BY s.session_id
 LIMIT %s
"""
LIKE = " AND s.session_id LIKE %s"

ONE = "SELECT {columns} FROM {sessions} s WHERE {SESSION}"

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
        text = self._text(SESSIONS, columns=_SESSION_COLUMNS, conditions=conditions)
        return Query(text, (tenant, after, *params, limit), row=InspectedSession)

    def session(self, key: SessionKey) -> Query[InspectedSession]:
        """One session."""
        return Query(self._text(ONE, columns=_SESSION_COLUMNS), key, row=InspectedSession)

    def entries(self, key: SessionKey) -> Query[InspectedEntry]:
        """All entries of a session."""
        return Query(self._text(ENTRIES), key, row=InspectedEntry)

    def checkpoints(self, key: SessionKey) -> Query[InspectedCheckpoint]:
        """The checkpoints of a session, newest first."""
        return Query(self._text(CHECKPOINTS), key, row=InspectedCheckpoint)
