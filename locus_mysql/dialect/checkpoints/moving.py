"""Statements that read whole threads, and write checkpoints with their original times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..like import like
from ..statement import Query, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .saving import NewRow
from .threads import Number, ThreadId

# A thread, even if expired, and its rows without payloads; one row without a seq if the thread has none.
THREAD = """
SELECT t.version, t.last_seq, t.first_seq, t.created_at, t.updated_at,
       COALESCE(t.expires_at <= UTC_TIMESTAMP(6), FALSE),
       c.seq, c.checkpoint_id, c.parent_seq, c.created_at, c.continues = 2
  FROM {threads} t
  LEFT JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
 WHERE t.tenant = %s AND t.thread_id = %s
 ORDER BY c.seq
"""

# The next checkpoints of a thread along the primary key, and the rows that these build on, each row once. The page ends
# when its payloads reach the limit; it has at least one checkpoint.
PAGE = """
WITH RECURSIVE page AS (
  SELECT sized.seq, sized.base_seq
    FROM (SELECT near.seq, near.base_seq, SUM(near.size_bytes) OVER (ORDER BY near.seq) - near.size_bytes AS before_it
            FROM (SELECT c.seq, c.base_seq, c.payload_bytes AS size_bytes
                    FROM {checkpoints} c
                    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
                   WHERE c.tenant = %s AND c.thread_id = %s AND c.seq > %s AND c.checkpoint_id IS NOT NULL
                     AND {LIVE_ROW} AND (%s IS NULL OR c.created_at >= %s)
                   ORDER BY c.seq
                   LIMIT %s) AS near) AS sized
   WHERE sized.before_it < %s
),
needed (seq, base_seq) AS (
  SELECT seq, base_seq FROM page
  UNION DISTINCT
  SELECT b.seq, b.base_seq
    FROM needed
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = needed.base_seq AND b.seq < needed.seq
)
SELECT c.seq, c.token, c.payload, IF(page.seq IS NULL, NULL, c.checkpoint_id), c.base_seq, c.metadata, c.created_at,
       c.continues = 2, c.parent_seq, c.seal
  FROM needed
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = needed.seq
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  LEFT JOIN page ON page.seq = c.seq
 ORDER BY c.seq
"""

# There is no recursive UNION DISTINCT (error 1235). A row builds on few others, so paths that meet are few.
OCEANBASE.instead_of(
    PAGE,
    PAGE.replace("UNION DISTINCT", "UNION ALL").replace(
        "FROM needed\n  JOIN {checkpoints} c",
        "FROM (SELECT DISTINCT seq FROM needed) AS needed\n  JOIN {checkpoints} c",
    ),
)

# The ids of threads along the primary key.
THREADS_AFTER = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id > %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD} AND {SAVED_SINCE}
 ORDER BY t.thread_id
 LIMIT %s
"""

COUNT_CHECKPOINTS = """
SELECT COUNT(*)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = %s AND t.thread_id LIKE %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
   AND {SAVED_SINCE} AND (%s IS NULL OR c.created_at >= %s)
"""

COUNT_THREADS = """
SELECT COUNT(*)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD}
"""

# A new thread. Error 1062 if another process has created it meanwhile.
MAKE = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at)
VALUES (%s, %s, %s, 1, %s, COALESCE(%s, UTC_TIMESTAMP(6)), COALESCE(%s, UTC_TIMESTAMP(6)),
        UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)
"""

# An existing thread, unless another process has written to it since this version. Another first_seq restarts an expired
# thread.
GROW = """
UPDATE {threads}
   SET last_seq = %s, first_seq = %s, version = %s, created_at = COALESCE(%s, UTC_TIMESTAMP(6)),
       updated_at = COALESCE(%s, UTC_TIMESTAMP(6)), expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s AND version = %s
"""

PUT = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, COALESCE(%s, UTC_TIMESTAMP(6)))
"""

CLEAR_IDS = """
UPDATE {checkpoints} c
   SET {UNNAMED.c}
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IN ({ids})
"""


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Times of a thread's first and last save, as text in UTC; None means now."""

    created_at: str | None
    updated_at: str | None


class ThreadRow(NamedTuple):
    """A thread, and one of its rows without the payload; the row's columns are None if it has no rows."""

    version: bytes
    last_seq: int
    first_seq: int
    created_at: datetime
    updated_at: datetime
    expired: int
    seq: int | None
    checkpoint_id: str | None
    parent_seq: int | None
    saved_at: datetime | None
    provisional: int | None


class PageRow(NamedTuple):
    """A checkpoint, or, if the id is None, a row that a checkpoint builds on."""

    seq: int
    token: bytes
    payload: bytes
    checkpoint_id: str | None
    base_seq: int | None
    metadata: str | None
    created_at: datetime
    provisional: int
    parent_seq: int | None
    seal: int


class MovingStatements(Statements):
    """Statements that read whole threads, and write checkpoints with their original times."""

    def thread(self, tenant: str, thread_id: str) -> Query[ThreadRow]:
        """Read a thread and its rows without payloads, oldest first."""
        return Query(self._text(THREAD), (tenant, thread_id), row=ThreadRow)

    def page(
        self, tenant: str, thread_id: str, after: int, limit: int, limit_bytes: int, since: str | None
    ) -> Query[PageRow]:
        """Read the checkpoints after a seq with their states, and the rows that these build on.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            after: The seq.
            limit: The maximum number of checkpoints.
            limit_bytes: The page ends when its payloads reach this size.
            since: Only checkpoints saved since this time.
        """
        key = (tenant, thread_id)
        params = (*key, after, since, since, limit, limit_bytes, *key, *key)
        return Query(self._text(PAGE), params, row=PageRow)

    def threads_after(self, tenant: str, after: str, glob: str, since: str | None, limit: int) -> Query[ThreadId]:
        """Return ids of threads after one that match a glob, including all with a save since a time."""
        params = (tenant, after, like(glob), since, since, limit)
        return Query(self._text(THREADS_AFTER), params, row=ThreadId)

    def count_threads(self, tenant: str, glob: str) -> Query[Number]:
        """Return the number of threads that match a glob."""
        return Query(self._text(COUNT_THREADS), (tenant, like(glob)), row=Number)

    def count_checkpoints(self, tenant: str, glob: str, since: str | None) -> Query[Number]:
        """Return the number of checkpoints, saved since a time, in threads that match a glob."""
        params = (tenant, like(glob), since, since, since, since)
        return Query(self._text(COUNT_CHECKPOINTS), params, row=Number)

    def make(
        self, tenant: str, thread_id: str, last_seq: int, version: bytes, times: ThreadTimes, ttl_us: int | None
    ) -> Statement:
        """Insert a new thread."""
        values = (tenant, thread_id, last_seq, version, times.created_at, times.updated_at, ttl_us)
        return Statement(self._text(MAKE), values)

    def grow(
        self,
        tenant: str,
        thread_id: str,
        seqs: tuple[int, int],
        version: bytes,
        known_version: bytes,
        times: ThreadTimes,
        ttl_us: int | None,
    ) -> Statement:
        """Reserve seqs in a thread whose version still is the known one. A guard must follow.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            seqs: Its new last seq, and its new first valid one.
            version: Its new version.
            known_version: The version that it must have.
            times: Its new times.
            ttl_us: Its new time to live.
        """
        values = (*seqs, version, times.created_at, times.updated_at, ttl_us, tenant, thread_id, known_version)
        return Statement(self._text(GROW), values)

    def put(
        self, tenant: str, thread_id: str, seq: int, base_seq: int, row: NewRow, created_at: str | None
    ) -> Statement:
        """Insert a row at a given seq of a locked thread, with its time; None means now."""
        checkpoint_id, parent_seq, *rest = row.params
        values = (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, *rest, created_at)
        return Statement(self._text(PUT), values)

    def clear_ids(self, tenant: str, thread_id: str, checkpoint_ids: Sequence[str]) -> Statement:
        """Remove the ids from checkpoints. A sweep must follow."""
        text = self._text(CLEAR_IDS, ids=placeholders(len(checkpoint_ids)))
        return Statement(text, (tenant, thread_id, *checkpoint_ids))
