"""Statements for inspection: lists of sessions. They only read, so they renew no session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..inspection import CreatedRow
from ..like import like
from ..statement import Param, Query
from ..template import Statements
from .tables import TASK, SessionKey

#: Bytes of the largest task state that a list reads.
LARGEST_TASK = 16_384

_SESSION_COLUMNS = "s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes"

# In the order of their ids, as the primary key has them; each with its task state, unless that is large.
SESSIONS = """
SELECT {columns}, e.version, e.value
  FROM {sessions} s
  LEFT JOIN {entries} e
    ON {OF_SESSION} AND e.kind = {task} AND e.name = '' AND {LIVE_ENTRY} AND e.size_bytes <= {bytes}
 WHERE s.tenant = %s AND s.session_id > %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6)){conditions}
 ORDER BY s.session_id
 LIMIT %s
"""
LIKE = " AND s.session_id LIKE %s"

ONE = "SELECT {columns}, NULL, NULL FROM {sessions} s WHERE {SESSION}"

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


class InspectionStatements(Statements):
    """Listing sessions, and reading one."""

    def sessions(self, tenant: str, pattern: str, after: str, limit: int) -> Query[InspectedSession]:
        """Sessions after an id, in the order of their ids."""
        conditions = "" if pattern == "*" else LIKE
        params: tuple[Param, ...] = () if pattern == "*" else (like(pattern),)
        task = {"task": str(TASK), "bytes": str(LARGEST_TASK)}
        text = self._text(SESSIONS, columns=_SESSION_COLUMNS, conditions=conditions, **task)
        return Query(text, (tenant, after, *params, limit), row=InspectedSession)

    def created(self, tenant: str, limit: int) -> Query[CreatedRow]:
        """Return the number of sessions created on each day, among at most ``limit`` of them, and their number."""
        return Query(self._text(CREATED), (tenant, limit), row=CreatedRow)

    def session(self, key: SessionKey) -> Query[InspectedSession]:
        """One session."""
        return Query(self._text(ONE, columns=_SESSION_COLUMNS), key, row=InspectedSession)
