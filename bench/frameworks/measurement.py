"""Measures all frameworks, and writes their table."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from locus_mysql import MySQLConfig

from ..database import fresh_database
from ..disk import bytes_in_files, bytes_in_rows
from ..environment import environment
from ..markdown import markdown_table
from ..peers import Peers
from .contestants import Contestant, Framework, frameworks, turn

#: Name of this measurement's own page.
PAGE = "frameworks"

#: Rounds by the number of turns before them. Loads of long conversations take longer, and their times vary less.
ROUNDS, QUICK_ROUNDS = {10: 40, 100: 30, 1_000: 12}, {10: 5}
WARM_UP_ROUNDS = 3


@dataclass
class Lane:
    """A contestant in its own database.

    Args:
        name: Its name.
        contestant: The contestant.
        dsn: The database.
        turns: Number of turns in its conversation.
        append_s: The measured times of appends, in seconds.
        load_s: The measured times of loads, in seconds.
    """

    name: str
    contestant: Contestant
    dsn: str
    turns: int = 0
    append_s: list[float] = field(default_factory=list)
    load_s: list[float] = field(default_factory=list)

    async def append(self) -> float:
        """Append the next turn; return its time in seconds."""
        following = turn(self.turns)
        begin = time.perf_counter()
        await self.contestant.append(following)
        taken = time.perf_counter() - begin
        self.turns += 1
        return taken

    async def load(self) -> float:
        """Load the conversation and check its length; return the time of the load in seconds."""
        begin = time.perf_counter()
        loaded = await self.contestant.load()
        taken = time.perf_counter() - begin
        if loaded != self.turns:
            raise AssertionError(f"{self.name} loaded {loaded} turns of {self.turns}")
        return taken


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every framework."""
    result: dict[str, Any] = {"environment": environment(dsn, Peers()), "frameworks": {}}
    for name, framework in frameworks().items():
        result["frameworks"][name] = {
            "title": framework.title,
            "remark": framework.remark,
            "sizes": asyncio.run(_measure(dsn, framework, quick)),
        }
    return result


async def _measure(dsn: str, framework: Framework, quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Return the figures by number of turns and contestant."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with ExitStack() as stack:
        lanes = []
        for entrant in framework.entrants:
            own = stack.enter_context(fresh_database(dsn))
            lanes.append(Lane(entrant.name, entrant.make(MySQLConfig(dsn=own, driver=entrant.driver)), own))
        try:
            for size, rounds in (QUICK_ROUNDS if quick else ROUNDS).items():
                print(f"bench: frameworks, {framework.title}, {size} turns", file=sys.stderr, flush=True)
                found[str(size)] = await _at_size(lanes, size, rounds)
        finally:
            for lane in lanes:
                await lane.contestant.close()
    return found


async def _at_size(lanes: Sequence[Lane], size: int, rounds: int) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    for lane in lanes:
        while lane.turns < size:
            await lane.append()
        figures[lane.name] = _stored(lane)
        lane.append_s, lane.load_s = [], []
    source = random.Random(5)
    for number in range(-WARM_UP_ROUNDS, rounds):
        gc.collect()
        for lane in source.sample(lanes, len(lanes)):
            append_s, load_s = await lane.append(), await lane.load()
            if number >= 0:
                lane.append_s.append(append_s)
                lane.load_s.append(load_s)
    for lane in lanes:
        figures[lane.name] |= {
            "append_ms": statistics.median(lane.append_s) * 1_000,
            "load_ms": statistics.median(lane.load_s) * 1_000,
        }
    return figures


def _stored(lane: Lane) -> dict[str, float]:
    """Return the bytes that a conversation takes."""
    elsewhere = lane.contestant.stored_bytes()
    if elsewhere is not None:
        return {"stored": elsewhere}
    return {"stored": bytes_in_rows(lane.dsn), "files": bytes_in_files(lane.dsn)}


def table(result: dict[str, Any]) -> str:
    """Return a table for each framework."""
    from . import __doc__ as about

    parts = [" ".join((about or "").split("\n\n")[1].split())]
    for framework in result["frameworks"].values():
        sizes = framework["sizes"]
        rows = [
            [
                name,
                *(f"{sizes[size][name]['append_ms']:.3g} / {sizes[size][name]['load_ms']:.3g}" for size in sizes),
                *(_kilobytes(sizes[size][name]) for size in list(sizes)[-1:]),
            ]
            for name in next(iter(sizes.values()))
        ]
        heading = [
            "append / load, median ms",
            *(f"{int(size):,} turns" for size in sizes),
            f"KB stored, files: {int(list(sizes)[-1]):,} turns",
        ]
        parts += [f"### {framework['title']}", framework["remark"], markdown_table(heading, rows)]
    return "\n\n".join(parts)


def _kilobytes(figures: dict[str, float]) -> str:
    files = f", {figures['files'] / 1_000:,.0f}" if "files" in figures else ""
    return f"{figures['stored'] / 1_000:,.0f}{files}"
