"""Branches, turns and usage of sessions: shared rows, concurrent processes, and lost answers, on every driver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from agents.usage import Usage

from locus_mysql.inspection import Inspector
from locus_mysql.integrations.openai_agents import OpenAISession

from ...conftest import MakeConfig
from ...proxy import WireProxy
from .conftest import MakeBranching

pytestmark = pytest.mark.kept_tables("transcripts")

Stored = Callable[[], int]


def said(*texts: object) -> Any:
    return [{"role": "user", "content": str(text)} for text in texts]


def texts(items: Any) -> list[str]:
    return [item["content"] for item in items]


def used(tokens: int) -> Any:
    usage = Usage(requests=1, input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    return SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage))


@pytest.fixture
def stored(run_sql: Callable[..., Any], database: str) -> Callable[[], int]:
    """``stored()`` returns the number of items of the session in the tables."""

    def count() -> int:
        ((number,),) = run_sql(f"SELECT COUNT(*) FROM `{database}`.locus_transcript_items WHERE item_id IS NULL")
        return int(number)

    return count


async def test_an_agent_continues_a_branch_in_another_process(make_branching: MakeBranching) -> None:
    model = ScriptedModel([[assistant_message(text)] for text in ("Paris.", "Rome.", "Oslo.")])
    agent, quiet = Agent(name="guide", model=model), RunConfig(tracing_disabled=True)
    first = make_branching()
    for question in ("Capital of France?", "Of Italy?"):
        await first.store_run_usage(await Runner.run(agent, question, session=first, run_config=quiet))
    await first.create_branch_from_turn(2, "north")
    second = make_branching()
    assert second.current_branch == "main"
    assert len(await second.get_items()) == 4
    await Runner.run(agent, "Of Norway?", session=first, run_config=quiet)
    await second.switch_to_branch("north")
    turns = await second.get_conversation_turns()
    assert [turn["content"] for turn in turns] == ["Capital of France?", "Of Norway?"]
    assert [turn["turn"] for turn in await second.find_turns_by_content("norw")] == [2]
    assert (await second.get_session_usage() or {})["total_turns"] == 2
    assert [(one["branch_id"], one["message_count"]) for one in await second.list_branches()] == [
        ("main", 4), ("north", 4),
    ]  # fmt: skip


async def test_the_inspector_shows_each_branch_as_a_conversation_and_no_usage(
    make_branching: MakeBranching, make_config: MakeConfig
) -> None:
    session = make_branching()
    await session.add_items(said("one", "two", "three"))
    await session.store_run_usage(used(1))
    await session.create_branch_from_turn(2, "north/1")
    await session.add_items(said("four"))
    await session.switch_to_branch("main")
    await session.add_items(said("five"))
    shown = {}
    async with Inspector(make_config()) as inspector:
        (thread,) = (await inspector.threads("transcripts")).items
        main, north = [row.checkpoint_id for row in (await inspector.history("transcripts", thread.thread_id)).items]
        assert (thread.checkpoint_id, north) == (main, f"{main}/north/1")
        for one in (None, main, north):
            view = await inspector.state("transcripts", thread.thread_id, one)
            assert view is not None
            assert view.checkpoint.checkpoint_id == (one or main)
            shown[one] = [message.text for message in view.messages]
        assert await inspector.state("transcripts", thread.thread_id, f"{main}/south") is None
    assert shown == {None: shown[main], main: ["one", "two", "three", "five"], north: ["one", "four"]}


async def test_a_branch_shares_the_rows_of_its_parent(
    make_branching: MakeBranching, make_config: MakeConfig, stored: Stored
) -> None:
    session = make_branching()
    await session.add_items(said(*range(100)))
    await session.create_branch_from_turn(91, "b")
    assert stored() == 100
    await session.add_items(said("new"))
    assert stored() == 101
    assert texts(await session.get_items(limit=3)) == ["88", "89", "new"]
    plain = OpenAISession("customer-7", make_config())
    await plain.add_items(said(100))
    assert texts(await plain.get_items(limit=2)) == ["99", "100"]
    assert await plain.pop_item() == said(100)[0]
    for number in range(99, 84, -1):
        assert await plain.pop_item() == said(number)[0]
    assert stored() == 91  # 85 to 89 are those of the branch, too
    await plain.close()
    assert texts(await session.get_items(limit=3)) == ["88", "89", "new"]
    await session.delete_branch("b", force=True)
    assert stored() == 85
    assert texts(await session.get_items(limit=1)) == ["84"]
    with pytest.raises(ValueError, match="already been used"):
        await session.create_branch_from_turn(2, "b")


async def test_concurrent_writers_of_branches_lose_and_repeat_nothing(make_branching: MakeBranching) -> None:
    sessions = [make_branching() for _ in range(4)]
    await sessions[0].add_items(said("a", "b"))
    await sessions[0].create_branch_from_turn(2, "side")
    await sessions[1].switch_to_branch("side")
    await asyncio.gather(
        *(
            session.add_items(said(f"{writer}/{number}"))
            for writer, session in enumerate(sessions)
            for number in range(6)
        )
    )
    side, main = texts(await sessions[1].get_items()), texts(await sessions[2].get_items())
    assert side[0] == "a"
    assert main[:2] == ["a", "b"]
    for writers, found in (((0, 1), side[1:]), ((2, 3), main[2:])):
        assert sorted(found) == sorted(f"{writer}/{number}" for writer in writers for number in range(6))
        for writer in writers:  # each in the order of its calls
            assert [text for text in found if text.startswith(f"{writer}/")] == [f"{writer}/{n}" for n in range(6)]
    popped = await asyncio.gather(*(session.pop_item() for session in sessions for _ in range(3)))
    assert len({item["content"] for item in popped if item is not None}) == 12


async def test_one_of_several_processes_creates_a_branch_of_a_name(make_branching: MakeBranching) -> None:
    sessions = [make_branching() for _ in range(4)]
    await sessions[0].add_items(said("a", "b"))
    made = await asyncio.gather(
        *(session.create_branch_from_turn(2, "one") for session in sessions), return_exceptions=True
    )
    assert sorted(map(str, made)).count("one") == 1
    assert sum(isinstance(one, ValueError) for one in made) == 3
    unnamed = await asyncio.gather(*(session.create_branch_from_turn(1) for session in sessions))
    assert len(set(unnamed)) == 4


async def test_usage_counts_while_its_turn_is_there(make_branching: MakeBranching, make_config: MakeConfig) -> None:
    session = make_branching()
    await session.store_run_usage(used(1))  # no turn yet
    assert await session.get_session_usage() is None
    await session.add_items(said("a"))
    await session.store_run_usage(used(2))
    await session.store_run_usage(used(3))  # replaces
    await session.add_items([*said("b"), {"role": "assistant", "content": "B"}])
    await session.store_run_usage(used(4))
    assert [one["input_tokens"] for one in await session.get_turn_usage()] == [3, 4]
    await session.create_branch_from_turn(2, "side")
    await session.store_run_usage(used(5))  # of the turn that both branches have
    assert (await session.get_turn_usage(1))["input_tokens"] == 5  # type: ignore[call-overload]
    assert (await session.get_session_usage() or {})["input_tokens"] == 12
    assert (await session.get_session_usage("main") or {})["input_tokens"] == 7
    await session.switch_to_branch("main")
    await session.pop_item()
    assert len(await session.get_turn_usage()) == 2
    await session.pop_item()
    assert [one["user_turn_number"] for one in await session.get_turn_usage()] == [1]
    assert (await session.get_session_usage() or {})["input_tokens"] == 8
    plain = OpenAISession("customer-7", make_config())
    await plain.clear_session()
    await plain.add_items(said("again"))  # its seq is that of "a"
    await plain.close()
    assert await session.get_session_usage() is None
    assert await session.get_turn_usage() == []
    assert session.current_branch == "main"


async def test_an_error_while_usage_is_stored_does_not_fail_the_run(
    make_branching: MakeBranching, proxy: WireProxy, caplog: pytest.LogCaptureFixture
) -> None:
    session = make_branching(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", retry_deadline_s=0)
    await session.add_items(said("a"))
    proxy.drop_after_send(1)
    await session.store_run_usage(used(1))
    assert "usage of a run was not stored" in caplog.text


async def test_the_last_20_of_a_branch_are_found_behind_thousands_of_others(
    make_branching: MakeBranching,
) -> None:
    session = make_branching()
    await session.add_items(said(*range(30)))
    await session.create_branch_from_turn(26, "side")
    await session.add_items(said("tail"))
    other = make_branching()
    for start in range(0, 4_000, 1_000):
        await other.add_items(said(*range(start, start + 1_000)))
    found = texts(await session.get_items(limit=20))
    assert found == [*map(str, range(6, 25)), "tail"]
    assert len(await other.get_items()) == 4_030
