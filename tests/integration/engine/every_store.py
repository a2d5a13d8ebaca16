"""Every store of an embedded database, used in the same way: each writes numbered steps and reads them back.

As a program, it adds steps to all stores in turn until it is killed: ``python -m tests.integration.engine.every_store
DSN SIDE``. It prints a line for each step of a store that was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLBackend,
    MySQLCheckpointer,
    MySQLCheckpointSaver,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
    SyncMySQLCheckpointSaver,
)
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.integrations.memu import AsyncMemuDatabase, MemuDatabase
from locus_mysql.working import MySQLStorage, SyncWorkingMemory, WorkingMemory

from ...either_side import AnyStore

CONVERSATION = TranscriptKey("kind", "project", "conversation")
SCOPE = {"user_id": "ada"}


class Steps(NamedTuple):
    """The steps in one store.

    Args:
        write: Adds a step of this number, after all others.
        read: Returns the numbers of all steps in their order, and checks what is stored with them.
    """

    write: Callable[[int], Awaitable[Any]]
    read: Callable[[], Awaitable[list[int]]]


def state_of(step: int) -> dict[str, Any]:
    """Return the state after a step: it grows with each."""
    return {"step": step, "log": [f"entry {number}" for number in range(step + 1)]}


def numbers(states: list[Any]) -> list[int]:
    """Return the numbers of states, and check their content."""
    assert states == [state_of(state["step"]) for state in states]
    return [state["step"] for state in states]


def dicts(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((CheckpointStore if awaited else SyncCheckpointStore)(where))

    async def read() -> list[int]:
        newest_first = await store.list_checkpoints("t", limit=10_000)
        return numbers([await store.load("t", one) for one in reversed(newest_first)])

    return Steps(lambda step: store.save("t", state_of(step)), read)


def agents(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((MySQLCheckpointer if awaited else SyncMySQLCheckpointer)(where))

    async def read() -> list[int]:
        newest_first = await store.list_checkpoints("t", limit=10_000)
        states = [await store.load("t", one) for one in reversed(newest_first)]
        assert all(state.messages[0].content == "step 0" for state in states)
        return [len(state.messages) - 1 for state in states]

    def write(step: int) -> Awaitable[Any]:
        messages = [Message.user(f"step {number}") for number in range(step + 1)]
        return store.save(AgentState(messages=messages), "t")

    return Steps(write, read)


def current(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((MySQLBackend if awaited else SyncMySQLBackend)(where))

    async def read() -> list[int]:
        state = await store.load("t")
        return [] if state is None else list(range(numbers([state])[0] + 1))

    return Steps(lambda step: store.save("t", state_of(step)), read)


def graphs(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((MySQLCheckpointSaver if awaited else SyncMySQLCheckpointSaver)(where))

    async def read() -> list[int]:
        newest_first = await store.list_checkpoints(thread_id="t", limit=10_000)
        return numbers([one["checkpoint"] for one in reversed(newest_first)])

    def write(step: int) -> Awaitable[Any]:
        parent = f"c{step - 1}" if step else None
        return store.put(
            thread_id="t", checkpoint_id=f"c{step}", checkpoint_data=state_of(step), parent_checkpoint_id=parent
        )

    return Steps(write, read)


def memories(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((MemoryStore if awaited else SyncMemoryStore)(where, dims=2))

    async def read() -> list[int]:
        hits = await store.search(("n",), limit=10_000)
        return numbers(sorted((hit.item.value for hit in hits), key=lambda value: value["step"]))

    return Steps(lambda step: store.put(("n",), f"{step}", state_of(step), embedding=[step, 1]), read)


def working(where: str | Database, awaited: bool) -> Steps:
    memory = AnyStore((WorkingMemory if awaited else SyncWorkingMemory)("s", MySQLStorage(where)))

    async def read() -> list[int]:
        return [int(note) for note in await memory.get_scratchpad()]

    return Steps(lambda step: memory.append_scratchpad(f"{step}"), read)


def transcripts(where: str | Database, awaited: bool) -> Steps:
    store = AnyStore((TranscriptStore if awaited else SyncTranscriptStore)(where))

    async def read() -> list[int]:
        page = await store.read(CONVERSATION)
        return [] if page is None else numbers([item.content for item in page.items])

    return Steps(lambda step: store.append(CONVERSATION, [NewItem(state_of(step))]), read)


def memu(where: str | Database, awaited: bool) -> Steps:
    items = AnyStore((AsyncMemuDatabase if awaited else MemuDatabase)(where).memory_item_repo)

    async def read() -> list[int]:
        return [int(item.summary) for item in (await items.list_items(SCOPE)).values()]

    def write(step: int) -> Awaitable[Any]:
        return items.create_item(memory_type="profile", summary=f"{step}", embedding=[1.0, step], user_data=SCOPE)

    return Steps(write, read)


EVERY_STORE = (dicts, agents, current, graphs, memories, working, transcripts, memu)


def every_store(where: str | Database, awaited: bool) -> dict[str, Steps]:
    """Open every store of one side.

    Args:
        where: A DSN, or a database that all stores share.
        awaited: Whether to open the asynchronous stores, or the blocking ones.
    """
    return {store.__name__: store(where, awaited) for store in EVERY_STORE}


async def write_until_killed(dsn: str, side: str) -> None:
    """Add steps to every store, in turn, after those that are there."""
    stores = every_store(dsn, side == "async")
    following = {name: len(await steps.read()) for name, steps in stores.items()}
    while True:
        for name, steps in stores.items():
            await steps.write(following[name])
            print(name, following[name], flush=True)
            following[name] += 1


if __name__ == "__main__":
    asyncio.run(write_until_killed(*sys.argv[1:]))
