"""When messages were first saved, told by the checkpoints that hold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from locus_mysql.families.checkpoints.coding.digests import EMPTY
from locus_mysql.inspection.first_saved import first_saved, mark_of
from locus_mysql.inspection.records import CheckpointRow, StateView, Turn

AT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def moment(minute: int) -> datetime:
    return AT + timedelta(minutes=minute)


def turn(minute: int, messages: list[Any], after: int | None = None) -> Turn:
    """The checkpoint of a minute, which goes on from that of another one."""
    parent = None if after is None else f"c{after}"
    return Turn(f"c{minute}", moment(minute), None, None, None, parent, after is None, {"messages": mark_of(messages)})


def view(minute: int, messages: list[Any], state: dict[str, Any] | None = None) -> StateView:
    checkpoint = CheckpointRow("", f"c{minute}", None, moment(minute), 1, {})
    return StateView("agents", "t", checkpoint, (), {"messages": messages} if state is None else state)


def test_a_message_was_saved_with_the_first_checkpoint_that_has_it() -> None:
    turns = [turn(1, said("a", "b")), turn(2, said("a", "b"), 1), turn(5, said("a", "b", "c"), 2)]

    assert first_saved(view(9, said("a", "b", "c", "d")), turns) == {0: moment(1), 1: moment(1), 2: moment(5)}


def test_another_branch_tells_only_of_what_is_the_same() -> None:
    turns = [turn(1, said("a")), turn(2, said("a", "other"), 1), turn(3, said("a", "b"), 1)]

    assert first_saved(view(9, said("a", "b")), turns) == {0: moment(1), 1: moment(3)}


def test_of_a_conversation_that_was_rewritten_nobody_knows_what_was_new_in_it() -> None:
    turns = [
        turn(1, said("rules", "a", "b")),
        turn(2, said("rules", "summary", "b"), 1),
        turn(3, said("rules", "summary", "b", "c"), 2),
    ]

    assert first_saved(view(9, said("rules", "summary", "b", "c")), turns) == {3: moment(3)}


def test_what_was_saved_later_tells_nothing_of_a_state_before() -> None:
    turns = [turn(1, said("a")), turn(7, said("a", "b"), 1)]

    assert first_saved(view(3, said("a", "b")), turns) == {0: moment(1)}


def test_where_what_came_before_is_not_known_a_checkpoint_does_not_tell_since_when_it_has_it() -> None:
    turns = [turn(2, said("a"), 1), turn(3, said("a", "b"), 2)]

    assert first_saved(view(3, said("a", "b")), turns) == {1: moment(3)}


def test_states_without_messages_and_of_what_json_cannot_hold_have_no_times() -> None:
    turns = [turn(1, said("a"))]

    assert first_saved(view(3, [], {"step": 1}), turns) == {}
    assert first_saved(view(3, [], {"channel_values": {"messages": said("a")}}), turns) == {}
    assert mark_of([10**5000]) == EMPTY
