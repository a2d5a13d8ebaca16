"""Many callers of every family share one or two connections, some of which break: each call has its own outcome."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from locus_mysql import CheckpointStore, Database, MemoryStore, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.engine import group_commit
from locus_mysql.errors import VersionConflict
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.working import SyncWorkingMemory, WorkingMemory

from ..thoroughness import FULL
from .conftest import EACH_WAY, MakeConfig
from .proxy import WireProxy

pytestmark = pytest.mark.slow

CALLERS = 16
ROUNDS = 20 if FULL else 6

#: The callers' variables are in so few sessions that several of them lock the same one.
SESSIONS = 3


SHARED = TranscriptKey("kind", "", "shared")


class Callers:
    """The stores of one side on one pool, and what the callers have written.

    Args:
        side: The side.
        database: The pool.
    """

    def __init__(self, side: str, database: Database) -> None:
        self.awaited = side.endswith("-async")
        self.database = database
        kinds: Any = (
            (CheckpointStore, MemoryStore, TranscriptStore, WorkingMemory)
            if self.awaited
            else (SyncCheckpointStore, SyncMemoryStore, SyncTranscriptStore, SyncWorkingMemory)
        )
        self.store, self.memories, self.transcripts = (kind(database) for kind in kinds[:3])
        self.sessions = [kinds[3](f"session {number}", database) for number in range(SESSIONS)]
        self.outcomes: Counter[str] = Counter()

    async def call(self, method: Any, *args: Any, **options: Any) -> Any:
        """Call a method of either side; a blocking one in a thread."""
        if self.awaited:
            return await method(*args, **options)
        return await asyncio.to_thread(method, *args, **options)

    async def prepare(self) -> None:
        """Create the tables, and what all callers write to."""
        await self.call(self.store.save, "shared", {"n": 0}, "first")
        await self.call(self.memories.put, ("shared",), "item", {"n": 0})
        await self.call(self.transcripts.append, SHARED, [NewItem({"n": 0})])
        for session in self.sessions:
            await self.call(session.set, "number", 0)

    async def one(self, number: int) -> None:
        """Be one caller: writes of all families, in an own order."""
        source = random.Random(number)
        for turn in range(ROUNDS):
            steps = [self._save, self._save_shared, self._remember, self._rely, self._count, self._append]
            source.shuffle(steps)
            for step in steps:
                await step(number, turn)

    async def _save(self, number: int, turn: int) -> None:
        await self.call(self.store.save, f"thread {number}", {"turns": list(range(turn + 1))}, f"turn {turn}")

    async def _save_shared(self, number: int, turn: int) -> None:
        """Save under an id that another caller saves under too; the later one replaces the other."""
        await self.call(self.store.save, "shared", {"by": number}, f"{number // 2} {turn}")

    async def _remember(self, number: int, turn: int) -> None:
        assert await self.call(self.memories.put, ("own", str(number)), "item", {"turn": turn}) == turn + 1

    async def _rely(self, number: int, turn: int) -> None:
        """Write an item that all write, if it has the version that was read."""
        item = await self.call(self.memories.get_item, ("shared",), "item")
        try:
            await self.call(self.memories.put, ("shared",), "item", {"n": item.value["n"] + 1}, if_version=item.version)
        except VersionConflict:
            self.outcomes["conflict"] += 1
        else:
            self.outcomes["relied"] += 1

    async def _count(self, number: int, turn: int) -> None:
        await self.call(self.sessions[number % SESSIONS].increment, "number")
        await self.call(self.sessions[turn % SESSIONS].set, f"of {number}", turn)

    async def _append(self, number: int, turn: int) -> None:
        await self.call(self.transcripts.append, SHARED, [NewItem([number, turn])])

    async def check(self) -> None:
        """Compare the stored data with the results that the callers received."""
        for number in range(CALLERS):
            thread_id = f"thread {number}"
            assert await self.call(self.store.load, thread_id) == {"turns": list(range(ROUNDS))}
            names = [f"turn {turn}" for turn in reversed(range(ROUNDS))]
            assert await self.call(self.store.list_checkpoints, thread_id, 1_000) == names
        names = await self.call(self.store.list_checkpoints, "shared", 1_000)
        assert sorted(names) == sorted(
            ["first", *(f"{pair} {turn}" for pair in range(CALLERS // 2) for turn in range(ROUNDS))]
        )
        item = await self.call(self.memories.get_item, ("shared",), "item")
        assert item.value["n"] == self.outcomes["relied"]
        assert self.outcomes["relied"] + self.outcomes["conflict"] == CALLERS * ROUNDS
        numbers = [await self.call(session.get, "number") for session in self.sessions]
        assert sum(numbers) == CALLERS * ROUNDS
        items = (await self.call(self.transcripts.read, SHARED)).items
        assert sorted(item.content for item in items if item.content != {"n": 0}) == [
            [number, turn] for number in range(CALLERS) for turn in range(ROUNDS)
        ]


async def break_connections(proxy: WireProxy, source: random.Random) -> None:
    """Lose a packet or an answer now and then, until cancelled."""
    while True:
        await asyncio.sleep(source.uniform(0.05, 0.3))
        getattr(proxy, source.choice(["drop_before", "drop_after_send"]))(source.randint(1, 5))


@pytest.mark.parametrize("breaks", [False, True], ids=["steady", "breaking"])
@pytest.mark.parametrize("pool_size", [1, 3])
@pytest.mark.parametrize("side", EACH_WAY)
async def test_many_callers_of_every_family_on_few_connections(
    side: str,
    pool_size: int,
    breaks: bool,
    make_config: MakeConfig,
    proxy: WireProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    send = group_commit.CommitGroup.send

    def noted(self: group_commit.CommitGroup, primary: Any) -> Any:
        sizes.append(len(self.writes))
        return send(self, primary)

    monkeypatch.setattr(group_commit.CommitGroup, "send", noted)
    config = make_config(
        driver=side.rpartition("-")[0], pool_size=pool_size, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED"
    )
    database = Database(config)
    callers = Callers(side, database)
    await callers.prepare()
    breaking = asyncio.create_task(break_connections(proxy, random.Random(4))) if breaks else None
    try:
        async with asyncio.timeout(300):
            await asyncio.gather(*(callers.one(number) for number in range(CALLERS)))
    finally:
        if breaking is not None:
            breaking.cancel()
    await callers.check()
    assert len(sizes) > ROUNDS, "calls travelled together"
    assert max(sizes) > 2
    if callers.awaited:
        await database.aclose()
    else:
        database.close()
