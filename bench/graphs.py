"""LangGraph's savers: put, get_tuple, put_writes and list by size of the conversation, and 500 steps on disk.

``langgraph-checkpoint-mysql`` needs ``MD5`` in generated columns, which MySQL 9 refuses. For the comparison alone, its
statements are changed at run time to use ``SHA2`` instead. ``AsyncPostgresSaver`` is LangGraph's own, for PostgreSQL.
Each saver has one connection, as their ``from_conn_string`` makes it; those to MySQL go without TLS here, as
langgraph-checkpoint-mysql takes none. LangGraph's serialiser encodes the content of ``messages`` for all. The floor
is one bare INSERT of the new data, and one bare SELECT of the whole checkpoint, without any guarantee of a saver.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph

from locus_mysql import Database
from locus_mysql.integrations.langgraph import AsyncMySQLSaver
from tests.integration.integrations.langgraph.published import working_on_mysql_9

from .database import fresh_database
from .disk import bytes_in_files, bytes_in_rows
from .graphs_floor import open_floor
from .markdown import markdown_table
from .peers import Peers, peers

OURS = "locus-mysql, asyncmy"
#: Reads what other processes wrote, with an empty cache.
OURS_COLD = "locus-mysql, asyncmy, a process that did not write"
PUBLISHED = "langgraph-checkpoint-mysql, asyncmy"
POSTGRESQL = "AsyncPostgresSaver"

OPERATIONS = ("put", "get_tuple", "put_writes", "list")
#: Measured rounds by the number of messages; each adds one message.
ROUNDS = {10: 60, 100: 60, 1000: 30}
QUICK_ROUNDS = 6
WARM_UP_ROUNDS = 3
#: Number of checkpoints that `list` reads.
LISTED = 10
#: Turns of a graph with one node: three steps each.
TURNS, QUICK_TURNS, STEPS_PER_TURN = 167, 7, 3


class Contestant(Protocol):
    """A saver, or several that represent several processes."""

    name: str

    async def saver(self) -> BaseCheckpointSaver[Any]:
        """Return the saver of the next call."""


@dataclass
class Steady:
    """One saver for all calls."""

    name: str
    opened: BaseCheckpointSaver[Any]

    async def saver(self) -> BaseCheckpointSaver[Any]:
        """See `Contestant.saver`."""
        return self.opened


@dataclass
class Cold:
    """A new saver for each call, with an empty cache, on connections that are open already."""

    name: str
    database: Database

    async def saver(self) -> BaseCheckpointSaver[Any]:
        """See `Contestant.saver`."""
        return AsyncMySQLSaver(self.database)


@dataclass
class Conversation:
    """A growing thread of one contestant."""

    messages: Sequence[BaseMessage]
    config: RunnableConfig
    version: Any = None
    times: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in OPERATIONS})


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every size, and the space of a long conversation; ``quick``: a few rounds of the small sizes."""
    return asyncio.run(_measure(dsn, quick))


async def _measure(dsn: str, quick: bool) -> dict[str, Any]:
    sizes = (10, 100) if quick else tuple(ROUNDS)
    with peers() as found, working_on_mysql_9():
        result: dict[str, Any] = {"missing": found.missing, "sizes": {}}
        for size in sizes:
            print(f"bench: graphs, {size} messages", file=sys.stderr, flush=True)
            rounds = QUICK_ROUNDS if quick else ROUNDS[size]
            async with _contestants(dsn, found) as everyone:
                result["sizes"][str(size)] = await _run(everyone, size, rounds)
        result["steps"] = STEPS_PER_TURN * (QUICK_TURNS if quick else TURNS)
        result["stored"] = await _space(dsn, QUICK_TURNS if quick else TURNS)
    return result


@asynccontextmanager
async def _contestants(dsn: str, found: Peers) -> AsyncIterator[list[Contestant]]:
    async with AsyncExitStack() as stack:
        own = stack.enter_context(fresh_database(dsn))
        database = await stack.enter_async_context(_database(own))
        published = await stack.enter_async_context(_published(stack.enter_context(fresh_database(dsn))))
        everyone: list[Contestant] = [
            Steady(OURS, AsyncMySQLSaver(database)),
            Steady(PUBLISHED, published),
            Cold(OURS_COLD, database),
            await open_floor(stack.enter_context(fresh_database(dsn))),
        ]
        if found.postgresql is not None:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

            saver = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(found.postgresql.url))
            await saver.setup()
            everyone.append(Steady(POSTGRESQL, saver))
        yield everyone


def _database(dsn: str) -> Database:
    """Return the configuration of one connection without TLS."""
    return Database(dsn, driver="asyncmy", pool_size=1, ssl_mode="DISABLED")


@asynccontextmanager
async def _published(dsn: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    from langgraph.checkpoint.mysql.asyncmy import AsyncMySaver

    async with AsyncMySaver.from_conn_string(dsn) as saver:
        await saver.setup()
        yield saver


async def _run(everyone: Sequence[Contestant], size: int, rounds: int) -> dict[str, Any]:
    """Let every contestant make one step of its conversation, in an order shuffled in each round."""
    source = random.Random(2)
    messages = conversation(size + rounds + WARM_UP_ROUNDS + 1)
    threads = {
        one.name: Conversation(messages, {"configurable": {"thread_id": f"{one.name}/{size}", "checkpoint_ns": ""}})
        for one in everyone
    }
    order = list(everyone)
    for number in range(rounds + WARM_UP_ROUNDS):
        source.shuffle(order)
        gc.collect()
        for contestant in order:
            await _step(contestant, threads[contestant.name], size + number, measured=number >= WARM_UP_ROUNDS)
    return {
        name: {f"{operation}_ms": statistics.median(times) for operation, times in thread.times.items()}
        for name, thread in threads.items()
    }


async def _step(contestant: Contestant, thread: Conversation, count: int, *, measured: bool) -> None:
    """Put a checkpoint with one more message, read it back, store the writes of a task, list."""
    newest: RunnableConfig = {"configurable": {**thread.config["configurable"]}}
    newest["configurable"].pop("checkpoint_id", None)
    saver = await contestant.saver()
    thread.version = saver.get_next_version(thread.version, None)
    checkpoint: Any = {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"messages": list(thread.messages[:count])},
        "channel_versions": {"messages": thread.version, "__start__": thread.version},
        "versions_seen": {"__input__": {}, "agent": {"messages": thread.version}},
        "updated_channels": ["messages"],
    }
    metadata: Any = {"source": "loop", "step": count, "parents": {}}
    writes = [("messages", [thread.messages[count]]), ("branch:to:agent", None)]

    def taken(operation: str, begin: float) -> None:
        if measured:
            thread.times[operation].append((time.perf_counter() - begin) * 1000)

    begin = time.perf_counter()
    thread.config = await saver.aput(thread.config, checkpoint, metadata, {"messages": thread.version})
    taken("put", begin)
    saver = await contestant.saver()
    begin = time.perf_counter()
    found = await saver.aget_tuple(newest)
    taken("get_tuple", begin)
    check_same(contestant.name, found, checkpoint)
    del found
    saver = await contestant.saver()
    begin = time.perf_counter()
    await saver.aput_writes(thread.config, writes, "task")
    taken("put_writes", begin)
    saver = await contestant.saver()
    begin = time.perf_counter()
    listed = [one async for one in saver.alist(newest, limit=LISTED)]
    taken("list", begin)
    check_same(contestant.name, listed[0], checkpoint)


def check_same(name: str, found: CheckpointTuple | None, checkpoint: Any) -> None:
    """Raise an error if a contestant did not load the state that it saved."""
    if found is None or found.checkpoint["id"] != checkpoint["id"]:
        raise AssertionError(f"{name} found another checkpoint than was put")
    if found.checkpoint["channel_values"] != checkpoint["channel_values"]:
        raise AssertionError(f"{name} found other messages than were put")


async def _space(dsn: str, turns: int) -> dict[str, dict[str, int]]:
    """Return the bytes stored for a conversation of a compiled graph, by MySQL saver."""
    print("bench: graphs, space", file=sys.stderr, flush=True)
    stored = {}
    with fresh_database(dsn) as own:
        async with _database(own) as database:
            await _talk(AsyncMySQLSaver(database), turns)
        stored[OURS] = {"row_bytes": bytes_in_rows(own), "file_bytes": bytes_in_files(own)}
    with fresh_database(dsn) as own:
        async with _published(own) as saver:
            await _talk(saver, turns)
        stored[PUBLISHED] = {"row_bytes": bytes_in_rows(own), "file_bytes": bytes_in_files(own)}
    return stored


async def _talk(saver: BaseCheckpointSaver[Any], turns: int) -> None:
    messages = conversation(2 * turns)
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [messages[len(state["messages"])]]})
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=saver)
    for turn in range(turns):
        await graph.ainvoke({"messages": [messages[2 * turn]]}, {"configurable": {"thread_id": "thread"}})


def conversation(count: int) -> list[BaseMessage]:
    """Return messages of users and of a model in turns, with the metadata of models; the same in every run."""
    source = random.Random(3)
    words = [f"{source.choice('bdfgklmnprst')}{source.choice('aeiou')}{number}" for number in range(2_000)]
    made: list[BaseMessage] = []
    for number in range(count):
        text = " ".join(source.choices(words, k=60))
        message_id = f"{source.getrandbits(128):032x}"
        if number % 2 == 0:
            made.append(HumanMessage(text, id=message_id))
            continue
        usage: Any = {"input_tokens": 20 * number, "output_tokens": 80, "total_tokens": 20 * number + 80}
        about = {"model_name": "gpt-4o", "finish_reason": "stop"}
        made.append(AIMessage(text, id=message_id, response_metadata=about, usage_metadata=usage))
    return made


def table(result: dict[str, Any]) -> str:
    """Return a table of times for each size, and one of space."""
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    for size, measured in result["sizes"].items():
        rows = [[name, *(f"{one[f'{what}_ms']:.2f}" for what in OPERATIONS)] for name, one in measured.items()]
        parts += [f"{size} messages, medians, ms", markdown_table(["saver", *OPERATIONS], rows)]
    stored = result["stored"].items()
    rows = [[name, f"{one['row_bytes'] / 1e6:.2f}", f"{one['file_bytes'] / 1e6:.2f}"] for name, one in stored]
    heading = ["saver", "in rows, MB", "in files, MB"]
    parts += [f"A conversation of {result['steps']} steps, stored", markdown_table(heading, rows)]
    return "\n\n".join(parts)
