"""Containment as in MySQL's manual, and equality of JSON values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus_mysql.errors import InvalidInput
from locus_mysql.runtime.matching import COMPARISONS_LIMIT, Containment, canonical, contains
from tests.growth import assert_linear, steps_of

from ...thoroughness import FULL

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
def test_containment_follows_the_manual(target: Any, candidate: Any, expected: bool) -> None:
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
    assert (canonical(one) == canonical(other)) is expected
    assert (canonical(other) == canonical(one)) is expected


def by_definition(target: Any, candidate: Any) -> bool:
    """Apply the manual's definition literally: compare every element with every element."""
    if isinstance(target, list):
        if isinstance(candidate, list):
            return all(any(by_definition(element, wanted) for element in target) for wanted in candidate)
        return any(by_definition(element, candidate) for element in target)
    if isinstance(target, dict):
        return isinstance(candidate, dict) and all(
            key in target and by_definition(target[key], wanted) for key, wanted in candidate.items()
        )
    return canonical(target) == canonical(candidate)


SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, "1", "a", "\0bool", 2**64, float("nan")])
SIMILAR = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=30,
)


@given(SIMILAR, SIMILAR)
@settings(max_examples=200 if FULL else 50)
@example([[[1, 2]]], [[1, 2]])
@example([[1], [2]], [[1, 2]])
@example([1, 2, 3, 4, 5], [1, 2, 3, 4, 5.0, True])
@example([{"a": n} for n in range(9)], [{"a": n} for n in (0, 2, 4, 6, 8)])
@example([{"a": n, "b": [[n]]} for n in range(9)], [{"b": n} for n in (0, 2, 4, 6, 8)])
@example([{"a": n} for n in range(9)], [{"a": n, "b": 1} for n in (0, 2, 4, 6, 8)])
@example([[{}], [[]], [1], [2], [3]], [[{}], [[]], [1], [2], [3], []])
def test_containment_is_that_of_every_element_with_every_element(target: Any, candidate: Any) -> None:
    assert contains(target, candidate) is by_definition(target, candidate)


SHAPES = {
    "numbers": lambda n: (list(range(n)), list(range(n))[::-1]),
    "equal numbers": lambda n: ([1] * n, [1] * n),
    "a number that is missing": lambda n: (list(range(n)), [*range(n), -1]),
    "objects": lambda n: ([{"a": i} for i in range(n)], [{"a": i} for i in range(n)][::-1]),
    "parts of objects": lambda n: ([{"a": i, "b": 1} for i in range(n)], [{"a": i} for i in range(n)][::-1]),
    "empty objects": lambda n: ([{}] * n, [{}] * n),
    "one object that is missing": lambda n: ([{"a": {"b": i}} for i in range(n)], {"a": {"b": -1}}),
    "arrays": lambda n: ([[i] for i in range(n)], [[i] for i in range(n)][::-1]),
    "arrays in objects": lambda n: ({"a": [[{"b": i}] for i in range(n)]}, {"a": [[{"b": n - i}] for i in range(n)]}),
    "long objects": lambda n: ({str(i): i for i in range(n)}, {str(i): i for i in range(n)}),
    "deep arrays": lambda n: ([[[[i] for i in range(n)]]], [[[[i] for i in range(n)]]]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_containment_takes_time_linear_in_both_values(shape: str) -> None:
    made = SHAPES[shape]
    assert_linear(lambda size: steps_of(contains, *made(size)), 150)


def hard(n: int) -> tuple[list[Any], list[Any]]:
    """Return objects where many share each pair and few share two, so that no index can select candidates."""
    bits = range(12)
    target = [{f"k{bit}": i >> bit & 1 for bit in bits} for i in range(n)]
    wanted = [
        {f"k{bit}": i >> bit & 1 for bit in bits if bit % 3} | {"k0": 5 if i == n - 1 else i & 1} for i in range(n)
    ]
    return target, wanted


def test_comparisons_that_take_too_long_are_refused_with_an_explanation() -> None:
    target, wanted = hard(4_000)
    with pytest.raises(InvalidInput, match="too much to look for"):
        Containment(wanted, 1_000).within(target)
    few, asked = hard(60)
    assert contains(few, asked) is by_definition(few, asked)


def test_comparisons_of_one_query_over_many_rows_share_a_limit() -> None:
    target, wanted = hard(256)
    question = Containment(wanted, COMPARISONS_LIMIT // 10)
    asked = (question.within(target) for _ in range(COMPARISONS_LIMIT))
    with pytest.raises(InvalidInput, match="Look for fewer"):
        list(asked)
