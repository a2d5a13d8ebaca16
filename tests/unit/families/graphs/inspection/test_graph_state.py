"""Windows of long conversations of graphs, and the numbers of their turns."""

from __future__ import annotations

import hashlib
import json
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from locus_mysql.families.graphs.inspection.graph_state import LONG, GraphState, view_of
from locus_mysql.families.graphs.inspection.turns import Outline, turns_of
from locus_mysql.families.graphs.values import EncodedValue, Inline, Link, Stored, divide
from locus_mysql.families.inspection.conversation import messages_of, part_of_conversation
from locus_mysql.families.inspection.msgpack import Items, Unreadable, item_ends, read_items, read_msgpack
from locus_mysql.families.inspection.records import CheckpointRow, Window
from locus_mysql.families.inspection.turns import first_saved
from locus_mysql.records.log_digests import EMPTY
from tests.growth import assert_linear, steps_of
from tests.unit.families.inspection.test_conversation import JSON

AT = datetime(2026, 11, 22, tzinfo=UTC)
SERDE = JsonPlusSerializer()


def talk(turns: int) -> list[Any]:
    """Return a question and an answer of 10 tokens for each turn."""
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    return [
        message
        for n in range(turns)
        for message in (
            HumanMessage(f"Question {n}", id=f"q{n}"),
            AIMessage(f"Answer {n}", id=f"a{n}", usage_metadata=usage, response_metadata={"usage_metadata": "no"}),
        )
    ]


def in_msgpack(messages: list[Any]) -> EncodedValue:
    return EncodedValue(*SERDE.dumps_typed(messages))


def in_json(messages: list[Any]) -> EncodedValue:
    text = json.dumps([one.model_dump() for one in messages], separators=(",", ":"), ensure_ascii=False)
    return EncodedValue("json", text.encode())


def stored(encoded: EncodedValue) -> Inline | Stored:
    """Return a value as the family stores it, without parts."""
    if len(encoded.data) <= 256:
        return Inline(encoded)
    front, body, back = divide(encoded)
    digest = hashlib.sha256(body).digest()[:16]
    return Stored(encoded.kind, front, back, 0, digest, (Link(1, 0, len(body), 0),))


def row(index: int) -> CheckpointRow:
    return CheckpointRow("", f"c{index}", None, AT + timedelta(minutes=index), 1)


def outline(index: int, encoded: EncodedValue | None, parent: int | None) -> Outline:
    value = None if encoded is None else stored(encoded)
    parent_id = None if parent is None else f"c{parent}"
    return Outline(f"c{index}", parent_id, AT + timedelta(minutes=index), json.dumps({"step": index}), value)


@pytest.mark.parametrize("encode", [in_msgpack, in_json])
def test_numbers_of_turns_come_from_the_newest_conversation(encode: Any) -> None:
    lists = [encode(talk(n)) for n in range(6)]
    outlines = [outline(n, lists[n], n - 1 if n else None) for n in range(6)][::-1]
    turns = turns_of(outlines, [lists[5]])
    assert [turn.tokens for turn in turns] == [None, 10, 20, 30, 40, 50]
    assert [turn.iterations for turn in turns] == list(range(6))
    assert [turn.lists["messages"].item_count for turn in turns] == [0, 2, 4, 6, 8, 10]
    view = view_of(GraphState("t", row(9), {"messages": lists[5]}))
    assert first_saved(view, turns) == {n: AT + timedelta(minutes=n // 2 + 1) for n in range(10)}


def test_an_unread_branch_has_no_token_counts_and_shares_earlier_messages() -> None:
    other = [*talk(2), HumanMessage("Something else " * 20, id="x")]
    outlines = [
        outline(4, in_msgpack(talk(4)), 2),
        outline(3, in_msgpack(other), 2),
        outline(2, in_msgpack(talk(2)), None),
        Outline("c1", None, AT, "no JSON", None, damaged=True),
        outline(0, None, None),
    ]
    turns = turns_of(outlines, [in_msgpack(talk(4))])
    assert [turn.tokens for turn in turns] == [None, None, 20, None, 40]
    assert turns[3].lists["messages"].item_count == 5
    assert turns[1].lists == {}
    assert turns[0].lists == {"messages": EMPTY}
    both = turns_of(outlines, [in_msgpack(talk(4)), in_msgpack(other)])
    assert [turn.tokens for turn in both] == [None, None, 20, 20, 40]
    damaged = turns_of(outlines, [EncodedValue("msgpack", b"\xdc\x00\x09\xc1" + b"x" * 300)])
    assert [turn.tokens for turn in damaged] == [None] * 5


def test_a_window_of_a_long_conversation_is_that_part_of_the_whole() -> None:
    messages = talk(LONG)
    read = GraphState("t", row(1), {"messages": in_msgpack(messages), "few": in_msgpack(messages[:4])}, partly=True)
    whole = messages_of(view_of(GraphState("t", row(1), read.values)).state)
    state = pickle.loads(pickle.dumps(view_of(pickle.loads(pickle.dumps(read))))).state
    assert isinstance(state["messages"], Items)
    assert isinstance(state["few"], list)
    for window, first, last in (
        (Window(200), 1_800, 2_000),
        (Window(200, 0), 0, 200),
        (Window(200, 500), 500, 700),
        (Window(200, 1_950), 1_950, 2_000),
        (Window(200, 5_000), 2_000, 2_000),
        (Window(5_000), 0, 2_000),
    ):
        found, before, after = part_of_conversation(state, window)
        assert (found, before, after) == (whole[first:last], first, 2_000 - last)
    short, before, after = part_of_conversation({"messages": state["few"]}, Window(2))
    assert (len(short), before, after) == (4, 0, 0)


def test_the_data_read_for_a_window_does_not_grow_with_the_conversation() -> None:
    def parts(size: int) -> int:
        value = in_msgpack(talk(size))
        read = GraphState("t", row(1), {"messages": value}, partly=True)
        return steps_of(lambda: part_of_conversation(view_of(read).state, Window(20)))

    def passed_by(size: int) -> int:
        data = in_msgpack(talk(size)).data
        return steps_of(read_items, data, 1)

    small, large = parts(LONG), parts(4 * LONG)
    assert large - small <= 1.1 * (passed_by(4 * LONG) - passed_by(LONG))  # the others are only skipped
    assert_linear(passed_by, 100)


@pytest.mark.parametrize("encode", [in_msgpack, in_json])
def test_numbers_of_turns_take_time_linear_in_conversation_and_turns(encode: Any) -> None:
    def counted(size: int) -> int:
        whole = encode(talk(size))
        outlines = [outline(n, encode(talk(n)), None) for n in range(0, size, 4)][::-1]
        return steps_of(turns_of, outlines, [whole])

    assert_linear(counted, 40)


@given(st.lists(JSON, min_size=1, max_size=15))
@settings(max_examples=40)
def test_items_are_those_of_the_whole(values: list[Any]) -> None:
    def packable(value: Any) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return 0
        if isinstance(value, list):
            return [packable(part) for part in value]
        return {name: packable(part) for name, part in value.items()} if isinstance(value, dict) else value

    data = ormsgpack.packb([packable(value) for value in values], option=ormsgpack.OPT_NON_STR_KEYS)
    whole, items = read_msgpack(data), read_items(data, 1)
    assert items is not None
    assert list(items) == whole
    assert items[-1] == whole[-1]
    assert items[1:3] == whole[1:3]
    for end in range(len(data) - 1, 0, -1):
        with pytest.raises(Unreadable):
            item_ends(data[:end], 1, len(values))
    with pytest.raises(IndexError):
        items[len(whole)]


def test_an_impossible_length_is_refused_at_once() -> None:
    assert steps_of(_refused, b"\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff\x01") < 1_000


def _refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        item_ends(data, 5, 2**32 - 1)


def test_a_damaged_item_is_shown_as_damaged_and_the_others_as_they_are() -> None:
    data = ormsgpack.packb([1, "x", ormsgpack.Ext(5, b"\xc1\xc1"), 2])
    items = read_items(data, 2)
    assert items is not None
    assert list(items) == [1, "x", "<damaged msgpack, 4 bytes>", 2]
