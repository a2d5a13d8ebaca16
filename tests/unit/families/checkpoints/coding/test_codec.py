"""States survive encoding and decoding exactly."""

from __future__ import annotations

import contextlib
import math
import re
from collections import OrderedDict
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
from ..states import ANY_TEXT, JSON, STATES, same

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


@given(ANY_TEXT)
def test_any_text_is_a_key_or_refused(key: str) -> None:
    try:
        assert same(decode_json(text_of({key: [key], "other": {key: 1}})), {key: [key], "other": {key: 1}})
    except InvalidInput:
        assert holds_split_pair(key)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.0,
        5e-324,
        1.7976931348623157e308,
        0.1,
        1e16,
        1e22,
        10**100,
        -(10**100),
        2**63,
        2**64,
        True,
        "\ud800",
        "\udfff and 😀",
        "\x00\x1e\u2028",
        "",
        {"": ""},
        {"b": 1, "a": 2},
        [[], [[]], {}],
    ],
)
def test_odd_values_round_trip(value: Any) -> None:
    assert same(decode_json(encode_json(value)), value)
    assert same(decode_json(text_of({"field": value, "list": [value]})), {"field": value, "list": [value]})


def test_a_split_surrogate_pair_is_refused_not_joined() -> None:
    for state in ({"a": "\ud83d\ude00"}, {"a": ["x\ud83d\ude00"]}, {"\ud83d\ude00": 1}):
        with pytest.raises(InvalidInput, match="surrogate"):
            text_of(state)


@pytest.mark.parametrize("depth", [10, 100, 190, 199, 200, 201, 230, 249, 250, 251, 255, 256, 1_000, 100_000])
@pytest.mark.parametrize("kind", ["list", "dict"])
def test_deep_nesting_round_trips_or_is_refused(depth: int, kind: str) -> None:
    value: Any = "core"
    for _ in range(depth):
        value = [value] if kind == "list" else {"k": value}
    state = {"field": value}
    try:
        check_json_object(state, "The state")
        text = text_of(state)
    except InvalidInput:
        assert depth >= 190
        return
    assert depth <= 255
    assert decode_json(text) == state


def test_a_state_that_contains_itself_is_refused() -> None:
    state: dict[str, Any] = {"list": []}
    state["list"].append(state)
    with pytest.raises(InvalidInput, match="itself"):
        check_json_object(state, "The state")
    with pytest.raises(InvalidInput):
        encode(state)


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


@pytest.mark.parametrize("bad", [None, [], "text", 1, (), OrderedDict])
def test_a_state_that_is_not_a_dict_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a dict"):
        check_json_object(bad, "The state")


@pytest.mark.parametrize("digits", [4_000, 4_299, 4_300, 4_301, 5_000, 8_601, 100_000])
@pytest.mark.parametrize("before", [0, 1, 4_297, 4_299, 9_000])
def test_a_long_integer_round_trips_or_is_refused(digits: int, before: int) -> None:
    number = 7 * 10 ** (digits - 1)
    for sign in (1, -1):
        state = {"text": "x" * before, "field": sign * number, "list": [sign * number]}
        try:
            text = text_of(state)
        except InvalidInput as error:
            assert "4300 digits" in str(error)  # noqa: PT017 - either outcome is right
            assert digits > 4_300
            continue
        assert decode_json(text) == state


def test_a_long_text_of_digits_is_no_number() -> None:
    state = {"text": "7" * 20_000, "list": ["7" * 20_000]}
    assert decode_json(text_of(state)) == state


@given(st.binary(max_size=40))
def test_bytes_that_are_not_json_are_a_corrupt_checkpoint(text: bytes) -> None:
    with contextlib.suppress(CorruptCheckpoint):
        decode_json(text)
