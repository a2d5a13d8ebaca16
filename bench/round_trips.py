"""Round trips of each operation, counted on the wire, of this project and of Locus' built-in checkpointer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.adapters import mysql_checkpointer as built_in_checkpointer

from locus_mysql import MySQLCheckpointer, MySQLConfig
from locus_mysql.integrations.locus.agent_states import ITERATION_CHECKPOINTS_KEY

from .database import fresh_database
from .markdown import markdown_table
from .wire import CountingProxy

THREAD = "thread"
SAVES = 9

#: Number of saves whose round trips are averaged, and of repetitions of a call that takes more than one round trip.
AVERAGED_SAVES = 320
ATTEMPTS = 3

Call = Callable[[Any], Awaitable[Any]]


def state_of(turns: int) -> AgentState:
    """Return a state with a number of messages, each longer than the values that are always stored whole."""
    return AgentState(agent_id="bench").with_messages(
        [Message.user(f"walrus {turn} " + f"filler{turn} " * 300) for turn in range(turns)]
    )


def provisional(turns: int) -> AgentState:
    """Return the state that a turn's iteration saves as "i1"."""
    return state_of(turns).with_metadata(ITERATION_CHECKPOINTS_KEY, ["i1"])


#: The calls on a thread with checkpoints "c1" to "c9", which have one to nine messages.
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
AVERAGE = f"average of {AVERAGED_SAVES} saves, housekeeping included"

MakeCheckpointer = Callable[[], Any]


def measure(dsn: str, quick: bool = False, calls: Mapping[str, Call] = CALLS) -> dict[str, Any]:
    """Count round trips by operation; None if a checkpointer does not support it. ``quick`` changes nothing."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy:
        config = MySQLConfig(dsn=proxy.dsn, ssl_mode="DISABLED")
        built_in_dsn = f"{proxy.dsn}?ssl_disabled=true"

        def ours() -> MySQLCheckpointer:
            return MySQLCheckpointer(config)

        def theirs() -> Any:
            return built_in_checkpointer(dsn=built_in_dsn)

        async def count_all() -> dict[str, Any]:
            known = await counted(proxy, ours, calls, known=True)
            unknown = await counted(proxy, ours, calls, known=False)
            built_in = await counted(proxy, theirs, calls, known=True)
            async with ours() as checkpointer:
                average = await average_of_saves(proxy, checkpointer, AVERAGED_SAVES)
            return {KNOWN: known, UNKNOWN: unknown, BUILT_IN: built_in, AVERAGE: average}

        return asyncio.run(count_all())


async def counted(
    proxy: CountingProxy, make: MakeCheckpointer, calls: Mapping[str, Call], *, known: bool
) -> dict[str, int | None]:
    """Count the round trips of each call, on a connection that is open already.

    A random sample of saves also does housekeeping, in another round trip. So a call that takes more than one is
    repeated, and the minimum counts; `average_of_saves` includes housekeeping.

    Args:
        proxy: The proxy through which the checkpointers connect.
        make: Makes a checkpointer.
        calls: The calls.
        known: Whether the calling checkpointer saved the thread; else it has never seen it.
    """
    counts: dict[str, int | None] = {}
    for name, call in calls.items():
        least: int | None = None
        for _ in range(ATTEMPTS):
            count = await _counted_once(proxy, make, call, known=known)
            if count is None:
                break
            least = count if least is None else min(least, count)
            if least <= 1:
                break
        counts[name] = least
    return counts


async def _counted_once(proxy: CountingProxy, make: MakeCheckpointer, call: Call, *, known: bool) -> int | None:
    """Count the round trips of one call on a thread with checkpoints; None if the checkpointer does not support it."""
    writer = make()
    caller = writer if known else make()
    try:
        for turn in range(1, SAVES + 1):
            await writer.save(state_of(turn), THREAD, f"c{turn}", {"turn": turn})
        await caller.exists("absent")
        with proxy.counting() as traffic:
            await call(caller)
        if traffic.connections:
            raise AssertionError("the call opened a connection, so its round trips are not its own")
        return traffic.round_trips
    except (NotImplementedError, AttributeError):  # Locus' checkpointers raise these for unsupported calls
        return None
    finally:
        for thread in (THREAD, "new", "copy"):
            await writer.delete(thread)
        for one in (writer, caller):
            await one.close()


async def average_of_saves(proxy: CountingProxy, checkpointer: Any, saves: int) -> float:
    """Return the average round trips of many saves to a known thread."""
    await checkpointer.save(state_of(1), THREAD)
    state = state_of(2)
    with proxy.counting() as traffic:
        for number in range(saves):
            state = state.with_message(Message.user(f"message {number}"))
            await checkpointer.save(state, THREAD)
    await checkpointer.delete(THREAD)
    return traffic.round_trips / saves


def table(result: dict[str, Any]) -> str:
    """Return a table with operations in rows and callers in columns."""
    columns = (KNOWN, UNKNOWN, BUILT_IN)
    rows = []
    for name in result[KNOWN]:
        counts = [result[who][name] for who in columns]
        rows.append([name, *("not available" if count is None else str(count) for count in counts)])
    rows.append([AVERAGE, f"{result[AVERAGE]:.2f}", "", ""])
    return markdown_table(["round trips", *columns], rows)
