"""Statistics of the threads of one kind: exact for a few thousand threads, estimated from a sample for more.

All threads are counted, by an index: 0.15 s for a million. Checkpoints and sizes are summed up for all threads, or for
a sample that a hash of the id selects, so that a request reads at most a few thousand threads. That reads no payload.
The size that whole states would have is estimated from the first bytes of the rows of at most 200 checkpoints, spread
evenly over those of the sample.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple, TypeAlias

from ....dialect.sql import Select
from ....engine.operation import Operation, fetch
from ....errors import CorruptCheckpoint
from ....runtime.server_rows import as_sql_time, aware
from ...inspection.item_records import ThreadId
from ...inspection.records import Day, LargeThread, Statistics, ThreadRow
from ..coding.payload import beginning_of, outline, whole_bytes
from ..statements.tables import CheckpointDialect

#: Approximate number of threads in a sample; and the smallest number, whatever number of rows they have.
SAMPLE, LEAST_SAMPLE = 5_000, 500

#: Approximate number of rows in a sample. A sample with more is thinned, down to `LEAST_SAMPLE` threads.
SAMPLE_ROWS = 500_000

#: Checkpoints from which the size of whole states is estimated.
WHOLE_SAMPLE = 200

#: First bytes of a payload that contain its header.
HEADER_BYTES = 4_096

#: Reported days, of which the last is today; and reported threads.
DAYS, LARGEST = 30, 10

#: Threads with the most saves that are candidates for the largest threads.
BUSIEST = 50

#: Reads threads by their ids.
RowsOf: TypeAlias = Callable[[Sequence[str]], Operation[list[ThreadRow]]]


# Statements. They only read. Points are `_POINTS`.

# Places in threads, from JSON: an array of pairs of a thread and a seq.
_POINTS = """points AS (
  SELECT j.number, j.thread_id COLLATE utf8mb4_0900_bin AS thread_id, j.seq
    FROM JSON_TABLE(:points, '$[*]' COLUMNS (number FOR ORDINALITY,
                                             thread_id VARCHAR(512) CHARACTER SET utf8mb4 PATH '$[0]',
                                             seq BIGINT UNSIGNED PATH '$[1]')) AS j
)"""


class ThreadCount(NamedTuple):
    """The number of threads, and the server's time."""

    threads: int
    now: datetime


#: Relies on the index recent, of which all of the tenant's part is read, and nothing else.
COUNT = Select(
    """
SELECT COUNT(*), UTC_TIMESTAMP(6) FROM {threads} r FORCE INDEX (recent) WHERE r.tenant = :tenant
""",
    ThreadCount,
)


class SampledThread(NamedTuple):
    """A thread of a sample: the lowest and the highest seq that a row of it may have, and its first and last save."""

    thread_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    updated_at: datetime


#: A sample of the threads, chosen by a hash of their ids, so that it is the same each time. The index recent has the
#: ids; the rows are read of those chosen only.
SAMPLE_THREADS = Select(
    """
SELECT t.thread_id, t.first_seq, t.last_seq, t.created_at, t.updated_at
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = :tenant AND MOD(CRC32(r.thread_id), :one_in) = 0) AS sampled
  STRAIGHT_JOIN {threads} t ON t.tenant = :tenant AND t.thread_id = sampled.thread_id
 WHERE {LIVE_THREAD}
""",
    SampledThread,
)


class MeasuredPoint(NamedTuple):
    """The number of a point, counted from 1, and the checkpoints at and after it."""

    number: int
    checkpoints: int
    size_bytes: int | Decimal


#: For each point that is followed by a row, the checkpoints at and after it: ranges of the primary key, without
#: payloads.
MEASURE = Select(
    f"""
WITH {_POINTS}
SELECT points.number, COUNT(c.checkpoint_id), COALESCE(SUM({{SIZE}}), 0)
  FROM points
  STRAIGHT_JOIN {{checkpoints}} c FORCE INDEX (PRIMARY)
                ON c.tenant = :tenant AND c.thread_id = points.thread_id AND c.seq >= points.seq
 GROUP BY points.number
""",  # noqa: S608 - constants
    MeasuredPoint,
)


class SavedDay(NamedTuple):
    """A day, and the checkpoints that were saved on it."""

    day: str
    checkpoints: int
    size_bytes: int | Decimal


#: The checkpoints at and after these points by the day on which they were saved.
SAVED_BY_DAY = Select(
    f"""
WITH {_POINTS}
SELECT CAST(DATE(c.created_at) AS CHAR), COUNT(c.checkpoint_id), SUM({{SIZE}})
  FROM points
  STRAIGHT_JOIN {{checkpoints}} c FORCE INDEX (PRIMARY)
                ON c.tenant = :tenant AND c.thread_id = points.thread_id AND c.seq >= points.seq
 WHERE c.created_at >= :since
 GROUP BY 1
""",  # noqa: S608 - constants
    SavedDay,
)

#: Threads that were saved to most often: reads a row for each thread.
BUSIEST_THREADS = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND {LIVE_THREAD}
 ORDER BY t.last_seq - t.first_seq DESC, t.thread_id
 LIMIT :limit
""",
    ThreadId,
)


class NamedCheckpoint(NamedTuple):
    """The thread and the seq of a checkpoint."""

    thread_id: str
    seq: int


#: All checkpoints of a few threads.
CHECKPOINTS_AT = Select(
    f"""
WITH {_POINTS}
SELECT points.thread_id, c.seq
  FROM points
  STRAIGHT_JOIN {{checkpoints}} c FORCE INDEX (named) ON c.tenant = :tenant AND c.thread_id = points.thread_id
 WHERE c.seq >= points.seq AND c.checkpoint_id IS NOT NULL
 LIMIT :limit
""",  # noqa: S608 - constants
    NamedCheckpoint,
)


class OutlineRow(NamedTuple):
    """A row that the checkpoint at a point builds on, with the first bytes of its payload."""

    number: int
    seq: int
    base_seq: int | None
    beginning: bytes


#: The next checkpoint at or behind each of some points, with the rows that it builds on, newest first: the beginnings
#: of their payloads. The bound is for damaged rows, as in every recursion.
OUTLINES = Select(
    f"""
WITH RECURSIVE {_POINTS},
lineage (number, thread_id, seq, base_seq, hops) AS (
  SELECT points.number, points.thread_id, chosen.seq, chosen.base_seq, 0
    FROM points
    JOIN LATERAL (SELECT c.seq, c.base_seq
                    FROM {{checkpoints}} c
                   WHERE c.tenant = :tenant AND c.thread_id = points.thread_id
                     AND c.seq >= points.seq AND c.checkpoint_id IS NOT NULL
                   ORDER BY c.tenant, c.thread_id, c.seq
                   LIMIT 1) AS chosen
  UNION ALL
  SELECT lineage.number, lineage.thread_id, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {{checkpoints}} b ON b.tenant = :tenant AND b.thread_id = lineage.thread_id
                        AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT lineage.number, c.seq, c.base_seq, LEFT(c.payload, :bytes)
  FROM lineage
  STRAIGHT_JOIN {{checkpoints}} c ON c.tenant = :tenant AND c.thread_id = lineage.thread_id
                               AND c.seq = lineage.seq
 ORDER BY lineage.number, c.seq DESC
""",  # noqa: S608 - constants
    OutlineRow,
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A thread of a sample.

    Args:
        thread_id: Its id.
        first_seq: The lowest seq that a row of it may have.
        last_seq: The highest.
        created_at: When it was created.
        updated_at: When it was last saved.
        checkpoints: Number of its checkpoints.
        size_bytes: Their size.
    """

    thread_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    updated_at: datetime
    checkpoints: int = 0
    size_bytes: int = 0


def statistics_of(family: str, sql: CheckpointDialect, tenant: str, rows_of: RowsOf) -> Operation[Statistics]:
    """Return the statistics of a tenant's threads of one kind. At most eight round trips."""
    (counted,) = yield from fetch(COUNT(sql, tenant=tenant))
    count, now = counted.threads, aware(counted.now)
    one_in = max(1, count // SAMPLE)
    sampled = yield from fetch(SAMPLE_THREADS(sql, tenant=tenant, one_in=one_in))
    chosen = thinned(sampled)
    whole = one_in == 1 and len(chosen) == len(sampled)
    threads = len(chosen) if whole else count
    measured = yield from fetch(MEASURE(sql, tenant=tenant, points=_first_points(chosen)))
    sample = _measured(chosen, measured)
    scale = threads / len(sample) if sample else 0.0
    checkpoints, size = sum(one.checkpoints for one in sample), sum(one.size_bytes for one in sample)
    average = yield from _average_whole(sql, tenant, sample, checkpoints)
    days = yield from _days(sql, tenant, sample, scale, now)
    ids = [one.thread_id for one in sorted(sample, key=lambda one: one.size_bytes, reverse=True)[:LARGEST]]
    if not whole:
        busiest = yield from fetch(BUSIEST_THREADS(sql, tenant=tenant, limit=BUSIEST))
        ids = list(dict.fromkeys([*ids, *(row.thread_id for row in busiest)]))
    largest = sorted((yield from rows_of(ids)), key=lambda one: one.size_bytes, reverse=True)[:LARGEST]
    return Statistics(
        family=family,
        threads=threads,
        checkpoints=round(checkpoints * scale),
        size_bytes=round(size * scale),
        whole_bytes=None if average is None else round(average * checkpoints * scale),
        days=days,
        largest=[LargeThread.of(one) for one in largest],
        sampled=None if whole else len(sample),
    )


def thinned(sample: Sequence[SampledThread]) -> Sequence[SampledThread]:
    """Return every n-th thread of a sample that may have too many rows. Each seq may be a row."""
    rows = sum(one.last_seq - one.first_seq + 1 for one in sample)
    return sample[:: max(1, min(-(-rows // SAMPLE_ROWS), len(sample) // LEAST_SAMPLE))]


def _measured(chosen: Sequence[SampledThread], rows: Sequence[MeasuredPoint]) -> list[Sampled]:
    """Return the threads of a sample with the checkpoints and sizes that the server counted for each position."""
    found = {row.number: row for row in rows}
    measured = []
    for number, one in enumerate(chosen, 1):
        row = found.get(number) or MeasuredPoint(number, 0, 0)
        times = aware(one.created_at), aware(one.updated_at)
        measured.append(
            Sampled(one.thread_id, one.first_seq, one.last_seq, *times, row.checkpoints, int(row.size_bytes))
        )
    return measured


def _first_points(threads: Iterable[SampledThread | Sampled]) -> str:
    """Return the threads with their first seq, as JSON for the statements."""
    return json.dumps([[one.thread_id, one.first_seq] for one in threads])


def _average_whole(
    sql: CheckpointDialect, tenant: str, sample: Sequence[Sampled], checkpoints: int
) -> Operation[float | None]:
    """Return the average length of a whole state's text; None if it cannot be estimated."""
    if not checkpoints:
        return 0.0
    if checkpoints <= WHOLE_SAMPLE:
        find = CHECKPOINTS_AT(sql, tenant=tenant, points=_first_points(sample), limit=WHOLE_SAMPLE)
        points = json.dumps((yield from fetch(find)))
    else:
        points = json.dumps(spread([one for one in sample if one.checkpoints], checkpoints))
    outlined = yield from fetch(OUTLINES(sql, tenant=tenant, points=points, bytes=HEADER_BYTES))
    sizes = []
    for _, rows in groupby(outlined, key=lambda row: row.number):
        size = whole_size(list(rows))
        if size is not None:
            sizes.append(size)
    return sum(sizes) / len(sizes) if sizes else None


def spread(sample: Sequence[Sampled], checkpoints: int) -> list[list[str | int]]:
    """Return positions evenly spread over the checkpoints of threads: pairs of thread id and seq."""
    points: list[list[str | int]] = []
    before = 0
    for one in sample:
        while len(points) < WHOLE_SAMPLE and (position := (len(points) + 0.5) * checkpoints / WHOLE_SAMPLE) < (
            before + one.checkpoints
        ):
            share = (position - before) / one.checkpoints
            points.append([one.thread_id, one.first_seq + int(share * (one.last_seq - one.first_seq + 1))])
        before += one.checkpoints
    return points


def whole_size(rows: Sequence[OutlineRow]) -> int | None:
    """Return the length of a state's text from the rows that it builds on, newest first.

    None if a row is damaged or missing.
    """
    if rows[-1].seq != rows[-1].base_seq:
        return None
    try:
        return whole_bytes([outline(beginning_of(row.beginning)) for row in rows])
    except CorruptCheckpoint:
        return None


def _days(
    sql: CheckpointDialect, tenant: str, sample: Sequence[Sampled], scale: float, now: datetime
) -> Operation[list[Day]]:
    first = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    begun = Counter(one.created_at.date().isoformat() for one in sample if one.created_at >= first)
    points = _first_points(one for one in sample if one.updated_at >= first)
    days_saved = yield from fetch(SAVED_BY_DAY(sql, tenant=tenant, points=points, since=as_sql_time(first)))
    saved = {row.day: row for row in days_saved}
    days = []
    for day in sorted({*begun, *saved}):
        row = saved.get(day) or SavedDay(day, 0, 0)
        days.append(
            Day(day, round(begun[day] * scale), round(row.checkpoints * scale), round(int(row.size_bytes) * scale))
        )
    return days
