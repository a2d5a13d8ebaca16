"""Statements that count and list sessions, for maintenance and inspection. They only read, so they renew no session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.sql import Select


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

ONE = Select(
    """
SELECT s.session_id, s.created_at, s.stamp, s.expires_at, s.variables, s.size_bytes, NULL, NULL
  FROM {sessions} s
 WHERE {KEY} AND {LIVE_SESSION}
""",
    InspectedSession,
)
