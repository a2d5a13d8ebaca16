"""Statistics of the threads of graphs: exact for fewer than twice `SAMPLE` threads, else estimated from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ....dialect.graphs import GraphDialect
from ....engine.operation import Batch, Operation, fetch
from ...inspection.records import Day, LargeThread, Statistics, ThreadRow

#: Approximate number of threads in the sample.
SAMPLE = 2_500

#: Reported days, of which the last is today; and reported threads.
DAYS, LARGEST = 30, 10

#: Reads a thread by its id.
ReadThread: TypeAlias = Callable[[str], Operation[ThreadRow | None]]


def statistics_of(family: str, sql: GraphDialect, tenant: str, read_thread: ReadThread) -> Operation[Statistics]:
    """Return the statistics of a tenant's threads."""
    ((count,),) = yield from fetch(sql.measuring.count(tenant))
    one_in = max(1, count // SAMPLE)
    queries = sql.measuring.measure(tenant, one_in, LARGEST)
    results = yield Batch(queries, atomic=False)
    saved, (beside,) = results.rows(queries.days), results.rows(queries.beside)
    begun = {row.day: row.threads for row in results.rows(queries.begun)}
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
    ids = [row.thread_id for row in results.rows(queries.largest)]
    if one_in > 1:
        busiest = yield from fetch(sql.measuring.busiest(tenant, LARGEST))
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
    return large[:LARGEST]
