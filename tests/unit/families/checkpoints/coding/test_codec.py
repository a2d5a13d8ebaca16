"""States survive encoding and decoding exactly."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.runtime.exact_json import check_json_object, decode_json, encode_json

from .....thoroughness import FULL
from ..states import JSON, STATES, same

#: A high and a low surrogate in two strings: adjacent in JSON text, they would become one character.
SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def text_of(state: dict[str, Any]) -> bytes:
    """Return the whole text of an encoded state, with its logs inserted at the cuts."""
    encoded = encode(state)
    pieces, done = [], 0
    for log in encoded.logs:
        pieces += [encoded.head[done : log.cut], log.text]
        done = log.cut
    return b"".join([*pieces, encoded.head[done:]])


def holds_split_pair(value: Any) -> bool:
    if isinstance(value, str):
        return SPLIT_PAIR.search(value) is not None
    if isinstance(value, dict):
        return any(holds_split_pair(item) for item in (*value, *value.values()))
    return isinstance(value, list) and any(map(holds_split_pair, value))


@given(JSON)
@settings(max_examples=400 if FULL else 100)
def test_any_json_value_round_trips_exactly_or_is_refused(value: Any) -> None:
    try:
        text = encode_json(value)
    except InvalidInput:
        assert holds_split_pair(value)
        return
    assert same(decode_json(text), value)


@given(STATES)
@settings(max_examples=400 if FULL else 100)
def test_a_state_round_trips_through_its_head_and_logs(state: dict[str, Any]) -> None:
    check_json_object(state, "The state")
    try:
        text = text_of(state)
    except InvalidInput:
        assert holds_split_pair(state)
        return
    assert same(decode_json(text), state)
    encoded = encode(state)
    assert encoded.size_bytes == len(text)
    assert [log.name for log in encoded.logs] == [name for name, value in state.items() if isinstance(value, list)]
    assert [log.item_count for log in encoded.logs] == [
        len(value) for value in state.values() if isinstance(value, list)
    ]


@pytest.mark.parametrize(
    "bad",
    [
        (1, 2),
        {1, 2},
        frozenset({1}),
        b"bytes",
        bytearray(b"x"),
        pytest.param(object(), id="object()"),  # its repr would be another one in each process
        datetime(2026, 1, 1),
        Decimal(1),
        1j,
        range(3),
        {1: "int key"},
        {None: 1},
        {True: 1},
        {1.5: 1},
        {("a",): 1},
        {b"k": 1},
    ],
    ids=repr,
)
def test_values_that_json_would_change_are_refused_without_showing_them(bad: Any) -> None:
    for state in ({"a": bad}, {"a": [bad]}, {"a": {"b": [{"c": bad}]}}):
        with pytest.raises(InvalidInput) as caught:
            check_json_object(state, "The state")
        assert " at " in str(caught.value)
        assert "int key" not in str(caught.value)


@given(st.binary(max_size=40))
def test_bytes_that_are_not_json_are_a_corrupt_checkpoint(text: bytes) -> None:
    with contextlib.suppress(CorruptCheckpoint):
        decode_json(text)
