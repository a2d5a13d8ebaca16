"""The session of the OpenAI Agents SDK: its contract on every driver, with real runs of agents on a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.memory import SessionSettings, SQLiteSession
from agents.testing import ScriptedModel, assistant_message, function_call

from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.openai_agents import OpenAISession

from .conftest import MakeSession

pytestmark = pytest.mark.kept_tables("transcripts")


def said(*texts: object) -> Any:
    return [{"role": "user", "content": text} for text in texts]


async def test_an_agent_goes_on_with_the_session_of_another_process(make_session: MakeSession) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"Rain in {city}"

    model = ScriptedModel(
        script := [
            [function_call("weather", {"city": "Delft"}, call_id="call-1")],
            [assistant_message("It rains in Delft.")],
            [assistant_message("In Delft.")],
        ]
    )
    agent = Agent(name="assistant", model=model, tools=[weather])
    first = await Runner.run(agent, "What is the weather in Delft?", session=make_session())
    assert first.final_output == "It rains in Delft."
    second = await Runner.run(agent, "Where does it rain?", session=make_session())
    assert second.final_output == "In Delft."
    sent: Any = model.calls[-1].input
    assert [one.get("role") or one["type"] for one in sent] == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
    ]
    agent = Agent(name="assistant", model=ScriptedModel(script), tools=[weather])
    reference = SQLiteSession("customer-7")
    await Runner.run(agent, "What is the weather in Delft?", session=reference)
    await Runner.run(agent, "Where does it rain?", session=reference)
    mine, theirs = await make_session().get_items(), await reference.get_items()
    assert mine == theirs
    reference.close()


async def test_a_streamed_run_and_a_limited_one_use_the_session(make_session: MakeSession) -> None:
    session = make_session()
    model = ScriptedModel([[assistant_message(text)] for text in ("One.", "Two.", "Three.")])
    agent = Agent(name="assistant", model=model)
    streamed = Runner.run_streamed(agent, "1", session=session)
    async for _ in streamed.stream_events():
        pass
    await Runner.run(agent, "2", session=session)
    limited = RunConfig(session_settings=SessionSettings(limit=2))
    await Runner.run(agent, "3", session=session, run_config=limited)
    assert len(model.calls[-1].input) == 3
    assert [one.get("content") for one in await session.get_items()][::2] == ["1", "2", "3"]


async def test_items_come_back_as_from_the_session_in_sqlite(make_session: MakeSession) -> None:
    session, reference = make_session(), SQLiteSession("s")
    items: list[Any] = [
        {"role": "user", "content": "é\0'; DROP TABLE x; -- \\ \U0001f600 \ud800 %s"},
        {"type": "function_call", "arguments": '{"a": 1}', "z": 1, "a": (1, 2.5, True, None)},
        {"type": "reasoning", "summary": [], "n": 10**30, "tiny": 5e-324, "nan": float("inf"), 7: "seven"},
        {},
        {"role": "user", "content": "x" * 300_000},
    ]
    for one in (session, reference):
        await one.add_items(items)
        await one.add_items([])
    mine, theirs = await session.get_items(), await reference.get_items()
    assert mine == theirs
    assert [list(one) for one in mine] == [list(one) for one in theirs]
    for expected in reversed(theirs):
        assert await session.pop_item() == expected
    assert await session.pop_item() is None
    assert await session.get_items() == []
    reference.close()


async def test_items_that_are_no_json_are_refused_and_nothing_is_written(make_session: MakeSession) -> None:
    session = make_session()
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for bad in ({"content": object()}, {"content": {1, 2}}, loop):
        refused: Any = [*said("good"), bad]
        with pytest.raises(InvalidInput, match="Nothing was written"):
            await session.add_items(refused)
    assert await session.get_items() == []
    for session_id in ("", "\0", "x" * 801, "\ud800"):
        with pytest.raises(InvalidInput):
            make_session(session_id)


async def test_each_item_is_popped_once_beside_other_writers(make_session: MakeSession) -> None:
    sessions = [make_session() for _ in range(3)]
    await sessions[0].add_items(said(*range(12)))

    async def pop(session: OpenAISession) -> list[Any]:
        return [await session.pop_item() for _ in range(6)]

    async def add(session: OpenAISession) -> None:
        for number in range(12, 18):
            await session.add_items(said(number))

    *popped, _ = await asyncio.gather(pop(sessions[0]), pop(sessions[1]), add(sessions[2]))
    seen = [one["content"] for some in popped for one in some if one is not None]
    left: list[Any] = [one["content"] for one in await sessions[0].get_items()]  # type: ignore[typeddict-item]
    assert sorted([*seen, *left]) == list(range(18))


async def test_a_cancelled_write_ends_before_the_cancellation_is_raised(make_session: MakeSession) -> None:
    session = make_session()
    await session.add_items(said(1))
    for number in range(2, 8):
        call = asyncio.create_task(session.add_items(said(number)))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert await session.get_items() == said(*range(1, 8))


async def test_an_item_that_cannot_be_stored_behind_ten_thousand_others_leaves_none(make_session: MakeSession) -> None:
    session = make_session()
    deep: Any = {}
    for _ in range(300):
        deep = {"deep": deep}
    with pytest.raises(InvalidInput):
        await session.add_items([*said(*range(10_000)), deep])
    assert await session.get_items() == []
