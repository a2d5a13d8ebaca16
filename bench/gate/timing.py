"""Time of a save and of a load, against the floor in the same run, both on Connector/Python.

The floor is the minimum cost of a durable save and a load: see `bench.floor`.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from locus.core.state import AgentState

from locus_mysql import MySQLCheckpointer

from ..database import fresh_database
from ..floor import ConnectorFloor, Floor
from ..states import agent_state, grown

SIZES = (10, 100, 1_000)
WARM_UP_ROUNDS = 10
ROUNDS = 100


def figures(dsn: str) -> dict[str, float]:
    """Return the ratios, by number of messages."""
    return asyncio.run(_figures(dsn))


async def _figures(dsn: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for size in SIZES:
        with fresh_database(dsn) as own:
            async with MySQLCheckpointer(dsn=own) as cached, MySQLCheckpointer(dsn=own, cache_bytes=0) as uncached:
                floor = ConnectorFloor(own)
                times = await _times(cached, uncached, floor, await agent_state(size))
                await floor.close()
        for what in ("save", "load"):
            for cache in ("", ", no cache"):
                ratio = _typical(times[what + cache]) / _typical(times[f"floor's {what}"])
                found[f"{what} against the floor{cache}, n={size}"] = ratio
    return found


async def _times(
    cached: MySQLCheckpointer, uncached: MySQLCheckpointer, floor: Floor, begun: AgentState
) -> dict[str, list[float]]:
    """Return the seconds of each call. All take turns; each round adds a message, and some begin a new thread."""
    source = random.Random(8)
    times: dict[str, list[float]] = {}
    saves_per_thread = max(10, len(begun.messages) // 10)
    for number in range(-WARM_UP_ROUNDS, ROUNDS):
        if number % saves_per_thread == 0 or number == -WARM_UP_ROUNDS:
            state, thread = begun, f"thread {number}"
            await cached.save(state, thread)
            await uncached.save(state, f"{thread} again")
            await floor.save(state, thread)
            await floor.keep_whole(state)
        state = grown(state, source)
        calls: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
            ("save", partial(cached.save, state, thread)),
            ("floor's save", partial(floor.save, state, thread)),
            ("save, no cache", partial(uncached.save, state, f"{thread} again")),
            ("load", partial(cached.load, thread)),
            ("floor's load", partial(floor.load, thread)),
            ("load, no cache", partial(uncached.load, f"{thread} again")),
        ]
        for name, call in calls if number % 2 else calls[::-1]:
            begin = time.perf_counter()
            await call()
            if number >= 0:
                times.setdefault(name, []).append(time.perf_counter() - begin)
    return times


def _typical(times: list[float]) -> float:
    """Return the lower quartile: the time of a call without interference from other processes."""
    return statistics.quantiles(times, n=4)[0]
