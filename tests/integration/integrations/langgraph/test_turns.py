"""Two runs of a graph on one thread, writes under way, and processes that are killed, in each mode of durability."""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack
from contextvars import Context
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph

from locus_mysql import MySQLConfig
from locus_mysql.errors import ThreadBusy, TurnLost
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from ....either_side import AnyStore
from ...conftest import ONE_OF_EACH, MakeConfig
from ...connecting import connect
from ...drivers.sides import wait_until
from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S, PROCESSES
from .conftest import OpenSaver
from .graphs import Running

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

each_side = pytest.mark.parametrize("side", ONE_OF_EACH)


class Steps(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


def steps(names: str, work: Callable[[str], Any], *, awaited: bool) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph of nodes one after another; ``work`` is called with the name of each."""
    builder = StateGraph(Steps)
    for before, name in zip([START, *names], names, strict=False):

        def node(_: Steps, name: str = name) -> Steps:
            work(name)
            return {"done": [name]}

        async def awaited_node(_: Steps, name: str = name) -> Steps:
            await work(name)
            return {"done": [name]}

        builder.add_node(name, awaited_node if awaited else node)
        builder.add_edge(before, name)
    return builder


async def enter(stack: AsyncExitStack, saver: Any, **options: Any) -> None:
    """Take a turn, which ends with the block."""
    turn = saver.turn("t", **options)
    if isinstance(turn, AbstractContextManager):
        stack.enter_context(turn)
    else:
        await stack.enter_async_context(turn)


@each_side
async def test_a_run_that_another_took_over_changes_nothing(open_saver: OpenSaver, side: str) -> None:
    """A worker is stuck in a node; another one takes the thread over and finishes the graph; the first one wakes."""
    one, other = open_saver(side), open_saver(side)
    awaited = side.endswith("-async")
    taken: list[str] = []

    # In a context of its own: within a node, LangGraph takes a graph for a subgraph.
    async def finish(name: str) -> None:
        if name == "b" and not taken:
            taken.append(name)
            await asyncio.create_task(take_over(), context=Context())

    async def take_over() -> None:
        async with other.turn("t", take_over=True):
            await theirs.graph.ainvoke(None, CONFIG)

    def finish_blocking(name: str) -> None:
        if name == "b" and not taken:
            taken.append(name)
            Context().run(take_over_blocking)

    def take_over_blocking() -> None:
        with other.turn("t", take_over=True):
            theirs.graph.invoke(None, CONFIG)

    builder = steps("abc", finish if awaited else finish_blocking, awaited=awaited)
    mine, theirs = (Running(builder.compile(checkpointer=saver)) for saver in (one, other))
    async with AsyncExitStack() as stack:
        await enter(stack, one)
        with pytest.raises(TurnLost):
            await mine({"done": []}, CONFIG, durability="sync")
    state = await theirs.state(CONFIG)
    assert (state.values["done"], state.next) == (["a", "b", "c"], ())
    assert [past.values.get("done") for past in await theirs.history(CONFIG)] == [[*"abc"], [*"ab"], ["a"], [], []]


@each_side
async def test_a_superseded_owner_displaces_no_write(open_saver: OpenSaver, side: str) -> None:
    """The same task at the same checkpoint, on an ordinary channel and on one whose last write counts."""
    one, other = AnyStore(open_saver(side)), AnyStore(open_saver(side))
    put, put_writes, get = (
        ("aput", "aput_writes", "aget_tuple") if side.endswith("-async") else ("put", "put_writes", "get_tuple")
    )
    async with AsyncExitStack() as stack:
        await enter(stack, one.store)
        stored = await getattr(one, put)(CONFIG, empty_checkpoint(), {}, {})
        with pytest.raises(ThreadBusy):
            await enter(stack, other.store, wait_s=0)
        await enter(stack, other.store, take_over=True)
        for channel in ("ordinary", "__resume__"):
            await getattr(other, put_writes)(stored, [(channel, "current")], channel)
            await getattr(other, put_writes)(stored, [(channel, "current")], channel)  # a duplicate is no rejection
            for task in (channel, "fresh"):
                with pytest.raises(TurnLost):
                    await getattr(one, put_writes)(stored, [(channel, "stale")], task)
            with pytest.raises(TurnLost):
                await getattr(one, put)(stored, empty_checkpoint(), {}, {})
        found = await getattr(other, get)(CONFIG)
    assert found.config == stored
    assert sorted(found.pending_writes) == [(channel, channel, "current") for channel in ("__resume__", "ordinary")]


@each_side
async def test_a_put_waits_for_the_writes_of_its_thread(
    open_saver: OpenSaver, side: str, server_dsn: str, database: str
) -> None:
    saver = open_saver(side, pool_size=4)
    elsewhere: Any = {"configurable": {"thread_id": "u", "checkpoint_ns": ""}}
    written, elsewhere = [await saver.aput(config, empty_checkpoint(), {}, {}) for config in (CONFIG, elsewhere)]
    blocker = connect(MySQLConfig(dsn=server_dsn), database)
    try:
        with blocker.cursor() as cursor:
            cursor.execute("LOCK TABLES locus_graph_writes READ")
            writing = asyncio.create_task(saver.aput_writes(written, [("a", 1)], "task"))
            await asyncio.to_thread(wait_until, lambda: _waits(server_dsn, database))
            putting = asyncio.create_task(saver.aput(written, empty_checkpoint(), {}, {}))
            await saver.aput(elsewhere, empty_checkpoint(), {}, {})
            assert not writing.done()
            assert not putting.done()
            cursor.execute("UNLOCK TABLES")
            await writing
            newest = await putting
            assert (await saver.aget_tuple(CONFIG)).config == newest
    finally:
        blocker.close()


def _waits(server_dsn: str, database: str) -> bool:
    """Return whether a statement waits for a lock on a table."""
    connection = connect(MySQLConfig(dsn=server_dsn), database)
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM performance_schema.threads"
            " WHERE processlist_db = %s AND processlist_state LIKE '%%metadata lock'",
            (database,),
        )
        return bool(cursor.fetchone()[0])


def run_until_killed(config: MySQLConfig, side: str, durability: Any, log: Path) -> None:
    """Run the graph in a process of its own; its last node never ends."""

    def stop(name: str) -> None:
        with log.open("a") as file:
            file.write(name)
        if name == "c":
            os.read(os.pipe()[0], 1)

    async def awaited() -> None:
        async def work(name: str) -> None:
            await asyncio.to_thread(stop, name)

        async with AsyncMySQLSaver(config) as saver:
            graph = steps("abc", work, awaited=True).compile(checkpointer=saver)
            await graph.ainvoke({"done": []}, CONFIG, durability=durability)

    if side.endswith("-async"):
        asyncio.run(awaited())
    else:
        with MySQLSaver(config) as saver:
            steps("abc", stop, awaited=False).compile(checkpointer=saver).invoke(
                {"done": []}, CONFIG, durability=durability
            )


@pytest.mark.slow
@each_side
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_killed_run_is_resumed_where_its_durability_says(
    make_config: MakeConfig, tmp_path: Path, side: str, durability: Any
) -> None:
    """``sync``: the step before is stored before a step begins; ``async``: meanwhile; ``exit``: all at the end."""
    config = make_config(driver=side.rpartition("-")[0])
    log, ran = tmp_path / "log", list[str]()
    log.touch()
    with MySQLSaver(make_config(driver="pymysql")) as saver:
        graph = steps("abc", ran.append, awaited=False).compile(checkpointer=saver)
        process = PROCESSES.Process(target=run_until_killed, args=(config, side, durability, log))
        process.start()
        try:
            wait_until(lambda: log.read_text() == "abc", DEADLINE_S)
            if durability == "async":
                wait_until(lambda: graph.get_state(CONFIG).next == ("c",), DEADLINE_S)
        finally:
            process.kill()
            process.join(DEADLINE_S)
        assert graph.get_state(CONFIG).next == (() if durability == "exit" else ("c",))
        state = graph.invoke({"done": []} if durability == "exit" else None, CONFIG)
        assert state["done"] == [*"abc"]
        assert ran == ([*"abc"] if durability == "exit" else ["c"])


@each_side
async def test_the_round_trips_of_a_step(open_saver: OpenSaver, proxy: WireProxy, side: str) -> None:
    """Those of ``async`` that wait for the connection share it, and sometimes a packet."""
    saver = open_saver(side, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", pool_size=1)
    awaited = side.endswith("-async")

    async def work(_: str) -> None: ...

    async def round_trips(names: str, durability: Any) -> int:
        graph = steps(names, work if awaited else str, awaited=awaited).compile(checkpointer=saver)
        with proxy.counting() as count:
            config = {"configurable": {"thread_id": names + durability}}
            await Running(graph)({"done": []}, config, durability=durability)
        return count.round_trips

    await round_trips("a", "exit")  # creates the tables
    short, whole = [
        {durability: await round_trips(names, durability) for durability in ("sync", "async", "exit")}
        for names in ("a", "abcde")
    ]
    assert (whole["sync"] - short["sync"], whole["exit"] - short["exit"]) == (2 * 4, 0)
    assert whole["exit"] < whole["async"] <= whole["sync"]
