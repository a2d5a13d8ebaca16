"""Copying: threads per second from files and from Redis into the tables, and those of reading the source alone.

A thread is a conversation of a real Locus agent that begins with 40 messages and has a checkpoint after each of nine
more. "Reading alone" lists a thread's checkpoints with Locus' checkpointer and loads each, which returns neither
metadata nor times. "One by one" does the same and saves each checkpoint to the tables: the loop that one would write.
Each way reads or copies four threads concurrently. The ways take turns, in an order shuffled each time, and write into
empty tables. Commits are durable on both sides.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from locus.core.state import AgentState
from locus.memory.backends.adapters import redis_checkpointer
from locus.memory.backends.file import FileCheckpointer
from locus.memory.checkpointer import BaseCheckpointer

from ci.private_servers import Redis, ServerMissing
from locus_mysql import MySQLCheckpointer, copy_threads

from .database import fresh_database
from .environment import environment
from .markdown import markdown_table
from .peers import Peers
from .workloads import of_size

#: Name of this measurement's own page.
PAGE = "copying"

THREADS, QUICK_THREADS = 40, 8
ROUNDS, QUICK_ROUNDS = 5, 1
MESSAGES, CHECKPOINTS = 40, 10
AT_ONCE = 4

FILES, REDIS, OWN = "files", "Redis", "other tables of this package"
READ, ONE_BY_ONE, COPY, AGAIN, VERIFY = "reading alone", "one by one", "copy", "copy again", "copy again, verified"
WAYS = (READ, ONE_BY_ONE, COPY, AGAIN, VERIFY)


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure each source."""
    return {"environment": environment(dsn, Peers()), **asyncio.run(_measure(dsn, quick))}


async def _measure(dsn: str, quick: bool) -> dict[str, Any]:
    threads, rounds = (QUICK_THREADS, QUICK_ROUNDS) if quick else (THREADS, ROUNDS)
    workload = await of_size(MESSAGES)
    states = [workload.begin, *workload.then][:CHECKPOINTS]
    result: dict[str, Any] = {"missing": {}, "sources": {}, "threads": threads, "checkpoints": len(states)}
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp())
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        sources: dict[str, BaseCheckpointer] = {FILES: FileCheckpointer(folder)}
        try:
            sources[REDIS] = redis_checkpointer(stack.enter_context(Redis.start(_say)).url)
        except ServerMissing as error:
            result["missing"][REDIS] = str(error)
        own = stack.enter_context(fresh_database(dsn))
        sources[OWN] = MySQLCheckpointer(own, tenant="source")
        for name, source in sources.items():
            _say(name)
            await _fill(source, threads, states)
            result["sources"][name] = await _rounds(dsn, source, threads, rounds)
            await source.close()
    return result


async def _fill(source: BaseCheckpointer, threads: int, states: Sequence[AgentState]) -> None:
    for number in range(threads):
        for index, state in enumerate(states):
            await source.save(state, f"support/{number}", f"{number}-{index}", {"place": index})


async def _rounds(dsn: str, source: BaseCheckpointer, threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return threads per second and processor time per thread, by way."""
    wall: dict[str, list[float]] = {way: [] for way in WAYS}
    processor: dict[str, list[float]] = {way: [] for way in WAYS}
    rng = random.Random(3)
    for number in range(rounds + 1):  # the first round warms up
        with fresh_database(dsn) as own, fresh_database(dsn) as other:
            async with MySQLCheckpointer(own) as target, MySQLCheckpointer(other) as looped:
                await target.load("nothing")
                await looped.load("nothing")

                async def copied(target: MySQLCheckpointer = target, *, verify: bool = False) -> None:
                    report = await copy_threads(source, target, at_once=AT_ONCE, verify=verify)
                    assert report.complete, report

                async def read() -> None:
                    await _each(threads, lambda thread: _read(source, thread))

                async def looping(looped: MySQLCheckpointer = looped) -> None:
                    await _each(threads, lambda thread: _save(source, looped, thread))

                async def verified(target: MySQLCheckpointer = target) -> None:
                    report = await copy_threads(source, target, at_once=AT_ONCE, verify=True)
                    assert report.verified == report.present, report

                ways: list[list[tuple[str, Callable[[], Awaitable[None]]]]] = [
                    [(READ, read)],
                    [(ONE_BY_ONE, looping)],
                    [(COPY, copied), (AGAIN, copied), (VERIFY, verified)],
                ]
                for group in rng.sample(ways, len(ways)):
                    for way, run in group:
                        begin, begin_processor = time.perf_counter(), time.process_time()
                        await run()
                        if number:
                            wall[way].append(time.perf_counter() - begin)
                            processor[way].append(time.process_time() - begin_processor)
    return {
        way: {
            "threads_per_s": threads / statistics.median(wall[way]),
            "processor_ms": statistics.median(processor[way]) / threads * 1_000,
        }
        for way in WAYS
    }


async def _each(threads: int, run: Callable[[str], Awaitable[None]]) -> None:
    """Call a function for each thread, some of them concurrently."""
    waiting = iter([f"support/{number}" for number in range(threads)])

    async def work() -> None:
        for thread in waiting:
            await run(thread)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _read(source: BaseCheckpointer, thread: str) -> None:
    for one in await source.list_checkpoints(thread, limit=1_000):
        assert await source.load(thread, one) is not None


async def _save(source: BaseCheckpointer, target: MySQLCheckpointer, thread: str) -> None:
    for one in reversed(await source.list_checkpoints(thread, limit=1_000)):
        state = await source.load(thread, one)
        assert state is not None
        await target.save(state, thread, one)


def table(result: dict[str, Any]) -> str:
    """Return a table of all sources."""
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    rows = [
        [source, way, f"{one['threads_per_s']:,.0f}", f"{one['processor_ms']:.1f}", _ratio(ways, way)]
        for source, ways in result["sources"].items()
        for way, one in ways.items()
    ]
    heading = ["from", "", "threads per s", "this process' ms of processor a thread", "times reading alone takes"]
    parts += [
        f"{result['threads']} threads of {result['checkpoints']} checkpoints",
        markdown_table(heading, rows),
        *(f"Left out: {name}: {reason}" for name, reason in result["missing"].items()),
    ]
    return "\n\n".join(parts)


def _ratio(ways: dict[str, dict[str, float]], way: str) -> str:
    return f"{ways[READ]['threads_per_s'] / ways[way]['threads_per_s']:.2f}"


def _say(message: str) -> None:
    print(f"bench: copying, {message}", file=sys.stderr, flush=True)
