"""Statements that measure what a tenant stores, by a sample of its threads if there are many. They only read."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ..inspection import ThreadId
from ..statement import Query
from ..template import Statements

# Reads the tenant's whole part of the index recent.
COUNT = "SELECT COUNT(*) FROM {threads} t WHERE t.tenant = %s"

# Sizes of a sample of threads, chosen by a hash of their ids. Writes, and parts of removed rows, have no day.
DAYS = """
SELECT saved.day, SUM(saved.hidden = 0), SUM(saved.size_bytes), SUM(saved.parts_bytes)
  FROM (SELECT CAST(DATE(c.created_at) AS CHAR) AS day, c.hidden, {ROW_BYTES} AS size_bytes,
               {PARTS_OF_ROW} AS parts_bytes
          FROM {threads} t
          STRAIGHT_JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
         WHERE t.tenant = %s AND {SAMPLED}) AS saved
 GROUP BY saved.day
 ORDER BY saved.day
"""
BEGUN = """
SELECT begun.day, COUNT(*)
  FROM (SELECT CAST(DATE(t.created_at) AS CHAR) AS day FROM {threads} t WHERE t.tenant = %s AND {SAMPLED}) AS begun
 GROUP BY begun.day
"""
# MAX: see docs/design/writes.md.
BESIDE = """
SELECT MAX((SELECT COALESCE(SUM(LENGTH(p.chunk)), 0)
              FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
             WHERE t.tenant = %s AND {SAMPLED})),
       MAX((SELECT COALESCE(SUM(LENGTH(w.payload)), 0)
              FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
             WHERE t.tenant = %s AND {SAMPLED}))
"""
LARGEST = """
SELECT taken.thread_id
  FROM (SELECT t.thread_id, {ROW_BYTES} AS size_bytes
          FROM {threads} t STRAIGHT_JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
         WHERE t.tenant = %s AND {SAMPLED}
         UNION ALL
        SELECT t.thread_id, LENGTH(p.chunk)
          FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
         WHERE t.tenant = %s AND {SAMPLED}
         UNION ALL
        SELECT t.thread_id, LENGTH(w.payload)
          FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
         WHERE t.tenant = %s AND {SAMPLED}) AS taken
 GROUP BY taken.thread_id
 ORDER BY SUM(taken.size_bytes) DESC, taken.thread_id
 LIMIT %s
"""

# Threads with the most turns. Reads each thread's row.
BUSIEST = """
SELECT t.thread_id FROM {threads} t
 WHERE t.tenant = %s AND {LIVE_THREAD}
 ORDER BY t.last_seq DESC, t.thread_id
 LIMIT %s
"""


class ThreadCount(NamedTuple):
    """The number of threads."""

    threads: int


class SavedDay(NamedTuple):
    """A day, and the checkpoints that were saved on it: their number, and the bytes of their rows and their parts."""

    day: str
    checkpoints: int | Decimal
    row_bytes: int | Decimal
    parts_bytes: int | Decimal


class BegunDay(NamedTuple):
    """A day, and the threads that were created on it."""

    day: str
    threads: int


class BesideRow(NamedTuple):
    """The bytes of all parts in their own table, and of all writes of tasks."""

    parts_bytes: int | Decimal
    writes_bytes: int | Decimal


class Measurement(NamedTuple):
    """Queries that measure a sample of threads.

    Args:
        days: By day, oldest first.
        begun: By day.
        beside: Sizes of rows without a day.
        largest: The largest threads.
    """

    days: Query[SavedDay]
    begun: Query[BegunDay]
    beside: Query[BesideRow]
    largest: Query[ThreadId]


class MeasuringStatements(Statements):
    """Statements that count and measure threads of graphs."""

    def count(self, tenant: str) -> Query[ThreadCount]:
        """Count the threads, including expired ones that are not removed yet."""
        return Query(self._text(COUNT), (tenant,), row=ThreadCount)

    def measure(self, tenant: str, one_in: int, limit: int) -> Measurement:
        """Return the queries that measure a sample of threads.

        Args:
            tenant: The tenant.
            one_in: The sample is one thread of this many; 1 for all.
            limit: The number of large threads.
        """
        one = (tenant, one_in)
        return Measurement(
            Query(self._text(DAYS), one, row=SavedDay),
            Query(self._text(BEGUN), one, row=BegunDay),
            Query(self._text(BESIDE), (*one, *one), row=BesideRow),
            Query(self._text(LARGEST), (*one, *one, *one, limit), row=ThreadId),
        )

    def busiest(self, tenant: str, limit: int) -> Query[ThreadId]:
        """Return the threads with the most turns."""
        return Query(self._text(BUSIEST), (tenant, limit), row=ThreadId)
