"""Saves of many conversations at once against one after another, and the slowest saves against the typical one.

Both take turns in short slices of one run; each figure is the median of the slices, which a busy second of the machine
does not change.
"""

from __future__ import annotations

import asyncio
import statistics

from ..contestants import ours
from ..database import fresh_database
from ..throughput import WARM_UP_S, Tally, begun, conversation_states, run_slice

AT_ONCE = 32
SLICES = 7
SLICE_S = 1.0


def figures(dsn: str) -> dict[str, float]:
    """Return the ratios."""
    return asyncio.run(_figures(dsn))


async def _figures(dsn: str) -> dict[str, float]:
    states = await conversation_states()
    tallies: dict[int, list[Tally]] = {1: [], AT_ONCE: []}
    with fresh_database(dsn) as own:
        contestant = ours(own, "mysql-connector")
        talks = {at_once: await begun(contestant, states, str(at_once), at_once) for at_once in tallies}
        for one in talks.values():
            await run_slice(contestant, one, Tally(), WARM_UP_S)
        for _ in range(SLICES):
            for at_once, one in talks.items():
                tallies[at_once].append(Tally())
                await run_slice(contestant, one, tallies[at_once][-1], SLICE_S)
        await contestant.close()
    time_of = {
        at_once: statistics.median(one.seconds / len(one.waits_ms) for one in found)
        for at_once, found in tallies.items()
    }
    return {
        f"time for each save, {AT_ONCE} at once against one after another": time_of[AT_ONCE] / time_of[1],
        "p99 against p50 of a save, one after another": _tail(tallies[1]),
        f"p99 against p50 of a save, {AT_ONCE} at once": _tail(tallies[AT_ONCE]),
    }


def _tail(slices: list[Tally]) -> float:
    percentiles = [statistics.quantiles(one.waits_ms, n=100) for one in slices]
    return statistics.median(one[98] / one[49] for one in percentiles)
