"""Containment as in MySQL's manual, and equality of JSON values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from locus_mysql.database.matching import contains, same_json

from .states import JSON

DOCUMENT = {"a": 1, "b": 2, "c": {"d": 4}}


@pytest.mark.parametrize(
    ("target", "candidate", "expected"),
    [
        # https://dev.mysql.com/doc/refman/9.0/en/json-search-functions.html#function_json-contains
        (DOCUMENT["a"], 1, True),
        (DOCUMENT["b"], 1, False),
        (DOCUMENT["a"], {"d": 4}, False),
        (DOCUMENT["c"], {"d": 4}, True),
        # "A candidate array is contained in a target array if and only if every element in the candidate is contained
        # in some element of the target."
        ([1, 2, 3], [1, 3], True),
        ([1, 2, 3], [1, 4], False),
        ([1, 2], [], True),
        ([[1, 2], 3], [[1]], True),
        ([[1, 2], 3], [1], True),
        # "A candidate nonarray is contained in a target array if and only if the candidate is contained in some element
        # of the target."
        ([1, {"a": 1, "b": 2}], {"a": 1}, True),
        ([1, 2], 2, True),
        ([1, 2], "2", False),
        # "A candidate object is contained in a target object if and only if for each key in the candidate there is a
        # key with the same name in the target and the value …"
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1, "b": 2}, {"a": 2}, False),
        ({"a": {"x": [1, 2]}}, {"a": {"x": [2]}}, True),
        ({"a": 1}, {}, True),
        ({"a": 1}, {"b": None}, False),
        # Scalars: the same type and value.
        (1, 1.0, True),
        (1, True, False),
        (None, None, True),
        (None, False, False),
        ("a", "A", False),
        ({"a": 1}, [], False),
        (1, [1], False),
    ],
)
def test_containment_is_as_the_manual_tells_it(target: Any, candidate: Any, expected: bool) -> None:
    assert contains(target, candidate) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (0, False, False),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (True, ["\0bool", 1], False),
        ([], {}, False),
        (10**30, 1e30, int(1e30) == 10**30),
        ("1", 1, False),
        (None, 0, False),
    ],
)
def test_equality_is_json_s(one: Any, other: Any, expected: bool) -> None:
    assert same_json(one, other) is expected
    assert same_json(other, one) is expected


@given(JSON)
def test_a_value_is_equal_to_itself_unless_it_is_not_a_number(value: Any) -> None:
    if "nan" not in repr(value):
        assert same_json(value, value)
