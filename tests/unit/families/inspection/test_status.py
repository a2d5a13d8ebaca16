"""The status of threads, by the forms in which libraries store interrupts, errors and conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locus_mysql.families.inspection.conversation import messages_of
from locus_mysql.families.inspection.records import PendingWrite, ThreadStatus
from locus_mysql.families.inspection.status import preview_of, question_of, status_of

USER = {"role": "user", "content": "Print the labels."}
ANSWER = {"role": "assistant", "content": "Done."}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "print", "arguments": {}}]}
RESULT = {"role": "tool", "content": "printed", "tool_call_id": "1"}
ASKED = {"role": "tool", "content": json.dumps({"__interrupt__": True, "question": "Which printer?"})}


def interrupt(value: Any) -> list[PendingWrite]:
    return [PendingWrite("task", "__interrupt__", value)]


def status(*messages: Any, writes: Any = (), **state: Any) -> ThreadStatus | None:
    whole = {"messages": list(messages), **state}
    return status_of(whole, messages_of(whole), writes)


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ([{"$type": "langgraph.types.Interrupt", "value": "Order 4 chairs?", "id": "1"}], "Order 4 chairs?"),
        ([{"value": {"question": "Order 4 chairs?", "price": 320}}], "Order 4 chairs?"),
        ([{"value": {"action_requests": [{"name": "order", "description": "Order?"}]}}], "Order?"),
        ([{"value": "First?"}, {"value": "Second?"}], "First?\nSecond?"),
        ([{"value": {"price": 320}}], '{"price": 320}'),
        ([{"value": None}], "null"),
        ("Order?", "Order?"),
    ],
)
def test_a_graph_with_an_interrupt_waits_for_its_question(value: Any, question: str) -> None:
    assert status(USER, ANSWER, writes=interrupt(value)) == ThreadStatus("waiting", question)


def test_a_failed_task_of_a_graph_is_shown_with_its_error() -> None:
    writes = [PendingWrite("task", "__error__", "ValueError('no paper')")]
    assert status(USER, writes=writes) == ThreadStatus("failed", "ValueError('no paper')")
    assert status(USER, writes=[*writes, *interrupt("Go on?")]) == ThreadStatus("waiting", "Go on?")


def test_a_graph_with_a_next_node_is_unfinished_and_one_without_is_done() -> None:
    metadata = {"source": "loop", "step": 3}
    state = {"messages": [USER], "branch:to:plan": None}
    assert status_of(state, messages_of(state), (), metadata) == ThreadStatus("unfinished", "plan")
    assert status_of({"__start__": {"a": 1}}, (), (), metadata) == ThreadStatus("unfinished")
    assert status_of({"messages": [USER]}, messages_of({"messages": [USER]}), (), metadata) == ThreadStatus("done")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER], ThreadStatus("unfinished")),
        ([USER, CALL], ThreadStatus("unfinished", "print")),
        ([USER, CALL, RESULT], ThreadStatus("unfinished")),
        ([USER, CALL, RESULT, ANSWER], ThreadStatus("done")),
        ([USER, CALL, ASKED], ThreadStatus("waiting", "Which printer?")),
        ([], None),
    ],
)
def test_an_agent_is_judged_by_its_last_message(messages: list[Any], expected: ThreadStatus | None) -> None:
    assert status(*messages) == expected


def test_an_agent_with_errors_has_failed_unless_it_answered_afterwards() -> None:
    assert status(USER, CALL, errors=["out of paper"]) == ThreadStatus("failed", "out of paper")
    assert status(USER, CALL, RESULT, ANSWER, errors=["out of paper"]) == ThreadStatus("done")


@pytest.mark.parametrize("value", [{"value": {"value": 1}}, [], {}, 3, "x" * 10_000, {"question": 1}])
def test_any_value_of_an_interrupt_is_a_text_of_limited_length(value: Any) -> None:
    assert isinstance(question_of(value), str)
    found = status(writes=interrupt(value))
    assert found is not None
    assert len(found.reason) <= 2_000


def test_a_preview_begins_with_the_user_and_ends_with_words_or_calls() -> None:
    state = {"messages": [{"role": "system", "content": "Be kind."}, USER, CALL, RESULT]}
    found = preview_of(messages_of(state), messages_of(state), state)
    assert found.first is not None
    assert found.last is not None
    assert found.first.text == "Print the labels."
    assert [call.name for call in found.last.tool_calls] == ["print"]
