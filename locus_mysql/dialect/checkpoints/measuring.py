"""Statements that measure what a tenant stores, by a sample of its threads if there are many. They only read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..inspection import ThreadId
from ..statement import Query
from ..template import Statements

# Relies on the index recent, of which all of the tenant's part is read, and nothing else.
COUNT = """
SELECT COUNT(*), UTC_TIMESTAMP(6) FROM {threads} r FORCE INDEX (recent) WHERE r.tenant = %s
"""

# A sample of the threads, chosen by a hash of their ids, so that it is the same each time. The index recent has the
# ids; the rows are read of those chosen only.
SAMPLE = """
SELECT t.thread_id, t.first_seq, t.last_seq, t.created_at, t.updated_at
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = %s AND MOD(CRC32(r.thread_id), %s) = 0) AS sampled
  STRAIGHT_JOIN {threads} t ON t.tenant = %s AND t.thread_id = sampled.thread_id
 WHERE {LIVE_THREAD}
"""

# Ranges of the primary key, without payloads.
MEASURE = """
WITH {POINTS}
SELECT points.number, COUNT(c.checkpoint_id), COALESCE(SUM({SIZE}), 0)
  FROM points
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = %s AND c.thread_id = points.thread_id AND c.seq >= points.seq
 GROUP BY points.number
"""

SAVED = """
WITH {POINTS}
SELECT CAST(DATE(c.created_at) AS CHAR), COUNT(c.checkpoint_id), SUM({SIZE})
  FROM points
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = %s AND c.thread_id = points.thread_id AND c.seq >= points.seq
 WHERE c.created_at >= %s
 GROUP BY 1
"""

# Threads that were saved to most often: reads a row for each thread.
BUSIEST = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND {LIVE_THREAD}
 ORDER BY t.last_seq - t.first_seq DESC, t.thread_id
 LIMIT %s
"""

# All checkpoints of a few threads.
NAMED = """
WITH {POINTS}
SELECT points.thread_id, c.seq
  FROM points
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (named) ON c.tenant = %s AND c.thread_id = points.thread_id
 WHERE c.seq >= points.seq AND c.checkpoint_id IS NOT NULL
 LIMIT %s
"""

# The next checkpoint at or behind each of some points, with the rows that it builds on, newest first: the beginnings of
# their payloads. The bound is for damaged rows, as in every recursion.
OUTLINES = """
WITH RECURSIVE {POINTS},
lineage (number, thread_id, seq, base_seq, hops) AS (
  SELECT points.number, points.thread_id, chosen.seq, chosen.base_seq, 0
    FROM points
    JOIN LATERAL (SELECT c.seq, c.base_seq
                    FROM {checkpoints} c
                   WHERE c.tenant = %s AND c.thread_id = points.thread_id
                     AND c.seq >= points.seq AND c.checkpoint_id IS NOT NULL
                   ORDER BY c.tenant, c.thread_id, c.seq
                   LIMIT 1) AS chosen
  UNION ALL
  SELECT lineage.number, lineage.thread_id, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = lineage.thread_id
                        AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT lineage.number, c.seq, c.base_seq, LEFT(c.payload, {bytes})
  FROM lineage
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = lineage.thread_id
                               AND c.seq = lineage.seq
 ORDER BY lineage.number, c.seq DESC
"""


class ThreadCount(NamedTuple):
    """The number of threads, and the server's time."""

    threads: int
    now: datetime


class SampledThread(NamedTuple):
    """A thread of a sample: the lowest and the highest seq that a row of it may have, and its first and last save."""

    thread_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    updated_at: datetime


class MeasuredPoint(NamedTuple):
    """The number of a point, counted from 1, and the checkpoints at and after it."""

    number: int
    checkpoints: int
    size_bytes: int | Decimal


class SavedDay(NamedTuple):
    """A day, and the checkpoints that were saved on it."""

    day: str
    checkpoints: int
    size_bytes: int | Decimal


class NamedCheckpoint(NamedTuple):
    """The thread and the seq of a checkpoint."""

    thread_id: str
    seq: int


class OutlineRow(NamedTuple):
    """A row that the checkpoint at a point builds on, with the first bytes of its payload."""

    number: int
    seq: int
    base_seq: int | None
    beginning: bytes


class MeasuringStatements(Statements):
    """Statements that count and measure. Places are a JSON array of pairs of a thread's id and a seq."""

    def count(self, tenant: str) -> Query[ThreadCount]:
        """Count the threads, including those that have just expired."""
        return Query(self._text(COUNT), (tenant,), row=ThreadCount)

    def sample(self, tenant: str, one_in: int) -> Query[SampledThread]:
        """Return a sample of the threads."""
        return Query(self._text(SAMPLE), (tenant, one_in, tenant), row=SampledThread)

    def measure(self, tenant: str, points: str) -> Query[MeasuredPoint]:
        """Return, for each point that is followed by a row, the checkpoints at and after it."""
        return Query(self._text(MEASURE), (points, tenant), row=MeasuredPoint)

    def saved(self, tenant: str, points: str, since: str) -> Query[SavedDay]:
        """Return the checkpoints at and after these points by the day on which they were saved."""
        return Query(self._text(SAVED), (points, tenant, since), row=SavedDay)

    def busiest(self, tenant: str, limit: int) -> Query[ThreadId]:
        """Return the threads that were saved to most often."""
        return Query(self._text(BUSIEST), (tenant, limit), row=ThreadId)

    def named(self, tenant: str, points: str, limit: int) -> Query[NamedCheckpoint]:
        """Return the checkpoints at and after these points."""
        return Query(self._text(NAMED), (points, tenant, limit), row=NamedCheckpoint)

    def outlines(self, tenant: str, points: str, size: int) -> Query[OutlineRow]:
        """Return the next checkpoint at or after each point, with the rows that it builds on, newest first.

        Args:
            tenant: The tenant.
            points: The points, as JSON.
            size: The number of bytes of each payload.
        """
        text = self._text(OUTLINES, bytes=str(size))
        return Query(text, (points, tenant, tenant, tenant), row=OutlineRow)
