"""What checkpoints changed, in a few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_mysql.families.inspection.conversation import messages_of
from locus_mysql.families.inspection.records import CheckpointRow, Message, StateView, Turn
from locus_mysql.families.inspection.turns import NOTE_CHARACTERS, changes_of, first_saved, note_of
from locus_mysql.records.log_digests import HashedLog, Log
from locus_mysql.runtime.exact_json import encode_json


def message(**fields: Any) -> Message:
    return messages_of({"messages": [fields]})[0]


ANSWER = message(role="assistant", content="It is\n on its way.")
CALL = message(role="assistant", content="", tool_calls=[{"id": "1", "name": "find", "arguments": {}}])


@pytest.mark.parametrize(
    ("added", "last", "changes", "note"),
    [
        (1, ANSWER, [], "assistant: It is on its way."),
        (2, CALL, [], "+2 messages \u00b7 calls find"),
        (3, None, [], "+3 messages"),
        (1, None, ["approved true"], "+1 message \u00b7 approved true"),
        (0, None, ["a 1", "b 2", "c 3", "d 4", "e 5"], "a 1 \u00b7 b 2 \u00b7 c 3 \u00b7 2 more"),
        (0, None, [], ""),
    ],
)
def test_a_note_names_messages_then_fields(added: int, last: Message | None, changes: list[str], note: str) -> None:
    assert note_of(added, last, changes) == note


def test_changed_fields_are_named_with_short_values() -> None:
    before = {"a": 1, "b": "x", "gone": 1, "same": True, "items": []}
    after = {"a": 2, "b": "long " * 20, "new": {"k": 1}, "same": True, "items": [1], "updated_at": "now", "hidden": 3}
    changes = changes_of(before, after, frozenset({"hidden"}))
    assert changes == ["a 2", "b long long long long lon\u2026", "new", "no gone"]
    assert changes_of(None, after) == []


def test_a_note_is_short_whatever_was_saved() -> None:
    last = message(role="x" * 1_000, content="y" * 100_000)
    assert len(note_of(10**9, last, ["z" * 1_000] * 50)) <= NOTE_CHARACTERS


AT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def messages(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def moment(minute: int) -> datetime:
    return AT + timedelta(minutes=minute)


def turn(minute: int, messages: list[Any], after: int | None = None) -> Turn:
    """Return the checkpoint of a minute, whose parent is that of another minute."""
    parent = None if after is None else f"c{after}"
    mark = HashedLog(Log("", 0, encode_json(messages)[1:-1], len(messages))).mark
    return Turn(f"c{minute}", moment(minute), None, None, None, parent, after is None, {"messages": mark})


def view(minute: int, messages: list[Any], state: dict[str, Any] | None = None) -> StateView:
    checkpoint = CheckpointRow("", f"c{minute}", None, moment(minute), 1, {})
    return StateView("agents", "t", checkpoint, (), {"messages": messages} if state is None else state)


def test_a_message_was_saved_with_the_first_checkpoint_that_has_it() -> None:
    turns = [turn(1, messages("a", "b")), turn(2, messages("a", "b"), 1), turn(5, messages("a", "b", "c"), 2)]

    assert first_saved(view(9, messages("a", "b", "c", "d")), turns) == {0: moment(1), 1: moment(1), 2: moment(5)}


def test_another_branch_dates_only_common_messages() -> None:
    turns = [turn(1, messages("a")), turn(2, messages("a", "other"), 1), turn(3, messages("a", "b"), 1)]

    assert first_saved(view(9, messages("a", "b")), turns) == {0: moment(1), 1: moment(3)}


def test_a_rewritten_conversation_does_not_date_its_messages() -> None:
    turns = [
        turn(1, messages("rules", "a", "b")),
        turn(2, messages("rules", "summary", "b"), 1),
        turn(3, messages("rules", "summary", "b", "c"), 2),
    ]

    assert first_saved(view(9, messages("rules", "summary", "b", "c")), turns) == {3: moment(3)}


def test_later_checkpoints_do_not_date_an_earlier_state() -> None:
    turns = [turn(1, messages("a")), turn(7, messages("a", "b"), 1)]

    assert first_saved(view(3, messages("a", "b")), turns) == {0: moment(1)}


def test_a_checkpoint_with_an_unknown_parent_does_not_date_its_messages() -> None:
    turns = [turn(2, messages("a"), 1), turn(3, messages("a", "b"), 2)]

    assert first_saved(view(3, messages("a", "b")), turns) == {1: moment(3)}


def test_states_without_messages_or_outside_json_have_no_times() -> None:
    turns = [turn(1, messages("a"))]

    assert first_saved(view(3, [], {"step": 1}), turns) == {}
    assert first_saved(view(3, [], {"channel_values": {"messages": messages("a")}}), turns) == {}
    assert first_saved(view(3, [*messages("a"), 10**5000]), turns) == {}
