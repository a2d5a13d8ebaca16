"""Statistics of the threads of graphs: exact for fewer than twice `SAMPLE` threads, else estimated from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from ....dialect.sql import Dialect, Select
from ....engine.operation import Batch, Operation, fetch
from ...inspection.item_records import ThreadId
from ...inspection.records import Day, LargeThread, Statistics, ThreadRow

#: Approximate number of threads in the sample.
SAMPLE = 2_500

#: Reported days, of which the last is today; and reported threads.
DAYS, THREADS = 30, 10

#: Reads a thread by its id.
ReadThread: TypeAlias = Callable[[str], Operation[ThreadRow | None]]


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


#: Counts the threads, including expired ones that are not removed yet. Reads the tenant's whole part of the index
#: recent.
COUNT = Select("SELECT COUNT(*) FROM {threads} t WHERE t.tenant = :tenant", ThreadCount)

# Of a sample of threads, chosen by a hash of their ids: writes, and parts of removed rows, have no day.

#: Their checkpoints by day, the oldest first.
SAVED = Select(
    """
SELECT saved.day, SUM(saved.hidden = 0), SUM(saved.size_bytes), SUM(saved.parts_bytes)
  FROM (SELECT CAST(DATE(c.created_at) AS CHAR) AS day, c.hidden, {ROW_BYTES} AS size_bytes,
               {PARTS_OF_ROW} AS parts_bytes
          FROM {threads} t
          STRAIGHT_JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
         WHERE t.tenant = :tenant AND {SAMPLED}) AS saved
 GROUP BY saved.day
 ORDER BY saved.day
""",
    SavedDay,
)

#: Their own number by day.
BEGUN = Select(
    """
SELECT begun.day, COUNT(*)
  FROM (SELECT CAST(DATE(t.created_at) AS CHAR) AS day FROM {threads} t WHERE t.tenant = :tenant AND {SAMPLED}) AS begun
 GROUP BY begun.day
""",
    BegunDay,
)

#: The sizes of rows without a day. MAX: see docs/design/writes.md.
BESIDE = Select(
    """
SELECT MAX((SELECT COALESCE(SUM(LENGTH(p.chunk)), 0)
              FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
             WHERE t.tenant = :tenant AND {SAMPLED})),
       MAX((SELECT COALESCE(SUM(LENGTH(w.payload)), 0)
              FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
             WHERE t.tenant = :tenant AND {SAMPLED}))
""",
    BesideRow,
)

#: The largest ones.
LARGEST = Select(
    """
SELECT taken.thread_id
  FROM (SELECT t.thread_id, {ROW_BYTES} AS size_bytes
          FROM {threads} t STRAIGHT_JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
         WHERE t.tenant = :tenant AND {SAMPLED}
         UNION ALL
        SELECT t.thread_id, LENGTH(p.chunk)
          FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
         WHERE t.tenant = :tenant AND {SAMPLED}
         UNION ALL
        SELECT t.thread_id, LENGTH(w.payload)
          FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
         WHERE t.tenant = :tenant AND {SAMPLED}) AS taken
 GROUP BY taken.thread_id
 ORDER BY SUM(taken.size_bytes) DESC, taken.thread_id
 LIMIT :limit
""",
    ThreadId,
)

#: Threads with the most turns. Reads each thread's row.
BUSIEST = Select(
    """
SELECT t.thread_id FROM {threads} t
 WHERE t.tenant = :tenant AND {LIVE_THREAD}
 ORDER BY t.last_seq DESC, t.thread_id
 LIMIT :limit
""",
    ThreadId,
)


def statistics_of(family: str, sql: Dialect, tenant: str, read_thread: ReadThread) -> Operation[Statistics]:
    """Return the statistics of a tenant's threads."""
    ((count,),) = yield from fetch(COUNT(sql, tenant=tenant))
    one_in = max(1, count // SAMPLE)
    by_day, new, others, largest = (
        SAVED(sql, tenant=tenant, one_in=one_in),
        BEGUN(sql, tenant=tenant, one_in=one_in),
        BESIDE(sql, tenant=tenant, one_in=one_in),
        LARGEST(sql, tenant=tenant, one_in=one_in, limit=THREADS),
    )
    results = yield Batch((by_day, new, others, largest), atomic=False)
    saved, (beside,) = results.rows(by_day), results.rows(others)
    begun = {row.day: row.threads for row in results.rows(new)}
    measured = sum(begun.values())
    threads = measured if one_in == 1 else count
    scale = threads / measured if measured else 0.0
    days = [
        Day(
            row.day,
            round(begun.get(row.day, 0) * scale),
            round(int(row.checkpoints) * scale),
            round(int(row.row_bytes + row.parts_bytes) * scale),
        )
        for row in saved
    ]
    ids = [row.thread_id for row in results.rows(largest)]
    if one_in > 1:
        busiest = yield from fetch(BUSIEST(sql, tenant=tenant, limit=THREADS))
        ids = list(dict.fromkeys([*ids, *(row.thread_id for row in busiest)]))
    size_bytes = sum(int(row.row_bytes) for row in saved) + int(beside.parts_bytes + beside.writes_bytes)
    return Statistics(
        family=family,
        threads=threads,
        checkpoints=round(sum(int(row.checkpoints) for row in saved) * scale),
        size_bytes=round(size_bytes * scale),
        whole_bytes=None,
        days=[day for day in days if day.checkpoints][-DAYS:],
        largest=(yield from _largest(read_thread, ids)),
        sampled=None if one_in == 1 else measured,
    )


def _largest(read_thread: ReadThread, thread_ids: Sequence[str]) -> Operation[list[LargeThread]]:
    """Return the largest of these threads, with their growth."""
    large = []
    for thread_id in thread_ids:
        thread = yield from read_thread(thread_id)
        if thread is not None:
            large.append(LargeThread.of(thread))
    large.sort(key=lambda one: one.thread.size_bytes, reverse=True)
    return large[:THREADS]
