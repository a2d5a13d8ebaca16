"""Time of a save and a load by size and kind of the conversation. All contestants take turns in each round."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from locus.core.state import AgentState
from pydantic_core import from_json

from locus_mysql.integrations.locus.state_texts import encode_state

from . import contestants, workloads
from .contestants import (
    BUILT_IN,
    DRIVERS,
    OURS,
    POSTGRESQL,
    REDIS,
    SYNC_DRIVERS,
    Contestant,
    check_same,
)
from .database import fresh_database
from .floor import FLOORS, floor_of
from .markdown import markdown_table
from .peers import Peers, peers
from .processes import (
    COLD,
    IN_TURN,
    built_in_in_other_processes,
    floors_in_other_processes,
    in_other_processes,
)
from .workloads import Workload

WARM_UP_ROUNDS = 3
#: Number of measured rounds by number of messages.
ROUNDS = {10: 80, 100: 80, 1000: 40, 5000: 20}
LARGE_ROUNDS = 24
COMPACTED_ROUNDS = 60
CODEC_ROUNDS = 30


@dataclass
class Timings:
    """Milliseconds of one contestant."""

    save: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Return medians and 95th percentiles of a save, a load, and a turn, which is both."""
        figures = {}
        for what, times in (("save", self.save), ("load", self.load), ("turn", self.turn)):
            figures[f"{what}_ms"] = statistics.median(times)
            figures[f"{what}_p95_ms"] = statistics.quantiles(times, n=20)[-1]
        return figures

    @property
    def turn(self) -> list[float]:
        """Return the times of a save and the following load together."""
        return [save + load for save, load in zip(self.save, self.load, strict=True)]


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every workload; ``quick``: a few rounds of the small ones."""
    return asyncio.run(_measure(dsn, quick))


def garbage_collector() -> str:
    """Describe the garbage collector's settings during the measurement."""
    state = "on" if gc.isenabled() else "off"
    return f"{state}, run before each round as well; objects that existed at the start are frozen"


async def _measure(dsn: str, quick: bool) -> dict[str, Any]:
    sizes = (10, 100) if quick else tuple(ROUNDS)
    result: dict[str, Any] = {
        "garbage_collector": garbage_collector(),
        "workloads": {},
    }
    with peers() as found:
        result["missing"] = found.missing
        for size in sizes:
            workload = await workloads.of_size(size)
            result["workloads"][workload.name] = await _run(dsn, found, workload, 8 if quick else ROUNDS[size])
        if not quick:
            for workload, rounds in (
                (await workloads.of_large_outputs(), LARGE_ROUNDS),
                (await workloads.of_compaction(), COMPACTED_ROUNDS),
            ):
                result["workloads"][workload.name] = await _run(dsn, found, workload, rounds)
    return result


async def _run(dsn: str, found: Peers, workload: Workload, rounds: int) -> dict[str, Any]:
    print(f"bench: latency, {workload.name}", file=sys.stderr, flush=True)
    async with AsyncExitStack() as stack:
        own = stack.enter_context(fresh_database(dsn))
        floors = [kind(own) for kind in FLOORS]
        everyone: list[Contestant] = [
            *(contestants.ours(own, driver) for driver in DRIVERS),
            *(contestants.ours_blocking(own, driver) for driver in SYNC_DRIVERS),
            *in_other_processes(own),
            *built_in_in_other_processes(own),
            *floors_in_other_processes(own),
            contestants.built_in(own),
            *contestants.on_other_servers(found),
            *floors,
        ]
        for contestant in everyone:
            stack.push_async_callback(contestant.close)
        gc.collect()
        gc.freeze()  # so that the collection before each round takes little time
        stack.callback(gc.unfreeze)
        timings = await in_rounds(everyone, workload, rounds)
    return {
        "messages": len(workload.begin.messages),
        "bytes": len(workload.begin.model_dump_json()),
        "rounds": rounds,
        "contestants": {name: timing.summary() for name, timing in timings.items()},
        "codec_ms": codec_costs(workload.begin),
    }


async def in_rounds(everyone: Sequence[Contestant], workload: Workload, rounds: int) -> dict[str, Timings]:
    """Let every contestant save and load each state of a workload, in an order shuffled for each state."""
    source = random.Random(2)
    order = list(everyone)
    timings = {contestant.name: Timings() for contestant in everyone}
    seen = 0
    for number, state, measured in workload.passes(rounds + WARM_UP_ROUNDS):
        source.shuffle(order)
        seen += measured
        gc.collect()
        for contestant in order:
            thread_id = f"{contestant.name}/{number}"
            begin = time.perf_counter()
            await contestant.save(state, thread_id)
            saved = time.perf_counter()
            await contestant.prepare_load(state)
            before_load = time.perf_counter()
            loaded = await contestant.load(thread_id)
            end = time.perf_counter()
            check_same(contestant.name, loaded, state)
            del loaded  # else the next load's time would include freeing this state
            if measured and seen > WARM_UP_ROUNDS:
                timings[contestant.name].save.append((saved - begin) * 1000)
                timings[contestant.name].load.append((end - before_load) * 1000)
    return timings


def codec_costs(state: AgentState) -> dict[str, float]:
    """Return the median milliseconds of the work inside the process, without a server."""
    text = state.model_dump_json()
    ways: dict[str, Callable[[], object]] = {
        "locus-mysql: state to text": lambda: encode_state(state),
        "Locus: to_checkpoint()": state.to_checkpoint,
        "Locus: to_checkpoint(), model_dump_json()": lambda: (state.to_checkpoint(), state.model_dump_json()),
        "text to dict (pydantic_core.from_json)": lambda: from_json(text, cache_strings="keys"),
        "from_checkpoint() of that dict": _prepared(AgentState.from_checkpoint, from_json(text, cache_strings="keys")),
        "model_validate_json() of the text": lambda: AgentState.model_validate_json(text),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(CODEC_ROUNDS):
        for name, way in ways.items():
            gc.collect()
            begin = time.perf_counter()
            way()
            times[name].append((time.perf_counter() - begin) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def _prepared(function: Callable[[Any], object], argument: Any) -> Callable[[], object]:
    return lambda: function(argument)


def table(result: dict[str, Any]) -> str:
    """Return a table of the main contestants' medians, and one of all contestants for each workload."""
    parts = ["### Save / load, median ms", _short(result["workloads"])]
    for name, one in result["workloads"].items():
        about = f"{one['messages']:,} messages, {one['bytes'] / 1e3:,.0f} KB of JSON, {one['rounds']} rounds"
        for what in ("save", "load", "turn"):
            if f"{what}_ms" not in one["contestants"][BUILT_IN]:
                continue  # an older report, without times of turns
            parts += [f"### {what.capitalize()}, {title(name)}", f"{about}.", _ratios(one["contestants"], what)]
    parts += ["### In the process alone, ms", _codec(result["workloads"])]
    return "\n\n".join([*parts, f"Garbage collector: {result['garbage_collector']}."])


def _short(measured: dict[str, dict[str, Any]]) -> str:
    names = (OURS, f"{OURS}, {IN_TURN}", f"{OURS}, {COLD}", BUILT_IN, POSTGRESQL, REDIS, floor_of(OURS))
    rows = [
        [name, *(_save_and_load(one["contestants"][name]) for one in measured.values())]
        for name in names
        if all(name in one["contestants"] for one in measured.values())
    ]
    return markdown_table(["messages", *measured], rows)


def _save_and_load(own: dict[str, float]) -> str:
    return " / ".join(f"{own[f'{what}_ms']:.{1 if own[f'{what}_ms'] >= 10 else 2}f}" for what in ("save", "load"))


def title(workload: str) -> str:
    """Return a workload's name as a heading."""
    return f"{int(workload):,} messages" if workload.isdigit() else workload


def _ratios(measured: dict[str, dict[str, float]], what: str) -> str:
    def of(name: str, other: str | None) -> str:
        if other not in measured or other == name:
            return ""
        return f"{measured[name][f'{what}_ms'] / measured[other][f'{what}_ms']:.2f}"

    rows = []
    for name, own in measured.items():
        kind = next((f", {kind}" for kind in (IN_TURN, COLD) if name.endswith(kind)), "")
        faster = measured[BUILT_IN + kind][f"{what}_ms"] / own[f"{what}_ms"]
        floor = floor_of(name) if name.startswith("locus-mysql") else None
        rows.append(
            [
                name,
                f"{own[f'{what}_ms']:.2f}",
                f"{own[f'{what}_p95_ms']:.2f}",
                f"{faster:.1f}",
                *(of(name, other) for other in (floor, POSTGRESQL, REDIS)),
            ]
        )
    return markdown_table(
        [what, "median, ms", "p95, ms", "times faster than built-in", "of its floor", "of Pg", "of Redis"], rows
    )


def _codec(measured: dict[str, dict[str, Any]]) -> str:
    names = next(iter(measured.values()))["codec_ms"]
    rows = [[name, *(f"{one['codec_ms'][name]:.3f}" for one in measured.values())] for name in names]
    return markdown_table(["messages", *measured], rows)
