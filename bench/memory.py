"""Memory of a process that serves ten thousand threads: bytes per known thread."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from locus.core.messages import Message

from locus_mysql import MySQLCheckpointer, MySQLConfig

from .conversations import PLAIN, conversation
from .database import fresh_database
from .disk import administrator
from .fill import Copier
from .markdown import markdown_table

THREADS = 10_000
QUICK_THREADS = 500

#: Messages of each conversation; two for each turn.
MESSAGES = (10, 100)

#: How threads become known to the process: it saves a state to new threads, loads them, or serves a turn of each (a
#: load, then a save).
SAVED, LOADED, SERVED = "saved", "loaded", "loaded and saved"
WAYS = (SAVED, LOADED, SERVED)

#: Number of threads served before counting, so that memory that a process needs once does not count.
WARM_UP_THREADS = 50

#: Number of concurrent calls.
TASKS = 8

DEFAULT_CACHE_BYTES: int = MySQLConfig.model_fields["cache_bytes"].default

#: Number of reported source lines with the largest allocations.
NAMED_LINES = 6


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure the bytes per known thread, by length of the conversations and by how they became known.

    Bytes are Python's allocations, counted by tracemalloc after a full garbage collection. ``cache_bytes`` is 0, as the
    cache has a fixed size for any number of threads. The table also has the total growth of the resident memory of
    another process, with the default cache.
    """
    threads = QUICK_THREADS if quick else THREADS
    found: list[dict[str, Any]] = []
    for messages in MESSAGES:
        with fresh_database(dsn) as own:
            asyncio.run(save_conversation(own, messages // 2))
            with administrator(own) as cursor:
                copier = Copier(cursor, "locus_", "%")
                for first in range(0, threads, 500):
                    copier.copy(first, min(first + 499, threads))
            for how in WAYS:
                traced = _in_fresh_process(own, threads, how, traced=True, cache_bytes=0)
                resident = _in_fresh_process(own, threads, how, traced=False, cache_bytes=DEFAULT_CACHE_BYTES)
                found.append({"messages": messages, "how": how, **traced, **resident})
    return {"threads": threads, "cache_bytes": DEFAULT_CACHE_BYTES, "known": found}


async def save_conversation(dsn: str, turns: int) -> None:
    """Save the conversation of which all threads are copies."""
    async with MySQLCheckpointer(dsn=dsn, search=False) as checkpointer:
        async for _ in conversation(PLAIN, checkpointer, turns):
            pass


def _in_fresh_process(dsn: str, threads: int, how: str, *, traced: bool, cache_bytes: int) -> dict[str, Any]:
    arguments = ["--dsn", dsn, "--threads", str(threads), "--how", how, "--cache-bytes", str(cache_bytes)]
    arguments += ["--traced"] if traced else []
    done = subprocess.run([sys.executable, "-m", __name__, *arguments], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


async def serve(dsn: str, threads: int, how: str, *, traced: bool, cache_bytes: int) -> dict[str, Any]:
    """Serve threads in this process, and return the memory that it holds afterwards."""
    config = MySQLConfig(dsn=dsn, search=False, pool_size=TASKS, cache_bytes=cache_bytes)
    async with MySQLCheckpointer(config) as checkpointer:
        state = await checkpointer.load("copy-0/conversation")
        assert state is not None
        question = Message.user("And what else?"), Message.assistant("Nothing else.")

        async def save(number: int) -> None:
            await checkpointer.save(state, f"copy-{number}/new")

        async def load(number: int) -> None:
            assert await checkpointer.load(f"copy-{number}/conversation") is not None

        async def load_and_save(number: int) -> None:
            thread = f"copy-{number}/conversation"
            loaded = await checkpointer.load(thread)
            assert loaded is not None
            await checkpointer.save(loaded.with_messages(list(question)), thread)

        call = {SAVED: save, LOADED: load, SERVED: load_and_save}[how]
        await _call_all(call, range(WARM_UP_THREADS))
        gc.collect()
        if traced:
            tracemalloc.start()
        resident, allocated = _resident_bytes(), tracemalloc.get_traced_memory()[0]
        await _call_all(call, range(WARM_UP_THREADS, threads))
        gc.collect()
        known = threads - WARM_UP_THREADS
        if not traced:
            return {"resident_bytes": _resident_bytes() - resident}
        allocated = tracemalloc.get_traced_memory()[0] - allocated
        return {"bytes_per_thread": allocated / known, "held_by": _holders(known)}


async def _call_all(call: Callable[[int], Awaitable[None]], numbers: range) -> None:
    """Call a function with each number, a few calls at a time."""
    pending = iter(numbers)

    async def one_after_the_other() -> None:
        for number in pending:
            await call(number)

    await asyncio.gather(*(one_after_the_other() for _ in range(TASKS)))


def _resident_bytes() -> int:
    """Return this process's resident memory (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("/proc/self/status has no VmRSS")


def _holders(known: int) -> dict[str, float]:
    """Return the source lines whose allocations take the most bytes per thread."""
    held: Counter[str] = Counter()
    for statistic in tracemalloc.take_snapshot().statistics("lineno"):
        frame = statistic.traceback[0]
        held[f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"] += statistic.size
    return {line: size / known for line, size in held.most_common(NAMED_LINES)}


def table(result: dict[str, Any]) -> str:
    """Return a table with a row for each way in which a thread becomes known."""
    rows = []
    for one in result["known"]:
        held = ", ".join(f"{line}: {size:.0f}" for line, size in one["held_by"].items())
        known_by = f"{one['messages']} messages, {one['how']}"
        rows.append([known_by, f"{one['bytes_per_thread']:.0f}", f"{one['resident_bytes'] / 1e6:.1f}", held])
    headings = [
        f"{result['threads']:,} threads of",
        "bytes per thread",
        f"in all with a cache of {result['cache_bytes'] / 1e6:.1f} MB: resident MB",
        "held by",
    ]
    return markdown_table(headings, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--how", choices=WAYS, required=True)
    parser.add_argument("--cache-bytes", type=int, required=True)
    parser.add_argument("--traced", action="store_true")
    print(json.dumps(asyncio.run(serve(**vars(parser.parse_args())))))
