"""Checkpoints as a tree, and the message of a thread that a search hit refers to."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.inspection.records import CheckpointRow, Message, ToolCall
from locus_mysql.server.pages.thread import LANES, conversation, index_of_match, timeline


def row(checkpoint_id: str, parent_id: str | None = None, namespace: str = "") -> CheckpointRow:
    return CheckpointRow(namespace, checkpoint_id, parent_id, datetime(2026, 1, 1, tzinfo=UTC), 1)


def test_a_branch_has_a_lane_of_its_own_until_it_joins() -> None:
    drawn = timeline([row("d", "b"), row("c", "b"), row("b", "a"), row("a")])

    assert [node.lane for node in drawn.nodes] == [0, 1, 0, 0]
    assert [list(node.passing) for node in drawn.nodes] == [[], [0], [], []]
    assert [list(node.joining) for node in drawn.nodes] == [[], [], [1], []]
    assert (drawn.lanes, drawn.branches) == (2, 2)


def test_namespaces_do_not_mix() -> None:
    drawn = timeline([row("b", "a", "sub"), row("a")])
    assert [node.above for node in drawn.nodes] == [False, False]
    assert drawn.branches == 1
    assert timeline([row("c", "a"), row("b", "a", "sub"), row("b", "a"), row("a")]).branches == 2
    assert timeline([]).branches == 0


def test_a_checkpoint_that_continues_itself_or_a_later_one_harms_nothing() -> None:
    drawn = timeline([row("a", "b"), row("a", "a"), row("b", "a")])
    assert len(drawn.nodes) == 3


@given(st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 30)), max_size=60))
def test_any_checkpoints_can_be_drawn(pairs: list[tuple[int, int | None]]) -> None:
    rows = [row(str(one), None if parent is None else str(parent)) for one, parent in pairs]

    drawn = timeline(rows)

    assert [node.row for node in drawn.nodes] == rows
    assert all(0 <= lane < LANES for node in drawn.nodes for lane in (node.lane, *node.passing, *node.joining))
    assert drawn.lanes <= LANES


def message(text: str, *calls: ToolCall) -> Message:
    return Message("user", text, None, calls, {})


def test_the_last_message_with_most_of_the_words_is_found() -> None:
    call = ToolCall("1", "look_up", {"city": "Bonn"}, "no trains", None)
    messages = conversation(
        [message("Chapter 20"), message("chapter 120"), message("", call), message("A chapter")], {}
    )

    assert index_of_match(messages, "chapter 20") == 0
    assert index_of_match(messages, "CHAPTER") == 3
    assert index_of_match(messages, "bonn") == 2
    assert index_of_match(messages, "trains") == 2
    assert index_of_match(messages, "chap") is None
    assert index_of_match(messages, "...") is None
