"""The storage backend: one current state for each id, by itself and under Locus' own adapter."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.adapters import StorageBackendAdapter

from .conftest import ALL_SIDES, Make, RunSQL, side_name
from .test_store import conversation


@pytest.mark.parametrize("side", ALL_SIDES, ids=side_name)
async def test_there_is_one_current_state_for_each_id(backend: Any, make_backend: Make) -> None:
    for turn in range(1, 15):
        await backend.save("t", conversation(turn), metadata={"turn": turn})
        assert await backend.load("t") == conversation(turn)
    other = make_backend()
    assert await other.load("t") == conversation(14)
    assert (await other.get_metadata("t"))["metadata"] == {"turn": 14}
    assert await other.exists("t")
    assert await other.query_by_metadata("turn", 13) == []
    assert await other.delete("t") is True
    assert await backend.load("t") is None
    assert await backend.delete("t") is False


async def test_metadata_queries_bring_the_states_along(backend: Any) -> None:
    for number in range(6):
        await backend.save(f"t{number}", conversation(number + 1), metadata={"even": number % 2 == 0})
    found = await backend.query_by_metadata("even", True)
    assert [one["thread_id"] for one in found] == ["t4", "t2", "t0"]
    assert [one["data"] for one in found] == [conversation(5), conversation(3), conversation(1)]
    assert len(await backend.query_by_metadata("even", False, 2)) == 2


async def test_ids_are_listed_by_pattern_first(backend: Any) -> None:
    for name in ("a1", "a2", "b1"):
        await backend.save(name, {})
    assert await backend.list_threads("a*") == ["a2", "a1"]
    assert await backend.list_threads("*", 2) == ["b1", "a2"]
    assert await backend.list_threads(pattern="*", limit=2, offset=1) == ["a2", "a1"]
    assert await backend.count("?1") == 2


async def test_the_other_operations_work_on_current_states(backend: Any) -> None:
    await backend.save("t", {"messages": ["apple"], "user": "Ann"}, metadata={"a": 1})
    assert await backend.copy_thread("t", "u")
    assert {hit["thread_id"] for hit in await backend.search("apple")} == {"t", "u"}
    assert {one["thread_id"] for one in await backend.search_data("user", "Ann")} == {"t", "u"}
    assert [info["thread_id"] for info in await backend.list_with_metadata()] == ["u", "t"]
    assert await backend.vacuum(0) == 2


async def test_overwriting_leaves_nothing_behind(backend: Any, sql: RunSQL) -> None:
    for turn in range(60):
        await backend.save("counter", {"n": turn, "note": f"note {turn}"})
    ((rows, size),) = sql("SELECT COUNT(*), SUM(LENGTH(payload)) FROM locus_state_checkpoints")
    assert rows <= 3
    assert size < 400


@pytest.mark.parametrize("side", [side for side in ALL_SIDES if side[1]], ids=side_name)
async def test_locus_adapter_makes_a_checkpointer_of_it(make_backend: Make) -> None:
    adapter = StorageBackendAdapter(make_backend().wrapped)
    assert all(dataclasses.asdict(adapter.capabilities).values())
    state = AgentState(run_id="r")
    ids = []
    for turn in range(5):
        state = state.with_message(Message.user(f"pineapple {turn}"))
        ids.append(await adapter.save(state, "thread", metadata={"turn": turn}))
    loaded = await adapter.load("thread")
    assert [message.content for message in loaded.messages] == [f"pineapple {turn}" for turn in range(5)]
    assert await adapter.list_checkpoints("thread") == ids[::-1]
    first = await adapter.load("thread", ids[0])
    assert len(first.messages) == 1
    assert await adapter.exists("thread", ids[2])
    assert "thread" in {str(one).split(":")[0] for one in await adapter.list_threads()}
    assert await adapter.search("pineapple")
    assert await adapter.delete("thread", ids[0])
    assert await adapter.load("thread", ids[0]) is None
    assert await adapter.delete("thread")
    assert await adapter.load("thread") is None
