"""Save and load latency, all contestants interleaved in one run: ``python -m bench.side_by_side --dsn …``.

Absolute times move from machine to machine and from minute to minute; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from locus.core.state import AgentState

from .contestants import BuiltIn, Contestant, Floor, LocusMySQL
from .database import fresh_database, whole_states_bytes
from .states import agent_state, grown

DRIVERS = ("mysql-connector", "aiomysql", "pymysql", "asyncmy")
WARM_UP_ROUNDS = 5


@dataclass
class Timings:
    """Milliseconds of one contestant at one size."""

    save: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Medians and 95th percentiles."""
        return {
            "save_ms": statistics.median(self.save),
            "save_p95_ms": statistics.quantiles(self.save, n=20)[-1],
            "load_ms": statistics.median(self.load),
            "load_p95_ms": statistics.quantiles(self.load, n=20)[-1],
        }


async def measure(contestants: Sequence[Contestant], state: AgentState, rounds: int) -> dict[str, Timings]:
    """Each contestant saves the state one message later and loads it, in turn, round after round."""
    source = random.Random(2)
    timings = {contestant.name: Timings() for contestant in contestants}
    for contestant in contestants:
        await contestant.save(state)
        if isinstance(contestant, Floor):
            await contestant.put_whole(state)
    for number in range(-WARM_UP_ROUNDS, rounds):
        state = grown(state, source)
        encoded = state.to_checkpoint()
        source.shuffle(order := list(contestants))
        for contestant in order:
            begin = time.perf_counter()
            await contestant.save(state)
            middle = time.perf_counter()
            loaded = await contestant.load()
            if isinstance(contestant, Floor):
                AgentState.from_checkpoint(encoded)
            end = time.perf_counter()
            if loaded is not None and loaded != state:
                raise AssertionError(f"{contestant.name} loaded another state than was saved")
            if number >= 0:
                timings[contestant.name].save.append((middle - begin) * 1000)
                timings[contestant.name].load.append((end - middle) * 1000)
    return timings


async def run(dsn: str, sizes: Sequence[int], drivers: Sequence[str], rounds: int) -> dict[str, Any]:
    """Measure every size in a database of its own."""
    report: dict[str, Any] = {"sizes": {}}
    for size in sizes:
        state = await agent_state(size)
        with fresh_database(dsn) as own:
            contestants: list[Contestant] = [*(LocusMySQL(own, driver) for driver in drivers), BuiltIn(own), Floor(own)]
            try:
                gc.collect()
                timings = await measure(contestants, state, rounds)
            finally:
                for contestant in contestants:
                    await contestant.close()
        report["sizes"][size] = {name: timing.summary() for name, timing in timings.items()}
        print_size(size, report["sizes"][size])
    return report


def print_size(size: int, results: dict[str, dict[str, float]]) -> None:
    """One size as a table, with ratios to the built-in backend and to the floor."""
    built_in, floor = results[BuiltIn.name], results[Floor.name]
    print(f"\n{size} messages{'':20}{'save':>12}{'load, ms (p95)':>22}{'times faster':>18}{'of the floor':>16}")
    for name, result in results.items():
        print(
            f"  {name:<32}{result['save_ms']:8.2f} ({result['save_p95_ms']:6.2f}){result['load_ms']:8.2f} "
            f"({result['load_p95_ms']:6.2f}){built_in['save_ms'] / result['save_ms']:9.1f}"
            f"{built_in['load_ms'] / result['load_ms']:7.2f}{result['save_ms'] / floor['save_ms']:10.2f}"
            f"{result['load_ms'] / floor['load_ms']:7.2f}",
            flush=True,
        )


def environment(dsn: str) -> dict[str, str]:
    """What the figures depend on."""
    from .database import server_facts

    return {
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "garbage collector": "on" if gc.isenabled() else "off",
        **{name: version(name) for name in ("locus-mysql", "locus-sdk", "pydantic", "mysql-connector-python")},
        **server_facts(dsn),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the figures as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--drivers", default=",".join(DRIVERS))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=500, help="length of the conversation whose storage is measured")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    facts = environment(chosen.dsn)
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    sizes = [int(size) for size in chosen.sizes.split(",")]
    report = asyncio.run(run(chosen.dsn, sizes, chosen.drivers.split(","), chosen.rounds))
    stored, whole, final = asyncio.run(whole_states_bytes(chosen.dsn, chosen.turns))
    report["storage"] = {"turns": chosen.turns, "stored_bytes": stored, "whole_bytes": whole, "final_bytes": final}
    print(
        f"\n{chosen.turns} turns with one tool call each: {stored / 1e6:.2f} MB stored, {whole / 1e6:.1f} MB as whole "
        f"states: {whole / stored:.0f} times as much. That is {stored / final:.1f} times the final state"
    )
    if chosen.json:
        chosen.json.write_text(json.dumps({"environment": facts, **report}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
