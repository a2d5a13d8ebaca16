"""Values that JSON cannot represent are refused, with their path and type; long numbers are found in linear time."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.runtime.exact_json import DIGITS_LIMIT, check_json, check_json_object, decode_json, encode_json


@pytest.mark.parametrize("before", [0, 1, DIGITS_LIMIT - 2, DIGITS_LIMIT, 3 * DIGITS_LIMIT + 7])
def test_a_number_of_too_many_digits_is_refused_at_any_position(before: int) -> None:
    longest = 10 ** (DIGITS_LIMIT - 1)
    assert decode_json(encode_json(["x" * before, longest])) == ["x" * before, longest]
    with pytest.raises(InvalidInput, match=f"more than {DIGITS_LIMIT} digits"):
        encode_json(["x" * before, longest * 10])


def test_texts_of_very_many_digits_take_no_longer_than_others() -> None:
    began = time.process_time()
    text = encode_json(["1" * (DIGITS_LIMIT - 10)] * 500)
    assert len(text) > 2_000_000
    assert time.process_time() - began < 5  # a few ms; 20 s if it backtracked at each digit


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": [1, {"c": date(2026, 1, 31)}]}}, "holds a value of type date at 'a.b.1.c'"),
        ({"a": (1,)}, "holds a value of type tuple at 'a'"),
        ({"dict": {"list": [{"x": b""}]}}, "holds a value of type bytes at 'dict.list.0.x'"),
        ({"a": [{(1, 2): 1}]}, "holds a key of type tuple at 'a.0.(1, 2)'"),
        ({1: 2}, "holds a key of type int at '1'"),
        ({"[key]": {"x": {2}}}, "holds a value of type set at '[key].x'"),
    ],
)
def test_a_refused_value_is_named_by_its_path_and_type(value: Any, message: str) -> None:
    for check in (check_json_object, check_json):
        with pytest.raises(InvalidInput) as raised:
            check(value, "The state")
        assert str(raised.value).startswith(f"The state {message}, which JSON cannot hold exactly.")


def test_a_refused_value_without_a_path_is_named_by_its_type() -> None:
    with pytest.raises(InvalidInput, match="The value is of type date, which JSON cannot hold exactly"):
        check_json(date(2026, 1, 31), "The value")
    with pytest.raises(InvalidInput, match="The state must be a dict, not list"):
        check_json_object([], "The state")


def test_a_value_without_a_json_form_is_named_by_its_path_and_type() -> None:
    ring: list[Any] = []
    ring.append(ring)
    for before in ("text", "\ud800", [1, {"b": 2}]):
        with pytest.raises(InvalidInput, match=r"a value of type object at 'a\.1\.c', which has no JSON form"):
            encode_json({"before": before, "a": [1, {"c": object()}], "ring": ring})
    with pytest.raises(InvalidInput, match="nested deeper than"):
        encode_json({"ring": ring})
