"""`MySQLDeltaStorage` under Locus' `DeltaCheckpointer`, compared with Locus' in-memory storage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.delta import CheckpointMetadata, DeltaCheckpoint, DeltaCheckpointer, InMemoryDeltaStorage

from locus_mysql import MySQLCheckpointSaver
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.integrations.locus.deltas import MySQLDeltaStorage

from ...conftest import MakeConfig
from ..conftest import Opened

OpenStorage = Callable[..., MySQLDeltaStorage]


@pytest.fixture
def open_storage(opened: Opened) -> OpenStorage:
    return partial(opened, MySQLDeltaStorage)


def grown(turns: int) -> list[AgentState]:
    states = [AgentState(agent_id="a")]
    for turn in range(turns):
        states.append(states[-1].with_message(Message.user(f"turn {turn} " * 40)))
    return states


async def test_a_delta_checkpointer_of_another_process_loads_every_state(
    open_storage: OpenStorage, driver: str
) -> None:
    states = grown(14)  # with full checkpoints between the deltas
    saving = DeltaCheckpointer(open_storage(driver=driver))
    ids = [await saving.save(state, "thread") for state in states]
    loading = DeltaCheckpointer(open_storage(driver=driver))
    for checkpoint_id, state in zip(ids, states, strict=True):
        assert await loading.load("thread", checkpoint_id) == state
    assert await DeltaCheckpointer(open_storage(driver=driver)).load("thread") == states[-1]
    assert await loading.list_checkpoints("thread", 100) == ids[::-1]
    stats = await loading.get_storage_stats("thread")
    assert (stats["full_checkpoints"], stats["delta_checkpoints"]) == (3, 12)


async def test_the_delta_storage_answers_like_locus_storage_in_memory(open_storage: OpenStorage) -> None:
    storages = (open_storage(), InMemoryDeltaStorage())
    answers = []
    made = [
        DeltaCheckpoint(CheckpointMetadata(f"c{number}", "t", None, number == 0, number, size_bytes=9), bytes([number]))
        for number in range(3)
    ]
    for storage in storages:
        results: list[object] = [await storage.retrieve("t", "c0"), await storage.list_checkpoints("t")]
        results.append(await storage.delete("t"))
        for checkpoint in made:
            await storage.store("t", checkpoint.metadata.checkpoint_id, checkpoint)
        await storage.store("t", "c1", DeltaCheckpoint(made[1].metadata, b"other", is_delta=False))
        results += [await storage.retrieve("t", f"c{number}") for number in range(4)]
        results += [await storage.list_checkpoints("t"), await storage.list_checkpoints("t", limit=2)]
        results += [
            await storage.delete("t", "c1"),
            await storage.delete("t", "c1"),
            await storage.list_checkpoints("t"),
        ]
        results += [await storage.delete("t"), await storage.delete("t"), await storage.list_checkpoints("t")]
        answers.append(results)
    assert answers[0] == answers[1]


async def test_checkpoints_of_another_class_in_the_namespace_are_refused(
    open_storage: OpenStorage, make_config: MakeConfig
) -> None:
    async with MySQLCheckpointSaver(make_config()) as saver:
        await saver.put(thread_id="t", checkpoint_id="c", checkpoint_data={"a": 1}, checkpoint_ns="locus-delta")
    with pytest.raises(CorruptCheckpoint, match="another store"):
        await open_storage().retrieve("t", "c")
