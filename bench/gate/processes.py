"""Time of a load, and of a turn, in a process that did not write what it loads, against the floor in the same run.

The processes are those of `bench.processes`: served in turn, and never having seen the thread; on Connector/Python and
on PyMySQL, each against a floor on the same library, served by the same processes.
"""

from __future__ import annotations

import asyncio
import statistics

from ..database import fresh_database
from ..floor import floor_of
from ..latency import in_rounds
from ..processes import floors_in_other_processes, in_other_processes
from ..workloads import of_size

SIZES = (10, 100, 1_000)
ROUNDS = 40


def figures(dsn: str) -> dict[str, float]:
    """Ratios by contestant and number of messages."""
    return asyncio.run(_figures(dsn))


async def _figures(dsn: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for size in SIZES:
        with fresh_database(dsn) as own:
            ours = [*in_other_processes(own)]
            everyone = [*ours, *floors_in_other_processes(own)]
            times = await in_rounds(everyone, await of_size(size), ROUNDS)
            for contestant in everyone:
                await contestant.close()
        for name in (contestant.name for contestant in ours):
            here, floor_here = times[name], times[floor_of(name)]
            case = f"{name.removeprefix('locus-mysql, ')}, n={size}"
            found[f"load against the floor, {case}"] = _typical(here.load) / _typical(floor_here.load)
            found[f"load and save against the floor, {case}"] = _typical(here.turn) / _typical(floor_here.turn)
    return found


def _typical(times: list[float]) -> float:
    """The lower quartile: what a call takes when other processes leave it alone."""
    return statistics.quantiles(times, n=4)[0]
