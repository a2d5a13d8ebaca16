"""The chapter on LangGraph: a graph asks a human, is resumed in another process, and rewound."""

from __future__ import annotations

from typing import Any, TextIO

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.integrations.langgraph import AsyncMySQLSaver

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .graph import compiled, thread
from .worker import Answer

CHAIR = "order/7"


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    async with chapter(config, stream, _schemas) as this, AsyncMySQLSaver(this.config) as saver:
        screen = this.screen
        screen.title(f"LangGraph's checkpoints in MySQL at {this.where}")
        graph = compiled(saver)
        await asked(screen, graph)
        await answered(screen, graph, this.config)
        await rewound(screen, graph)
        await removed(screen, saver)
    return not screen.failed


async def asked(screen: Screen, graph: Any) -> None:
    """The graph stops to ask; its state is saved."""
    screen.section("A graph stops to ask a human")
    stopped = await graph.ainvoke({"item": "a chair"}, thread(CHAIR))
    question = stopped["__interrupt__"][0].value
    screen.line("graph", question)
    state = await graph.aget_state(thread(CHAIR))
    screen.check(state.next == ("approve",) and question == "a chair for 80?", "it waits at its second node, saved")


async def answered(screen: Screen, graph: Any, config: MySQLConfig) -> None:
    """A process that has never seen the thread answers, and runs the graph to its end."""
    screen.section("Another process has the answer, and goes on")
    given = Answer(options=options_of(config), thread_id=CHAIR, answer="yes")
    async with running("examples.langgraph.worker", given) as other:
        log = (await other.next_event()).get("log", "")
        screen.line(f"pid {other.pid}", log)
    screen.check(log == "quoted 80, approved, ordered a chair", "it knew what was asked, and finished the graph")
    state = await graph.aget_state(thread(CHAIR))
    screen.check(state.next == () and ", ".join(state.values["log"]) == log, "its end is visible here at once")


async def rewound(screen: Screen, graph: Any) -> None:
    """Rewind to the question with another item: a branch of the same thread."""
    screen.section("Back in time: the question again, about a table")
    history = [state async for state in graph.aget_state_history(thread(CHAIR))]
    for state in history:
        checkpoint_id = state.config["configurable"]["checkpoint_id"]
        screen.line(checkpoint_id[-8:], f"{state.metadata['source']:6} next: {', '.join(state.next) or 'nothing'}")
    (before,) = [state for state in history if state.next == ("quote",)]
    fork = await graph.aupdate_state(before.config, {"item": "a table"}, as_node="__start__")
    stopped = await graph.ainvoke(None, fork)
    question = stopped["__interrupt__"][0].value
    screen.line("graph", question)
    screen.check(question == "a table for 250?", "the branch asks again, as if the chair had never been ordered")
    first = await graph.aget_state(history[0].config)
    screen.check(first.values["log"][-1] == "ordered a chair", "the end of the first line is still there")
    count = len([state async for state in graph.aget_state_history(thread(CHAIR))])
    screen.check(count > len(history), f"both lines are in the history: {len(history)} checkpoints, now {count}")


async def removed(screen: Screen, saver: AsyncMySQLSaver) -> None:
    """Prune all checkpoints but the newest, which still loads."""
    screen.section("Pruned to the newest checkpoint")
    newest = await saver.aget_tuple(thread(CHAIR))
    await saver.aprune([CHAIR])
    left = [found async for found in saver.alist(thread(CHAIR))]
    screen.line("left", ", ".join(found.config["configurable"]["checkpoint_id"][-8:] for found in left))
    alone = None if newest is None else newest._replace(parent_config=None)
    screen.check(left == [alone], "one checkpoint is left, and it is as it was, but for its parent")


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [GraphOperations(config).sql.schema]
