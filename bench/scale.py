"""Operations on a thousand, a hundred thousand and a million checkpoints: how their times grow."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import Any

from locus_mysql import CheckpointStore, MySQLConfig

from . import fill
from .database import fresh_database
from .disk import administrator
from .markdown import markdown_table

SIZES = (1_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 10_000)

ROUNDS = 40
WARM_UP_ROUNDS = 5
#: Minimum number of rounds of a slow operation.
LEAST_ROUNDS = 5
SECONDS_PER_OPERATION = 10

VACUUMED_THREADS = 100
VACUUM_ROUNDS = 3

#: Memory settings of a server for a million checkpoints.
BUFFER_POOL_BYTES = 4 << 30
REDO_LOG_BYTES = 2 << 30

#: Number of threads that are read in turn, so that the server does not always read the same pages.
SAMPLED_THREADS = 500

#: A call of a store on a thread.
Call = Callable[[CheckpointStore, str], Awaitable[Any]]

_KEY, _VALUE = fill.RARE_PAIR

OPERATIONS: dict[str, Call] = {
    "exists": lambda s, t: s.exists(t),
    "load": lambda s, t: s.load(t),
    "save": lambda s, t: s.save(t, {"messages": ["one more " * 10], "number": time.time()}),
    "get_metadata": lambda s, t: s.get_metadata(t),
    "list_threads": lambda s, t: s.list_threads(),
    "list_with_metadata": lambda s, t: s.list_with_metadata(),
    f"query_by_metadata, {fill.RARE_CHECKPOINTS} found": lambda s, t: s.query_by_metadata(_KEY, _VALUE),
    "query_by_metadata, none found": lambda s, t: s.query_by_metadata(_KEY, "nobody"),
    "newest 100 of half of all by query_by_metadata": lambda s, t: s.query_by_metadata("channel", "mail"),
    "search, a rare word": lambda s, t: s.search(fill.RARE_WORD),
    "count": lambda s, t: s.count(),
}
VACUUM = f"vacuum of {VACUUMED_THREADS} threads"


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure the milliseconds of each operation at each size, the sizes in turns."""
    sizes = QUICK_SIZES if quick else SIZES
    settings = enlarge(dsn)
    try:
        with fresh_database(dsn) as own:
            configs = {size: MySQLConfig(dsn=own, table_prefix=f"scale_{size}_") for size in sizes}
            filled_in_s = {}
            for size, config in configs.items():
                begin = time.perf_counter()
                fill.fill(config, own, size, _progress)
                filled_in_s[str(size)] = time.perf_counter() - begin
            timed = asyncio.run(measure_operations(configs, own))
            timed[VACUUM] = asyncio.run(measure_vacuum(configs, own))
            return {"settings": enlarged(dsn), "filled_in_s": filled_in_s, "operations": timed}
    finally:
        restore(dsn, settings)


async def measure_operations(configs: dict[int, MySQLConfig], dsn: str) -> dict[str, dict[str, float]]:
    """Return median milliseconds by operation and size. Each round measures every size."""
    stores = {size: CheckpointStore(config) for size, config in configs.items()}
    threads = {size: cycle(sampled_threads(config, dsn)) for size, config in configs.items()}
    medians = {}
    for name, call in OPERATIONS.items():
        times: dict[int, list[float]] = {size: [] for size in stores}
        for size, store in stores.items():
            for _ in range(WARM_UP_ROUNDS):
                await call(store, next(threads[size]))
        began = time.perf_counter()
        for number in range(ROUNDS):
            if number >= LEAST_ROUNDS and time.perf_counter() - began > SECONDS_PER_OPERATION:
                break
            for size, store in stores.items():
                thread = next(threads[size])
                begin = time.perf_counter()
                await call(store, thread)
                times[size].append((time.perf_counter() - begin) * 1000)
        medians[name] = {str(size): statistics.median(one) for size, one in times.items()}
        _progress(f"{name}: {medians[name]}")
    for store in stores.values():
        await store.close()
    return medians


def sampled_threads(config: MySQLConfig, dsn: str) -> list[str]:
    """Return some of the threads, in random order."""
    with administrator(dsn) as cursor:
        cursor.execute(
            f"SELECT thread_id FROM `{config.table_prefix}store_threads` WHERE thread_id NOT LIKE 'rare%%'"
            " ORDER BY RAND(1) LIMIT %s",
            (SAMPLED_THREADS,),
        )
        return [thread for (thread,) in cursor.fetchall()]


async def measure_vacuum(configs: dict[int, MySQLConfig], dsn: str) -> dict[str, float]:
    """Return the median milliseconds of removing a fixed number of old threads, by size."""
    times: dict[int, list[float]] = {size: [] for size in configs}
    for _ in range(VACUUM_ROUNDS):
        for size, config in configs.items():
            due = fill.add_old_threads(config, dsn, VACUUMED_THREADS)
            async with CheckpointStore(config) as store:
                await store.health_check()
                begin = time.perf_counter()
                removed = await store.vacuum(older_than_days=fill.DAYS_OLD / 2)
                times[size].append((time.perf_counter() - begin) * 1000)
            if removed != due:
                raise AssertionError(f"vacuum removed {removed} checkpoints, not {due}")
    return {str(size): statistics.median(one) for size, one in times.items()}


def table(result: dict[str, Any]) -> str:
    """Return a table with operations in rows and sizes in columns."""
    sizes = list(result["filled_in_s"])
    rows = [
        [name, *(f"{medians[size]:.2f}" for size in sizes), f"{medians[sizes[-1]] / medians[sizes[0]]:.2f}"]
        for name, medians in result["operations"].items()
    ]
    headings = ["median ms by number of checkpoints", *(f"{int(size):,}" for size in sizes), "largest to smallest"]
    return markdown_table(headings, rows)


def enlarge(dsn: str) -> dict[str, int]:
    """Set the memory of a server for a million checkpoints; return the earlier settings."""
    before = enlarged(dsn)
    wanted = {"innodb_buffer_pool_size": BUFFER_POOL_BYTES, "innodb_redo_log_capacity": REDO_LOG_BYTES}
    restore(dsn, {name: max(before[name], size) for name, size in wanted.items()})
    return before


def enlarged(dsn: str) -> dict[str, int]:
    """Return the server's settings."""
    with administrator(dsn) as cursor:
        cursor.execute("SELECT @@innodb_buffer_pool_size, @@innodb_redo_log_capacity")
        ((pool, log),) = cursor.fetchall()
    return {"innodb_buffer_pool_size": int(pool), "innodb_redo_log_capacity": int(log)}


def restore(dsn: str, settings: dict[str, int]) -> None:
    """Restore the server's settings."""
    with administrator(dsn) as cursor:
        for name, value in settings.items():
            cursor.execute(f"SET GLOBAL {name} = {value}")


def _progress(text: str) -> None:
    print(f"scale: {text}", file=sys.stderr, flush=True)
