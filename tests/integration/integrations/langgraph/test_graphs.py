"""Compiled graphs use the savers as LangGraph uses any checkpointer, by either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langgraph.types import Command

from ...conftest import EACH_WAY, ONE_OF_EACH
from .conftest import OpenSaver
from .graphs import Running, asking, chat, steps

pytestmark = pytest.mark.kept_tables("graphs")

each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)
durabilities = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


@pytest.fixture
def running(open_saver: OpenSaver) -> Callable[..., Running]:
    """Return ``running(builder, side)``: a graph on a new saver, like that of another process."""

    return lambda builder, side: Running(builder.compile(checkpointer=open_saver(side)))


def texts(state: Any) -> list[str]:
    values = state.values if hasattr(state, "values") and not callable(state.values) else state
    return [message.content for message in values["messages"]]


@each_way
@durabilities
async def test_a_conversation_goes_on_in_another_process(running: Any, side: str, durability: str) -> None:
    expected: list[str] = []
    for turn in range(12):
        graph = running(chat(), side)
        question = f"turn {turn} " * 40
        expected += [question, f"You said: {question}"]
        assert texts(await graph({"messages": [HumanMessage(question)]}, durability=durability)) == expected
    state = await running(chat(), side).state()
    assert texts(state) == expected
    assert state.values["count"] == 12
    assert state.next == ()


@each_way
@durabilities
async def test_a_graph_that_waits_for_a_person_is_resumed_in_another_process(
    running: Any, side: str, durability: str
) -> None:
    first = await running(asking(), side)({"messages": [HumanMessage("hello")]}, durability=durability)
    assert first["__interrupt__"][0].value == "What is your name?"
    state = await running(asking(), side).state()
    assert state.next == ("ask",)
    assert state.tasks[0].interrupts[0].value == "What is your name?"
    second = await running(asking(), side)(Command(resume="Ada"), durability=durability)
    assert second["__interrupt__"][0].value == "Ada, how old are you?"
    last = await running(asking(), side)(Command(resume=36), durability=durability)
    assert texts(last)[-1] == "Ada is 36"
    assert (await running(asking(), side).state()).next == ()


@each_way
async def test_a_task_that_failed_is_run_again_and_the_others_are_not(running: Any, side: str) -> None:
    runs: dict[str, int] = {"step2": 1}
    with pytest.raises(RuntimeError, match="step2"):
        await running(steps(4, runs), side)({"log": []})
    state = await running(steps(4, runs), side).state()
    assert state.next == ("step2",)
    assert "step2" in str(state.tasks[0].error)
    found = await running(steps(4, runs), side)(None)
    assert found["log"] == ["step0", "step1", "step2", "step3"]
    assert (runs["ran step0"], runs["ran step1"], runs["ran step2"]) == (1, 1, 2)


class ToolModel(GenericFakeChatModel):
    """A scripted model that supports tools."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


@one_of_each
async def test_an_agent_of_langchain_keeps_its_memory(open_saver: OpenSaver, side: str) -> None:
    from langchain.agents import create_agent

    asked: list[str] = []

    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"sunny in {city}"

    def agent(*answers: AIMessage) -> Running:
        model = ToolModel(messages=iter(answers))
        return Running(create_agent(model, tools=[weather], checkpointer=open_saver(side)))

    call = AIMessage("", tool_calls=[ToolCall(name="weather", args={"city": "Bern"}, id="1")])
    found = await agent(call, AIMessage("It is sunny."))({"messages": [HumanMessage("Weather in Bern?")]})
    assert asked == ["Bern"]
    assert [message.type for message in found["messages"]] == ["human", "ai", "tool", "ai"]
    again = await agent(AIMessage("As I said."))({"messages": [HumanMessage("Again?")]})
    assert texts(again) == ["Weather in Bern?", "", "sunny in Bern", "It is sunny.", "Again?", "As I said."]
    state = await agent().state()
    assert state.values["messages"] == again["messages"]
    assert state.values["messages"][1].tool_calls[0]["args"] == {"city": "Bern"}
