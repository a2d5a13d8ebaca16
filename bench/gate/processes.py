"""Time of a load, and of a turn, in a process that did not write the loaded state, against the floor of the same run.

The processes are those of `bench.processes`: they serve the thread in turn, or have never seen it. They use
Connector/Python and PyMySQL, each against a floor on the same library, served by the same processes.
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
    """Return the ratios, by contestant and number of messages."""
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
    """Return the lower quartile: the time of a call without interference from other processes."""
    return statistics.quantiles(times, n=4)[0]
