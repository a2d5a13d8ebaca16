"""Measured states resemble those of real agents."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from bench import states, workloads
from bench.agents import LARGE_OUTPUT_CHARS, Assistant
from bench.states import agent_state, compacted_states


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(states, "CACHE", tmp_path / "states")
    return tmp_path / "states"


async def test_a_state_has_the_wanted_messages_and_a_system_message() -> None:
    state = await agent_state(100)

    roles = [message.role.value for message in state.messages]
    assert len(roles) == 101
    assert roles[0] == "system"
    assert roles[1:11] == ["user", "assistant", *["user", "assistant", "tool", "assistant"] * 2]


def test_a_state_from_the_cache_is_the_one_that_was_made(empty_cache: Path) -> None:
    made = asyncio.run(agent_state(10))
    assert len(list(empty_cache.iterdir())) == 1

    assert asyncio.run(agent_state(10)) == made


async def test_another_seed_makes_another_conversation() -> None:
    assert (await agent_state(10)).messages != (await agent_state(10, seed=2)).messages


async def test_large_tool_outputs_are_kept_whole() -> None:
    state = await agent_state(10, large_outputs=True)

    outputs = [message.content or "" for message in state.messages if message.role.value == "tool"]
    assert [len(output) for output in outputs] == [LARGE_OUTPUT_CHARS] * 2


async def test_locus_compacts_the_history_every_50_turns() -> None:
    lengths = [len(state.messages) for state in await compacted_states(1, 110)]

    shrunk = [turn for turn, (before, after) in enumerate(pairwise(lengths), 2) if after < before]
    assert shrunk == [53, 103]


async def test_questions_and_answers_of_one_seed_are_the_same_every_time() -> None:
    first, second = Assistant(), Assistant()

    assert [first.question() for _ in range(4)] == [second.question() for _ in range(4)]


async def test_a_workload_begins_anew_before_it_has_become_another_size() -> None:
    workload = await workloads.of_size(10)

    passes = list(workload.passes(7))

    assert sum(measured for _, _, measured in passes) == 7
    assert {number for number, _, _ in passes} == {0, 1, 2}
    assert max(len(state.messages) for _, state, _ in passes) <= 14
    for (number, before, _), (next_number, after, _) in pairwise(passes):
        if number == next_number:
            assert after.messages[:-1] == before.messages
