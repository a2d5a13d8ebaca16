"""The time at which each message was first saved, from the checkpoints that contain it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from locus_mysql.families.inspection.records import CheckpointRow, StateView, Turn
from locus_mysql.families.inspection.turn_notes import first_saved, mark_of
from locus_mysql.records.log_digests import EMPTY

AT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def messages(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def moment(minute: int) -> datetime:
    return AT + timedelta(minutes=minute)


def turn(minute: int, messages: list[Any], after: int | None = None) -> Turn:
    """Return the checkpoint of a minute, whose parent is that of another minute."""
    parent = None if after is None else f"c{after}"
    return Turn(f"c{minute}", moment(minute), None, None, None, parent, after is None, {"messages": mark_of(messages)})


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
    assert mark_of([10**5000]) == EMPTY
