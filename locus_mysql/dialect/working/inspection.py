"""Statements for looking inside: sessions, and all that one holds. They only read, and so renew no session."""

from __future__ import annotations

from ..like import like
from ..statement import Param, Statement
from .template import SessionKey, WorkingStatements

_SESSION_COLUMNS = "s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes"

# In the order of their ids, as the primary key has them.
SESSIONS = """
SELECT <columns>
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))<conditions>
 ORDER BY s.session_id
 LIMIT %s
"""
LIKE = " AND s.session_id LIKE %s"

ONE = "SELECT <columns> FROM {sessions} s WHERE {SESSION}"

# Variables, the task state and the notes, in the order in which notes were made.
ENTRIES = """
SELECT e.kind, e.name, e.value, e.size_bytes, e.expires_at, {SEAL}
  FROM {sessions} s
  JOIN {entries} e ON {OF_SESSION} AND {ALIVE}
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


class InspectionStatements(WorkingStatements):
    """Looking inside."""

    def sessions(self, tenant: str, pattern: str, after: str, limit: int) -> Statement:
        """Id, begin, stamp of the last write, expiry, variables and bytes of sessions, after an id."""
        conditions = "" if pattern == "*" else LIKE
        params: tuple[Param, ...] = () if pattern == "*" else (like(pattern),)
        text = SESSIONS.replace("<columns>", _SESSION_COLUMNS).replace("<conditions>", conditions)
        return Statement(self._text(text), (tenant, after, *params, limit))

    def session(self, key: SessionKey) -> tuple[Statement, ...]:
        """The same of one session; its entries; its checkpoints, the newest first."""
        one = ONE.replace("<columns>", _SESSION_COLUMNS)
        return tuple(Statement(self._text(text), key) for text in (one, ENTRIES, CHECKPOINTS))
