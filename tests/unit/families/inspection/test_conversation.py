"""Conversations are recognised in states of every framework."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict
from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.core.state import AgentState, ToolExecution

from locus_mysql.families.inspection.conversation import messages_of, path_of_messages, shown_with_calls
from tests.growth import assert_linear, steps_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)

#: The keys that have a meaning in messages, each with any value.
FIELDS = (
    *("role", "type", "content", "parts", "tool_calls", "tool_call_id", "id", "kwargs", "data", "name", "function"),
    *("arguments", "args", "metadata", "locus_at", "timestamp", "additional_kwargs", "function_call", "tool_use_id"),
    *("is_error", "status", "text", "refusal", "error", "result", "malformed_arguments", "invalid_tool_calls"),
)
WORDS = st.sampled_from(
    ["tool", "user", "ai", "constructor", "tool_use", "tool_result", "text", "x", "2026-01-01T00:00:00+00:00", "{"]
)
MESSAGE_LIKE = st.recursive(
    WORDS | JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=25,
)


def conversation() -> list[Any]:
    """Return LangChain messages: a question, a tool call, and two tool results, one of them an error."""
    calls = [{"name": "weather", "args": {"city": "Oslo"}, "id": "a"}, {"name": "weather", "args": {}, "id": "b"}]
    return [
        SystemMessage("Be brief."),
        HumanMessage("How is the weather?"),
        AIMessage(content=[{"type": "text", "text": "I look."}], tool_calls=calls),
        ToolMessage("Rain.", tool_call_id="a"),
        ToolMessage("no city", tool_call_id="b", status="error"),
    ]


@pytest.mark.parametrize("dump", [dumpd, lambda one: messages_to_dict([one])[0], lambda one: one.model_dump()])
def test_langchains_messages_are_recognised_in_each_form_in_which_they_are_dumped(dump: Any) -> None:
    found = messages_of({"messages": [json.loads(json.dumps(dump(one))) for one in conversation()]})
    assert [message.role for message in found] == ["system", "user", "assistant", "tool", "tool"]
    assert [message.text for message in found] == ["Be brief.", "How is the weather?", "I look.", "Rain.", "no city"]
    first, second = found[2].tool_calls
    assert (first.call_id, first.name, first.arguments, first.result, first.error) == (
        *("a", "weather", {"city": "Oslo"}, "Rain.", None),
    )
    assert (second.result, second.error) == (None, "no city")


def test_a_graphs_channel_of_messages_is_found_in_a_checkpoint() -> None:
    state = {"v": 1, "channel_values": {"messages": [{"type": "human", "content": "hi"}]}}
    assert path_of_messages(state) == ("channel_values", "messages")
    assert [(message.role, message.text) for message in messages_of(state)] == [("user", "hi")]


def test_a_locus_state_is_recognised_with_its_tool_results() -> None:
    calls = [ToolCall(id="1", name="add", arguments={"a": 1}), ToolCall(id="2", name="fail", arguments={})]
    state = AgentState(
        agent_id="a",
        messages=(
            Message.user("add it").model_copy(update={"metadata": {"locus_at": "2026-01-02T03:12:00+00:00"}}),
            Message.assistant(None, calls),
            Message.tool(ToolResult(tool_call_id="1", name="add", content="3")),
            Message.tool(ToolResult(tool_call_id="2", name="fail", content="", error="broken")),
        ),
        tool_executions=(
            ToolExecution(tool_name="add", tool_call_id="1", arguments={"a": 1}, result="3"),
            ToolExecution(tool_name="fail", tool_call_id="2", arguments={}, error="broken"),
        ),
    ).to_checkpoint()
    found = messages_of(state)
    assert [message.role for message in found] == [role.value for role in (Role.USER, Role.ASSISTANT, *[Role.TOOL] * 2)]
    assert found[0].at == datetime(2026, 1, 2, 3, 12, tzinfo=UTC)
    assert [(call.arguments, call.result, call.error) for call in found[1].tool_calls] == [
        ({"a": 1}, "3", None),
        ({}, None, "broken"),
    ]
    assert [message.raw for message in found] == state["messages"]


def test_openais_messages_are_recognised_their_arguments_being_text() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    found = messages_of(
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}],
                },
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "3"},
                {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{broken"}},
                {"role": "function", "name": "old", "content": "done"},
            ]
        }
    )
    assert found[0].text == "Look:\n[image_url]"
    (add,), (old,) = found[1].tool_calls, found[3].tool_calls
    assert (add.name, add.arguments, add.result) == ("add", {"a": 1}, "3")
    assert (old.call_id, old.name, old.arguments, old.result) == (None, "old", "{broken", "done")


def test_calls_and_outputs_among_openais_items_are_joined() -> None:
    found = messages_of(
        {
            "messages": [
                {"role": "user", "content": "Add."},
                {"type": "function_call", "id": "fc", "call_id": "c", "name": "add", "arguments": '{"a": 1}'},
                {"type": "function_call_output", "call_id": "c", "output": "3"},
            ]
        }
    )
    (call,) = found[1].tool_calls
    assert [one.role for one in found] == ["user", "assistant", "tool"]
    assert (call.call_id, call.name, call.arguments, call.result) == ("c", "add", {"a": 1}, "3")
    assert shown_with_calls(found) == {2}


def test_openais_hosted_tools_are_calls_with_their_own_results() -> None:
    found = messages_of(
        {
            "messages": [
                {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "Oslo"}},
                {"type": "mcp_call", "id": "m", "server_label": "s", "name": "add", "arguments": "{}", "output": "3"},
                {"type": "mcp_call", "id": "f", "name": "add", "arguments": "{}", "error": "no number"},
                {
                    "type": "code_interpreter_call",
                    "id": "i",
                    "code": "a",
                    "outputs": [{"type": "logs", "logs": "1"}],
                },
                {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}},
                {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "a"}]},
                {"role": "user", "content": "Thanks."},
            ]
        }
    )
    calls = [(call.name, call.arguments, call.result, call.error) for one in found for call in one.tool_calls]
    assert calls == [
        ("web_search", {"type": "search", "query": "Oslo"}, None, None),
        ("add", {}, "3", None),
        ("add", {}, None, "no number"),
        ("code_interpreter", "a", '[{"type": "logs", "logs": "1"}]', None),
        ("shell", {"commands": ["ls"]}, '[{"stdout": "a"}]', None),
    ]
    assert shown_with_calls(found) == {5}


def test_code_that_gemini_runs_is_a_call_with_its_result() -> None:
    parts = [
        {"executableCode": {"code": "1/0"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "division by zero"}},
    ]
    found = messages_of({"messages": [{"role": "model", "parts": [one]} for one in parts]})
    (call,) = found[0].tool_calls
    assert (call.name, call.arguments, call.error) == ("code", {"code": "1/0"}, "division by zero")


def test_anthropics_blocks_are_calls_and_results() -> None:
    found = messages_of(
        {
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "text", "text": "no"}],
                            "is_error": True,
                        }
                    ],
                },
            ]
        }
    )
    (call,) = found[0].tool_calls
    assert (call.call_id, call.name, call.arguments, call.result, call.error) == ("t", "f", {"x": 1}, None, "no")


@pytest.mark.parametrize("state", [{}, {"messages": []}, {"messages": "x"}, {"messages": [1, 2]}, {"history": {}}])
def test_a_state_without_a_conversation_has_no_messages(state: dict[str, Any]) -> None:
    assert list(messages_of(state)) == []


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00+14:00", "nonsense", 5, 10**400, float("nan"), True, {}])
def test_an_invalid_timestamp_is_none(stamp: Any) -> None:
    (message,) = messages_of({"messages": [{"role": "user", "content": "hi", "timestamp": stamp}]})
    assert message.at is None


@example([{"role": "tool", "content": [{"role": [], "type": []}]}], [])  # values that cannot be in a set
@given(st.lists(MESSAGE_LIKE, max_size=6), MESSAGE_LIKE | st.lists(MESSAGE_LIKE, max_size=4))
def test_nothing_of_a_conversation_is_hidden(messages: list[Any], executions: Any) -> None:
    state = {"messages": [{"role": "user", "content": "hi"}, *messages], "tool_executions": executions}
    assert [message.raw for message in messages_of(state)] == state["messages"]


def calling(name: str, count: int = 1) -> dict[str, Any]:
    """Return a message that calls a tool without an id."""
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": "{}"}}] * count}


def answering(text: str, name: str | None = None, status: str = "success") -> dict[str, Any]:
    """Return the result of such a call."""
    return {"role": "tool", "content": text, "status": status, **({"name": name} if name else {})}


def test_calls_without_ids_are_answered_once_each_by_name_the_last_one_first() -> None:
    found = messages_of(
        {
            "messages": [
                *(calling("a"), calling("b"), calling("a"), answering("1", "a"), answering("2"), answering("3", "a")),
                *(answering("too many", "a"), calling("b"), calling("b"), answering("no", "b", "error")),
                *(answering("4", "b"), answering("5", "c")),
            ]
        }
    )
    calls = [(call.name, call.result, call.error) for message in found for call in message.tool_calls]
    assert calls == [("a", "3", None), ("b", "2", None), ("a", "1", None), ("b", "4", None), ("b", None, "no")]


CONVERSATIONS = {
    "answers before further calls": lambda n: [calling("a", n), *[answering("x", "a")] * n],
    "answers of other tools": lambda n: [*[calling("a")] * n, *[answering("x", "b")] * n],
    "calls that fail": lambda n: [*[calling("a")] * n, *[answering("x", "a", "error")] * n],
    "answers without a name": lambda n: [*[calling(str(i)) for i in range(n)], *[answering("x")] * n],
    "two names": lambda n: [*[calling("a"), calling("b")] * n, *[answering("x", "a")] * n, *[answering("y")] * n],
    "blocks": lambda n: [{"role": "user", "content": [{"type": "tool_result", "content": "x"}] * n}, calling("a", n)],
    "ids again and again": lambda n: [{"role": "tool", "tool_call_id": "1", "content": "x"}] * n,
}


@pytest.mark.parametrize("made", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_reading_a_conversation_takes_time_linear_in_its_messages(made: Any) -> None:
    assert_linear(lambda size: steps_of(lambda: shown_with_calls(messages_of({"messages": made(size)}))), 100)


def test_calls_and_results_in_bedrocks_form_are_joined() -> None:
    messages = [
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "1", "name": "weather", "input": {"city": "Delft"}}}],
        },
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "2", "name": "weather", "input": {}}}]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"json": {"rain": True}}]}},
                {"toolResult": {"toolUseId": "2", "status": "error", "content": [{"text": "No city"}]}},
            ],
        },
    ]
    first, second, results = messages_of({"messages": messages})
    assert [(one.name, one.arguments, one.result) for one in first.tool_calls] == [
        ("weather", {"city": "Delft"}, '{"rain": true}')
    ]
    assert [one.error for one in second.tool_calls] == ["No city"]
    assert (results.role, results.text) == ("user", "")
    assert shown_with_calls([first, second, results]) == {2}
    assert shown_with_calls([first, results]) == frozenset()
