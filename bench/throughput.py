"""Saves per second of one process with 1 to 128 concurrent conversations, and the time of each save.

Every conversation has its own thread id and saves after each of its messages, from the first to the hundredth; then a
new one begins. They start at different positions, so that all sizes occur at any time. The contestants take turns in
short slices, so that a busy minute of the machine affects all of them; conversations continue in the next slice.
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
from typing import Any

from locus.core.state import AgentState

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.interface import DriverError, ServerError
from locus_mysql.engine import execution
from locus_mysql.engine.retry import Retry

from . import contestants
from .contestants import POOL_SIZE, Contestant, check_same
from .database import fresh_database
from .markdown import markdown_table
from .peers import peers
from .states import agent_state

CONCURRENCY = (1, 8, 32, 128)
MESSAGES = 100
SLICES = 4
SLICE_S = 1.0
#: Each contestant opens its connections before the measurement: a cold start, which the tables show apart.
WARM_UP_S = 1.0
#: Number of conversations whose newest state is loaded and compared after each slice.
CHECKED = 16
DRIVERS = ("mysql-connector", "aiomysql")
#: ER_LOCK_WAIT_TIMEOUT and ER_LOCK_DEADLOCK.
LOCK_WAITS = {1205, 1213}


@dataclass
class Conversation:
    """One of the concurrent conversations: it saves its states in order, then starts again in a new thread."""

    name: str
    states: Sequence[AgentState]
    index: int
    number: int = 0
    stored: AgentState | None = None

    @property
    def thread_id(self) -> str:
        """The thread of the current conversation."""
        return f"{self.name}/{self.number}"

    @property
    def state(self) -> AgentState:
        """The next state to save."""
        return self.states[self.index]

    def go_on(self) -> None:
        """Advance by one message."""
        self.index += 1
        if self.index == len(self.states):
            self.index = 0
            self.number += 1
            self.stored = None


@dataclass
class Tally:
    """The results of one contestant at one concurrency."""

    waits_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    lock_waits: int = 0

    def summary(self) -> dict[str, Any]:
        """Return saves per second, 50th and 99th percentile of a save's time, failures and retries."""
        percentiles = statistics.quantiles(self.waits_ms, n=100)
        return {
            "saves_per_s": len(self.waits_ms) / self.seconds,
            "p50_ms": percentiles[49],
            "p99_ms": percentiles[98],
            "saves": len(self.waits_ms),
            "failed": sum(self.failures.values()),
            "failures": dict(self.failures),
            "retries": self.retries,
            "retries_after_lock_waits": self.lock_waits,
        }


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure each concurrency; ``quick``: two of them, one slice."""
    return asyncio.run(_measure(dsn, (1, 32) if quick else CONCURRENCY, 1 if quick else SLICES))


async def _measure(dsn: str, concurrency: Sequence[int], slices: int) -> dict[str, Any]:
    states = await conversation_states()
    source = random.Random(3)
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
        for at_once in concurrency:
            print(f"bench: throughput, {at_once} conversations", file=sys.stderr, flush=True)
            tallies = {contestant.name: Tally() for contestant in everyone}
            talks = {one.name: await begun(one, states, str(at_once), at_once) for one in everyone}
            cold = {contestant.name: Tally() for contestant in everyone}
            for contestant in everyone:
                await run_slice(contestant, talks[contestant.name], cold[contestant.name], WARM_UP_S)
            for _ in range(slices):
                source.shuffle(everyone)
                for contestant in everyone:
                    await run_slice(contestant, talks[contestant.name], tallies[contestant.name], SLICE_S)
            result["concurrency"][str(at_once)] = {
                name: tallies[name].summary() | {"cold_p99_ms": cold[name].summary()["p99_ms"]}
                for name in sorted(tallies, key=str.casefold)
            }
        result["missing"] = found.missing
    return result


async def conversation_states() -> list[AgentState]:
    """Return a real agent's conversation after each of its messages, from the first question."""
    whole = await agent_state(MESSAGES)
    return [
        whole.model_copy(update={"messages": whole.messages[: number + 1]}) for number in range(1, len(whole.messages))
    ]


async def begun(contestant: Contestant, states: Sequence[AgentState], name: str, number: int) -> list[Conversation]:
    """Return conversations at evenly spread positions, saved up to there; not measured."""
    talks = []
    for one in range(number):
        talk = Conversation(f"{name}/{one}", states, index=one * len(states) // number)
        await contestant.save(talk.state, talk.thread_id)
        talk.stored = talk.state
        talk.go_on()
        talks.append(talk)
    return talks


async def run_slice(contestant: Contestant, talks: Sequence[Conversation], tally: Tally, seconds: float) -> None:
    """Let the conversations save for some time, and add their saves to a tally; then check what is stored."""
    gc.collect()
    begin = time.perf_counter()
    with counted_retries(tally):
        await asyncio.gather(*(_converse(contestant, talk, tally, begin + seconds) for talk in talks))
    tally.seconds += time.perf_counter() - begin
    for talk in talks[:CHECKED]:
        if talk.stored is not None:
            check_same(contestant.name, await contestant.load(talk.thread_id), talk.stored)


async def _converse(contestant: Contestant, talk: Conversation, tally: Tally, end: float) -> None:
    while time.perf_counter() < end:
        begin = time.perf_counter()
        try:
            await contestant.save(talk.state, talk.thread_id)
        except Exception as error:  # of any library; counted and reported
            tally.failures[type(error).__name__] += 1
            talk.stored = None  # the stored state may be this one or the previous one
        else:
            tally.waits_ms.append((time.perf_counter() - begin) * 1000)
            talk.stored = talk.state
        talk.go_on()


@contextmanager
def counted_retries(tally: Tally) -> Iterator[None]:
    """Count the batches that this project's engine repeats inside the block."""

    class CountedRetry(Retry):
        def wait_after(self, error: DriverError) -> float:
            wait_s = super().wait_after(error)
            if isinstance(error, ServerError) and error.errno in LOCK_WAITS:
                tally.lock_waits += 1
            else:
                tally.retries += 1
            return wait_s

    engine: Any = execution
    engine.Retry = CountedRetry
    try:
        yield
    finally:
        engine.Retry = Retry


def table(result: dict[str, Any]) -> str:
    """Return a table for each concurrency."""
    parts = [
        f"Conversations of 1 to {result['messages']} messages, each saving one message more at a time; "
        f"{result['slices']} slices of {result['slice_s']:g} s for each contestant, by turns. At most "
        f"{result['pool_size']} connections each, locus-mysql its default of {MySQLConfig().pool_size}; Redis' client "
        f"opens one for each save under way. Cold: the first {WARM_UP_S:g} s, in which they are opened. One process; "
        f"after each slice {CHECKED} conversations were loaded and compared."
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
                f"{one['cold_p99_ms']:.1f}",
                str(one["failed"]),
                _retries(one) if name.startswith("locus-mysql") else "unknown",
            ]
            for name, one in measured.items()
        ]
        headings = [
            f"{at_once} at once",
            "saves/s",
            "times built-in",
            "p50, ms",
            "p99, ms",
            "cold p99, ms",
            "failed",
            "retried",
        ]
        parts.append(markdown_table(headings, rows))
    return "\n\n".join(parts)


def _retries(one: dict[str, Any]) -> str:
    lock_waits = one["retries_after_lock_waits"]
    return f"{one['retries']} and {lock_waits} after lock waits" if lock_waits else str(one["retries"])
