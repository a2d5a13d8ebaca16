"""Round trips of each operation, counted on the wire: this project beside Locus' built-in checkpointer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.adapters import mysql_checkpointer as built_in_checkpointer

from locus_mysql import MySQLCheckpointer, MySQLConfig
from locus_mysql.integrations.locus import ITERATION_CHECKPOINTS_KEY

from .database import fresh_database
from .wire import CountingProxy

THREAD = "thread"
SAVES = 9

Call = Callable[[Any], Awaitable[Any]]


def state_of(turns: int) -> AgentState:
    """A state with so many messages, each longer than what is stored whole in any case."""
    return AgentState(agent_id="bench").with_messages(
        [Message.user(f"walrus {turn} " + f"filler{turn} " * 300) for turn in range(turns)]
    )


def provisional(turns: int) -> AgentState:
    """The state that a turn's iteration saves, as "i1"."""
    return state_of(turns).with_metadata(ITERATION_CHECKPOINTS_KEY, ["i1"])


#: What is called on a thread with the checkpoints "c1" to "c9", of as many messages.
CALLS: Mapping[str, Call] = {
    "save": lambda c: c.save(state_of(10), THREAD),
    "save with metadata": lambda c: c.save(state_of(10), THREAD, metadata={"kind": "mail"}),
    "save under a new id": lambda c: c.save(state_of(10), THREAD, "c10"),
    "save under an existing id": lambda c: c.save(state_of(10), THREAD, "c4"),
    "save of another history": lambda c: c.save(state_of(10).model_copy(update={"messages": ()}), THREAD),
    "save of an iteration": lambda c: c.save(provisional(10), THREAD, "i1"),
    "save to a new thread": lambda c: c.save(state_of(1), "new"),
    "load": lambda c: c.load(THREAD),
    "load of a checkpoint": lambda c: c.load(THREAD, "c7"),
    "load of nothing": lambda c: c.load("absent"),
    "delete of a checkpoint": lambda c: c.delete(THREAD, "c4"),
    "delete of a thread": lambda c: c.delete(THREAD),
    "exists": lambda c: c.exists(THREAD),
    "list_checkpoints": lambda c: c.list_checkpoints(THREAD),
    "list_threads": lambda c: c.list_threads(),
    "list_with_metadata": lambda c: c.list_with_metadata(),
    "get_metadata": lambda c: c.get_metadata(THREAD),
    "query_by_metadata": lambda c: c.query_by_metadata("turn", 3),
    "search": lambda c: c.search("walrus"),
    "copy_thread": lambda c: c.copy_thread(THREAD, "copy"),
    "history": lambda c: c.history(THREAD),
    "count": lambda c: c.count(),
    "get_disk_usage": lambda c: c.get_disk_usage(THREAD),
}

KNOWN, UNKNOWN, BUILT_IN = "thread known to the process", "thread new to the process", "Locus built-in"

MakeCheckpointer = Callable[[], Any]


def measure(dsn: str, quick: bool = False, calls: Mapping[str, Call] = CALLS) -> dict[str, Any]:
    """Round trips by operation; None where a checkpointer does not have it. There is no quicker way."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy:
        config = MySQLConfig(dsn=proxy.dsn, ssl_mode="DISABLED")
        built_in_dsn = f"{proxy.dsn}?ssl_disabled=true"

        async def ours() -> dict[str, Any]:
            known = await counted(proxy, lambda: MySQLCheckpointer(config), calls, known=True)
            unknown = await counted(proxy, lambda: MySQLCheckpointer(config), calls, known=False)
            theirs = await counted(proxy, lambda: built_in_checkpointer(dsn=built_in_dsn), calls, known=True)
            return {KNOWN: known, UNKNOWN: unknown, BUILT_IN: theirs}

        return asyncio.run(ours())


async def counted(
    proxy: CountingProxy, make: MakeCheckpointer, calls: Mapping[str, Call], *, known: bool
) -> dict[str, int | None]:
    """Round trips of each call, on a connection that is open already.

    Args:
        proxy: What the checkpointers that `make` makes connect by.
        make: Makes a checkpointer.
        calls: What to count.
        known: Whether the one who calls is the one who saved the thread; else it has never seen it.
    """
    counts: dict[str, int | None] = {}
    for name, call in calls.items():
        writer = make()
        caller = writer if known else make()
        for turn in range(1, SAVES + 1):
            await writer.save(state_of(turn), THREAD, f"c{turn}", {"turn": turn})
        await caller.exists("absent")
        try:
            with proxy.counting() as traffic:
                await call(caller)
            counts[name] = traffic.round_trips
            if traffic.connections:
                raise AssertionError(f"{name} opened a connection, so its round trips are not its own")
        except (NotImplementedError, AttributeError):
            counts[name] = None
        for thread in (THREAD, "new", "copy"):
            await writer.delete(thread)
        for one in (writer, caller):
            await one.close()
    return counts


def table(result: dict[str, Any]) -> str:
    """Operations in rows, who calls in columns."""
    columns = (KNOWN, UNKNOWN, BUILT_IN)
    lines = [f"| round trips | {' | '.join(columns)} |", "| --- " + "| --: " * len(columns) + "|"]
    for name in result[KNOWN]:
        cells = ["not available" if result[who][name] is None else str(result[who][name]) for who in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
