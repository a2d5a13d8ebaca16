"""Every fault while the writes of several calls, of every family, share a packet: each call has its own outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLCheckpointSaver,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointSaver,
)
from locus_mysql.engine.group_commit import CommitGroup
from locus_mysql.engine.pool import Pool
from locus_mysql.errors import VersionConflict
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.working import SyncWorkingMemory, WorkingMemory

from ..integration.conftest import EVERY_SIDE, ONE_OF_EACH, MakeConfig
from ..integration.proxy import WireProxy
from ..integration.together import full
from ..thoroughness import FULL
from .faults import FAULTS, READ_TIMEOUT_S, Trouble
from .test_every_fault import RETRY_DEADLINE_S, connected

ROUNDS = 6 if FULL else 2

KEY = TranscriptKey("kind", "", "shared")

#: The number of calls of a round.
CALLS = 7


class Callers:
    """One call of each family, on one pool of one side.

    Args:
        side: The driver, and ``async`` or ``sync``.
        database: The pool.
    """

    def __init__(self, side: str, database: Database) -> None:
        self.awaited = side.endswith("-async")
        self.database = database
        kinds: Any = (
            (CheckpointStore, MemoryStore, TranscriptStore, MySQLCheckpointSaver)
            if self.awaited
            else (SyncCheckpointStore, SyncMemoryStore, SyncTranscriptStore, SyncMySQLCheckpointSaver)
        )
        self.store, self.memories, self.transcripts, self.saver = (kind(database) for kind in kinds)
        self.session: Any = (WorkingMemory if self.awaited else SyncWorkingMemory)("session", database)
        self.threads = ThreadPoolExecutor(CALLS)

    @property
    def pool(self) -> Pool:
        """The pool to the primary."""
        return self.database.asynchronous._pool_here() if self.awaited else self.database.synchronous._pool

    async def call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method of either side; a blocking one in a thread."""
        if self.awaited:
            return await method(*args, **options)
        return await asyncio.get_running_loop().run_in_executor(self.threads, partial(method, *args, **options))

    def round(self, number: int) -> list[Coroutine[Any, Any, Any]]:
        """Return the calls of a round."""
        return [
            self.call(self.store.save, "thread", {"turns": list(range(number + 1))}, f"c{number}"),
            self.call(self.memories.put, ("own",), "item", {"n": number}),
            self._refused(),
            self.call(self.session.increment, "number"),
            self.call(self.transcripts.append, KEY, [NewItem({"n": number})]),
            self.call(
                self.saver.put,
                thread_id="thread",
                checkpoint_id=f"c{number}",
                checkpoint_data={"said": ["word"] * number},
            ),
            self.call(
                self.saver.put_writes,
                thread_id="thread",
                checkpoint_id=f"c{number}",
                task_id="task",
                writes=[("channel", "yes")],
            ),
        ]

    async def _refused(self) -> str:
        try:
            await self.call(self.memories.put, ("shared",), "item", {"n": 0}, if_version=999)
        except VersionConflict:
            return "conflict"
        return "written"

    async def check(self, rounds: int) -> None:
        """Compare what is stored with what was written."""
        names = [f"c{number}" for number in reversed(range(rounds))]
        assert await self.call(self.store.list_checkpoints, "thread", 1_000) == names
        assert await self.call(self.store.load, "thread") == {"turns": list(range(rounds))}
        item = await self.call(self.memories.get_item, ("own",), "item")
        assert (item.value, item.version) == ({"n": rounds - 1}, rounds)
        assert await self.call(self.memories.get_item, ("shared",), "item") is None
        assert await self.call(self.session.get, "number") == rounds
        items = (await self.call(self.transcripts.read, KEY)).items
        assert [item.content for item in items] == [{"n": number} for number in range(rounds)]
        found = await self.call(self.saver.list_checkpoints, thread_id="thread", limit=1_000)
        assert [one["checkpoint_id"] for one in found] == names
        assert found[0]["checkpoint"] == {"said": ["word"] * (rounds - 1)}

    async def close(self) -> None:
        if self.awaited:
            await self.database.aclose()
        else:
            await asyncio.to_thread(self.database.close)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of writes of the packets that are sent."""
    found: list[int] = []
    send = CommitGroup.send

    def noted(self: CommitGroup, primary: Any) -> Any:
        found.append(len(self.writes))
        return send(self, primary)

    monkeypatch.setattr(CommitGroup, "send", noted)
    return found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", EVERY_SIDE if FULL else ONE_OF_EACH)
async def test_no_fault_in_a_packet_of_several_calls_loses_or_doubles_a_write(
    make_config: MakeConfig,
    through_proxy: MakeConfig,
    proxy: WireProxy,
    server_dsn: str,
    database: str,
    sizes: list[int],
    fault: str,
    side: str,
) -> None:
    options = {
        "driver": side.rpartition("-")[0],
        "pool_size": 1,
        # An answer to several calls has kilobytes.
        "read_timeout_s": 10 * READ_TIMEOUT_S if "drips" in fault else READ_TIMEOUT_S,
        "write_timeout_s": READ_TIMEOUT_S,
        "connect_timeout_s": 5,
        "retry_deadline_s": RETRY_DEADLINE_S,
    }
    with connected(server_dsn) as administrator:
        callers = Callers(side, Database(through_proxy(**options)))
        trouble = Trouble(proxy, administrator, database)
        for call in callers.round(0):
            await call
        for number in range(1, 1 + ROUNDS):
            with full(callers.pool) as free:
                calls = [asyncio.create_task(call) for call in callers.round(number)]
                async with asyncio.timeout(RETRY_DEADLINE_S):
                    while callers.pool.state().waiting < CALLS:  # noqa: ASYNC110 - no event to wait for
                        await asyncio.sleep(0.001)
                FAULTS[fault](trouble, number)
                began = time.monotonic()
                free()
                results = await asyncio.gather(*calls)
            await asyncio.to_thread(trouble.over)
            assert results[1:4] == [number + 1, "conflict", number + 1]
            assert time.monotonic() - began < RETRY_DEADLINE_S + READ_TIMEOUT_S
        await callers.close()
    undisturbed = Callers(side, Database(make_config(driver=options["driver"])))
    await undisturbed.check(1 + ROUNDS)
    await undisturbed.close()
    assert max(sizes) >= 4, "calls shared a packet"
