"""Fast checks of values agree with checks of every part."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.errors import InvalidInput
from locus_mysql.families.memories.arguments import (
    DEPTH_LIMIT,
    SEARCHED_CHARACTERS,
    _check,
    encode_value,
    searched_text,
)
from locus_mysql.runtime.exact_json import strings_of
from tests.growth import assert_linear, steps_of

from ....thoroughness import FULL


class Colour(IntEnum):
    """An int subclass that JSON cannot represent."""

    RED = 1


ODD = st.sampled_from(
    [float("nan"), float("inf"), "\ud800", 2**1_022, 2**1_023, -(2**1_023), b"", (), Colour.RED, OrderedDict(a=1), 1j]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | ODD,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "\udfff", 1, None]), inner, max_size=2)
    ),
    max_leaves=15,
)


def deep(levels: int) -> Any:
    """Return nested lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def word_by_word(value: Any) -> str:
    """Encode a value by checking each part; return the text or the error."""
    try:
        _check(value, "The value")
    except InvalidInput as error:
        return str(error)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def at_once(value: Any) -> str:
    """Encode a value by the fast method; return the text or the error."""
    try:
        return encode_value(value)
    except InvalidInput as error:
        return str(error)


@given(ANY)
@settings(max_examples=400 if FULL else 100)
def test_a_value_is_refused_or_encoded_as_if_each_part_were_checked(value: Any) -> None:
    assert at_once(value) == word_by_word(value)


@pytest.mark.parametrize("levels", range(DEPTH_LIMIT - 2, DEPTH_LIMIT + 4))
def test_depth_is_limited_to_the_level(levels: int) -> None:
    for value in (deep(levels), {"a": deep(levels)}, [deep(levels), []]):
        assert at_once(value) == word_by_word(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidInput, match="nested more than"):
        encode_value(value)


def texts(value: Any) -> list[str]:
    """Return every text in a value, by recursion."""
    if isinstance(value, str):
        return [value] if value else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


@given(ANY, st.integers(1, 6))
def test_texts_are_found_in_order_up_to_a_limit(value: Any, most: int) -> None:
    assert strings_of(value) == texts(value)
    assert "\n".join(strings_of(value, most))[:most] == "\n".join(texts(value))[:most]


def test_only_the_searched_text_of_a_huge_value_is_read() -> None:
    value = ["word " * 100] * 100_000
    assert len(searched_text(value) or "") == SEARCHED_CHARACTERS
    assert steps_of(searched_text, value) < 200_000
    assert steps_of(searched_text, [0] * 1_000_000) < 1_000
    assert steps_of(encode_value, [0] * 1_000_000) < 1_000
    assert steps_of(encode_value, ["a"] * 1_000_000) < 1_000


@pytest.mark.parametrize("part", [1, 0.5, "a", [], {}, [1], {"a": 1}, {"a": ["b", {"c": None}]}])
def test_checking_takes_time_linear_in_the_value(part: Any) -> None:
    assert_linear(lambda size: steps_of(encode_value, [part] * size), 100)
    assert_linear(lambda size: steps_of(strings_of, [part] * size), 100)
    assert_linear(lambda size: steps_of(encode_value, {str(n): part for n in range(size)}), 100)
