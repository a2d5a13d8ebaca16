"""How much a tenant keeps of a kind of states: exactly where it is little, else from a part of its threads.

The threads are counted, all of them, by their index: 0.15 s for a million. What they take is summed up for all of them,
or for one in so many, chosen by a hash of the id, so that no answer reads much more than a few thousand threads. No
payload is read for that. What whole states would take is told by the beginnings of the rows of a few hundred
checkpoints, evenly spread over those of the sample.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TypeAlias, cast

from ..dialect.checkpoints.dialect import CheckpointDialect
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint
from ..families.checkpoints.coding.delta import outline, whole_bytes
from ..families.checkpoints.rows import as_sql_time, aware
from .records import Day, LargeThread, Statistics, ThreadFamily, ThreadRow

#: Threads in a sample, roughly; and at least, however many rows they have.
SAMPLE, LEAST_SAMPLE = 5_000, 500

#: Rows of a sample, roughly, where it need not be smaller than the least for that.
SAMPLE_ROWS = 500_000

#: Checkpoints that whole states are told by.
WHOLE_SAMPLE = 200

#: The header of a payload is in so many of its first bytes.
HEADER_BYTES = 4_096

#: Days that are told, the last one being today; and threads that are.
DAYS, LARGEST = 30, 10

#: Of the threads that were saved to most often, so many are looked at for the largest.
BUSIEST = 50

#: Gives threads by their ids.
RowsOf: TypeAlias = Callable[[Sequence[str]], Operation[list[ThreadRow]]]


@dataclass(frozen=True, slots=True)
class Sampled:
    """A thread of a sample.

    Args:
        thread_id: Its id.
        first_seq: The least seq that a row of it may have.
        last_seq: The greatest.
        created_at: When it began.
        updated_at: When it was last saved.
        checkpoints: How many it has.
        size_bytes: What they take.
    """

    thread_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    updated_at: datetime
    checkpoints: int = 0
    size_bytes: int = 0


def statistics_of(family: ThreadFamily, sql: CheckpointDialect, tenant: str, rows_of: RowsOf) -> Operation[Statistics]:
    """How much there is. Half a dozen round trips."""
    (found,) = yield Batch.query(sql.measuring.count(tenant))
    count, now = cast(int, found.rows[0][0]), aware(found.rows[0][1])
    one_in = max(1, count // SAMPLE)
    (found,) = yield Batch.query(sql.measuring.sample(tenant, one_in))
    chosen = thinned([_sampled(row) for row in found.rows])
    whole = one_in == 1 and len(chosen) == len(found.rows)
    threads = len(chosen) if whole else count
    (found,) = yield Batch.query(sql.measuring.measure(tenant, _places(chosen)))
    sample = _measured(chosen, found.rows)
    scale = threads / len(sample) if sample else 0.0
    checkpoints, size = sum(one.checkpoints for one in sample), sum(one.size_bytes for one in sample)
    average = yield from _average_whole(sql, tenant, sample, checkpoints)
    days = yield from _days(sql, tenant, sample, scale, now)
    ids = [one.thread_id for one in sorted(sample, key=lambda one: one.size_bytes, reverse=True)[:LARGEST]]
    if not whole:
        (found,) = yield Batch.query(sql.measuring.busiest(tenant, BUSIEST))
        ids = list(dict.fromkeys([*ids, *(cast(str, row[0]) for row in found.rows)]))
    largest = sorted((yield from rows_of(ids)), key=lambda one: one.size_bytes, reverse=True)[:LARGEST]
    return Statistics(
        family=family,
        threads=threads,
        checkpoints=round(checkpoints * scale),
        size_bytes=round(size * scale),
        whole_bytes=None if average is None else round(average * checkpoints * scale),
        days=days,
        largest=[LargeThread(one, _bytes_per_day(one, now)) for one in largest],
        sampled=None if whole else len(sample),
    )


def thinned(sample: Sequence[Sampled]) -> Sequence[Sampled]:
    """As many of the threads as have not too many rows: each seq may be one."""
    rows = sum(one.last_seq - one.first_seq + 1 for one in sample)
    return sample[:: max(1, min(-(-rows // SAMPLE_ROWS), len(sample) // LEAST_SAMPLE))]


def _sampled(row: Row) -> Sampled:
    thread_id, first_seq, last_seq, created_at, updated_at = row
    return Sampled(
        cast(str, thread_id), cast(int, first_seq), cast(int, last_seq), aware(created_at), aware(updated_at)
    )


def _measured(chosen: Sequence[Sampled], rows: Sequence[Row]) -> list[Sampled]:
    """The threads with what was found behind each of their places."""
    found = {cast(int, place): (cast(int, count), int(cast(int, size))) for place, count, size in rows}
    measured = []
    for place, one in enumerate(chosen, 1):
        checkpoints, size = found.get(place, (0, 0))
        measured.append(replace(one, checkpoints=checkpoints, size_bytes=size))
    return measured


def _places(threads: Iterable[Sampled]) -> str:
    """Where the rows of threads begin."""
    return json.dumps([[one.thread_id, one.first_seq] for one in threads])


def _average_whole(
    sql: CheckpointDialect, tenant: str, sample: Sequence[Sampled], checkpoints: int
) -> Operation[float | None]:
    """How long the text of a state is on average; None if nothing tells."""
    if not checkpoints:
        return 0.0
    if checkpoints <= WHOLE_SAMPLE:
        (found,) = yield Batch.query(sql.measuring.named(tenant, _places(sample), WHOLE_SAMPLE))
        places = json.dumps([[row[0], row[1]] for row in found.rows])
    else:
        places = json.dumps(spread([one for one in sample if one.checkpoints], checkpoints))
    (found,) = yield Batch.query(sql.measuring.outlines(tenant, places, HEADER_BYTES))
    sizes = []
    for _, rows in groupby(found.rows, key=lambda row: row[0]):
        size = whole_size(list(rows))
        if size is not None:
            sizes.append(size)
    return sum(sizes) / len(sizes) if sizes else None


def spread(sample: Sequence[Sampled], checkpoints: int) -> list[list[str | int]]:
    """Places evenly spread over the checkpoints of threads: each a thread and a seq."""
    places: list[list[str | int]] = []
    before = 0
    for one in sample:
        while len(places) < WHOLE_SAMPLE and (place := (len(places) + 0.5) * checkpoints / WHOLE_SAMPLE) < (
            before + one.checkpoints
        ):
            share = (place - before) / one.checkpoints
            places.append([one.thread_id, one.first_seq + int(share * (one.last_seq - one.first_seq + 1))])
        before += one.checkpoints
    return places


def whole_size(rows: Sequence[Row]) -> int | None:
    """The length of a state's text, from rows of place, seq, base_seq and beginning, newest first.

    None if one of them is damaged or is not there.
    """
    if rows[-1][1] != rows[-1][2]:
        return None
    try:
        return whole_bytes([outline(cast(bytes, row[3])) for row in rows])
    except CorruptCheckpoint:
        return None


def _days(
    sql: CheckpointDialect, tenant: str, sample: Sequence[Sampled], scale: float, now: datetime
) -> Operation[list[Day]]:
    first = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    begun = Counter(one.created_at.date().isoformat() for one in sample if one.created_at >= first)
    places = _places(one for one in sample if one.updated_at >= first)
    (found,) = yield Batch.query(sql.measuring.saved(tenant, places, as_sql_time(first)))
    saved = {str(row[0]): (int(cast(int, row[1])), int(cast(int, row[2]))) for row in found.rows}
    days = []
    for day in sorted({*begun, *saved}):
        checkpoints, size = saved.get(day, (0, 0))
        days.append(Day(day, round(begun[day] * scale), round(checkpoints * scale), round(size * scale)))
    return days


def _bytes_per_day(thread: ThreadRow, now: datetime) -> float:
    return thread.size_bytes / max((now - thread.created_at) / timedelta(days=1), 1 / 24)
