"""How many saves a second one process makes for 1 to 128 conversations at once, and how long each waits.

Every conversation has its own thread id and saves a state that grows by one message. The contestants run by turns, in
short slices, so that a busy minute of the machine hits all of them.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from locus.core.state import AgentState

from locus_mysql.drivers.base import DriverError
from locus_mysql.engine import asynchronous
from locus_mysql.engine.retry import Retry

from . import contestants
from .contestants import POOL_SIZE, Contestant, check_same
from .database import fresh_database
from .markdown import markdown_table
from .peers import peers
from .states import agent_state, grown

CONCURRENCY = (1, 8, 32, 128)
MESSAGES = 100
#: Saves of one conversation before it begins anew: the fast ones would otherwise have to save longer ones.
SAVES_PER_CONVERSATION = 25
SLICES = 5
SLICE_S = 1.0
DRIVERS = ("mysql-connector", "aiomysql")


@dataclass
class Tally:
    """What one contestant did at one concurrency."""

    waits_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    retries: int = 0

    def summary(self) -> dict[str, Any]:
        """Saves per second, 50th and 99th percentile of the time that a save took, failures and retries."""
        percentiles = statistics.quantiles(self.waits_ms, n=100)
        return {
            "saves_per_s": len(self.waits_ms) / self.seconds,
            "p50_ms": percentiles[49],
            "p99_ms": percentiles[98],
            "saves": len(self.waits_ms),
            "failed": sum(self.failures.values()),
            "failures": dict(self.failures),
            "retries": self.retries,
        }


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure each concurrency; ``quick``: two of them, one slice."""
    return asyncio.run(_measure(dsn, (1, 32) if quick else CONCURRENCY, 1 if quick else SLICES))


async def _measure(dsn: str, concurrency: Sequence[int], slices: int) -> dict[str, Any]:
    states = [await agent_state(MESSAGES)]
    source = random.Random(3)
    for _ in range(SAVES_PER_CONVERSATION - 1):
        states.append(grown(states[-1], source))
    result: dict[str, Any] = {
        "messages": MESSAGES,
        "pool_size": POOL_SIZE,
        "slices": slices,
        "slice_s": SLICE_S,
        "concurrency": {},
    }
    async with AsyncExitStack() as stack:
        found = stack.enter_context(peers())
        own = stack.enter_context(fresh_database(dsn))
        everyone: list[Contestant] = [
            *(contestants.ours(own, driver) for driver in DRIVERS),
            contestants.built_in(own),
            *contestants.on_other_servers(found),
        ]
        for contestant in everyone:
            stack.push_async_callback(contestant.close)
            await _slice(contestant, states, 1, "warm-up", Tally(), SLICE_S / 4)
        for at_once in concurrency:
            print(f"bench: throughput, {at_once} conversations", file=sys.stderr, flush=True)
            tallies = {contestant.name: Tally() for contestant in everyone}
            for number in range(slices):
                source.shuffle(everyone)
                for contestant in everyone:
                    name = f"{at_once}/{number}"
                    await _slice(contestant, states, at_once, name, tallies[contestant.name], SLICE_S)
            result["concurrency"][str(at_once)] = {
                name: tallies[name].summary() for name in sorted(tallies, key=str.casefold)
            }
        result["missing"] = found.missing
    return result


async def _slice(
    contestant: Contestant, states: Sequence[AgentState], at_once: int, name: str, tally: Tally, seconds: float
) -> None:
    gc.collect()
    begin = time.perf_counter()
    end = begin + seconds
    with counted_retries(tally):
        last = await asyncio.gather(
            *(_converse(contestant, states, f"{name}/{worker}", tally, end) for worker in range(at_once))
        )
    tally.seconds += time.perf_counter() - begin
    for thread_id, state in last:
        if state is not None:
            check_same(contestant.name, await contestant.load(thread_id), state)


async def _converse(
    contestant: Contestant, states: Sequence[AgentState], name: str, tally: Tally, end: float
) -> tuple[str, AgentState | None]:
    """Save until the end of the slice; return what must then be stored, if the last save did not fail."""
    for number in count():
        thread_id = f"{name}/{number}"
        for state in states:
            begin = time.perf_counter()
            saved: AgentState | None = state
            try:
                await contestant.save(state, thread_id)
            except Exception as error:  # of any library; counted, told, and compared with none
                tally.failures[type(error).__name__] += 1
                saved = None
            else:
                tally.waits_ms.append((time.perf_counter() - begin) * 1000)
            if time.perf_counter() >= end:
                return thread_id, saved
    raise AssertionError("a conversation always begins anew")


@contextmanager
def counted_retries(tally: Tally) -> Iterator[None]:
    """Count the batches that this project's engine repeats meanwhile."""

    class CountedRetry(Retry):
        def wait_after(self, error: DriverError) -> float:
            wait_s = super().wait_after(error)
            tally.retries += 1
            return wait_s

    engine: Any = asynchronous
    engine.Retry = CountedRetry
    try:
        yield
    finally:
        engine.Retry = Retry


def table(result: dict[str, Any]) -> str:
    """One table for each concurrency."""
    parts = [
        f"Conversations of {result['messages']} messages, each saving one message more at a time; "
        f"{result['slices']} slices of {result['slice_s']:g} s for each contestant, by turns. At most "
        f"{result['pool_size']} connections each; Redis' client opens one for each save under way. One process; "
        "the last save of each conversation was loaded and compared."
    ]
    for at_once, measured in result["concurrency"].items():
        built_in = measured[contestants.BUILT_IN]["saves_per_s"]
        rows = [
            [
                name,
                f"{one['saves_per_s']:,.0f}",
                f"{one['saves_per_s'] / built_in:.1f}",
                f"{one['p50_ms']:.1f}",
                f"{one['p99_ms']:.1f}",
                str(one["failed"]),
                str(one["retries"]) if name.startswith("locus-mysql") else "unknown",
            ]
            for name, one in measured.items()
        ]
        headings = [f"{at_once} at once", "saves/s", "times built-in", "p50, ms", "p99, ms", "failed", "retried"]
        parts.append(markdown_table(headings, rows))
    return "\n\n".join(parts)
