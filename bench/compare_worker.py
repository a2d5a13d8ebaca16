"""The process that `bench.compare` starts for each of two versions of the package: runs rounds of a workload on demand.

Each line that it reads names a workload. It runs one round of it, and answers with a line of JSON: the seconds by the
clock and the seconds of its processor time. The workloads are those of this tree, with the package of either.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import locus_mysql
from locus_mysql import MySQLCheckpointer
from locus_mysql.integrations.langgraph import AsyncMySQLSaver

from .graphs import conversation
from .states import agent_state, grown

#: Number of calls in a round.
CALLS = 20
#: Number of messages by which a conversation grows before the next one begins.
GROWS_BY = 50

#: Calls without end; each is made before the measurement.
Calls: TypeAlias = Iterator[Callable[[], Awaitable[Any]]]


async def serve(dsn: str) -> None:
    """Answer each line until the input ends."""
    random.seed(7)  # both versions choose the same writes for their housekeeping
    async with (
        MySQLCheckpointer(dsn) as checkpointer,
        MySQLCheckpointer(dsn, cache_bytes=0) as without_cache,
        AsyncMySQLSaver(dsn) as saver,
    ):
        workloads = {
            "save, 10 messages": saves(checkpointer, await states_from(10), "ten"),
            "save, 100 messages": saves(checkpointer, await states_from(100), "hundred"),
            "load from the cache, 100 messages": loads(checkpointer, "hundred"),
            "load from rows, 100 messages": loads(without_cache, "hundred"),
            "put, 10 messages": puts(saver, 10),
        }
        answer({"package": str(Path(locus_mysql.__file__).parent), "workloads": list(workloads)})
        while line := await asyncio.to_thread(sys.stdin.readline):
            calls = list(islice(workloads[line.strip()], CALLS))
            gc.collect()
            clock, processor = time.perf_counter(), time.process_time()
            for call in calls:
                await call()
            answer({"clock": time.perf_counter() - clock, "client": time.process_time() - processor})


def answer(value: Any) -> None:
    """Write a line for the parent process."""
    print(json.dumps(value), file=sys.__stdout__, flush=True)


async def states_from(size: int) -> list[Any]:
    """Return states of a conversation, each one message longer than the previous one."""
    states, source = [await agent_state(size)], random.Random(5)
    while len(states) < GROWS_BY:
        states.append(grown(states[-1], source))
    return states


def saves(checkpointer: MySQLCheckpointer, states: list[Any], name: str) -> Calls:
    """Yield saves of conversations, one after the other."""
    number = 0
    while True:
        for state in states:
            yield lambda state=state, thread=f"{name}/{number}": checkpointer.save(state, thread)  # type: ignore[misc]
        number += 1


def loads(checkpointer: MySQLCheckpointer, name: str) -> Calls:
    """Yield loads of the newest state of the first conversation."""
    while True:
        yield lambda: checkpointer.load(f"{name}/0")


def puts(saver: AsyncMySQLSaver, size: int) -> Calls:
    """Yield LangGraph's puts of conversations, one after the other."""
    messages, number, source = conversation(size + GROWS_BY), 0, random.Random(6)
    while True:
        config: Any = {"configurable": {"thread_id": f"graph/{number}", "checkpoint_ns": ""}}
        version: Any = None
        for count in range(size, size + GROWS_BY):
            version = saver.get_next_version(version, None)
            checkpoint: Any = {
                "v": 4,
                "id": f"{number:08x}-{count:04x}-6000-8000-{source.getrandbits(48):012x}",
                "ts": "2026-01-01T00:00:00+00:00",
                "channel_values": {"messages": messages[:count]},
                "channel_versions": {"messages": version},
                "versions_seen": {},
            }
            yield _put(saver, config, checkpoint, {"messages": version})
            config = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}
        number += 1


def _put(saver: AsyncMySQLSaver, config: Any, checkpoint: Any, versions: Any) -> Callable[[], Awaitable[Any]]:
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    return lambda: saver.aput(config, checkpoint, metadata, versions)


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        asyncio.run(serve(sys.argv[1]))
