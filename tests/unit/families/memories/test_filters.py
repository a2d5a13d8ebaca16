"""Limits of filters, and the cost of compiling them to SQL."""

from __future__ import annotations

import re
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.families.memories.statements.filters import CHARACTERS_LIMIT, COMPARISONS_LIMIT, compile_filter
from tests.growth import assert_linear, steps_of

LARGEST: dict[str, Any] = {
    "an $in": {"name": {"$in": list(range(COMPARISONS_LIMIT))}},
    "fields": {f"name{n}": n for n in range(COMPARISONS_LIMIT)},
    "operators": {f"name{n}": {"$gt": 1, "$lt": 3} for n in range(COMPARISONS_LIMIT // 2)},
    "nothings": {f"name{n}": {"$in": []} for n in range(COMPARISONS_LIMIT)},
    "empty objects": {f"name{n}": {} for n in range(COMPARISONS_LIMIT)},
    "nested": {"a": {f"name{n}": {"b": {"c": {"$exists": True}}} for n in range(COMPARISONS_LIMIT)}},
}


@pytest.mark.parametrize("filter", LARGEST.values(), ids=LARGEST)
def test_a_filter_of_the_largest_size_is_compiled(filter: dict[str, Any]) -> None:
    condition = compile_filter(filter, "i.value")
    assert {*re.findall(r":(value_\d+)", condition.sql)} == {*condition.params}
    assert len(condition.sql) + sum(map(len, condition.params.values())) < 2 * CHARACTERS_LIMIT


@pytest.mark.parametrize("filter", LARGEST.values(), ids=LARGEST)
def test_a_filter_of_more_comparisons_is_refused(filter: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"the limit is {COMPARISONS_LIMIT} values to compare with"):
        compile_filter({**filter, "another": 1}, "i.value")


@pytest.mark.parametrize(
    "filter",
    [
        {"name": "x" * CHARACTERS_LIMIT},
        {"x" * CHARACTERS_LIMIT: 1},
        {"name": {"$in": ["x" * 1_000 for _ in range(300)]}},
        {"x" * 1_000: {"$in": list(range(300))}},
        {"x" * 90_000: {"y" * 90_000: {"a": 1, "b": 1}}},
        {"name": [[]] * CHARACTERS_LIMIT},
    ],
)
def test_a_filter_that_is_too_long_is_refused(filter: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"longer than {CHARACTERS_LIMIT} characters"):
        compile_filter(filter, "i.value")


def test_checking_a_filter_stops_at_the_limit() -> None:
    def refused(values: list[Any]) -> None:
        with pytest.raises(InvalidInput):
            compile_filter({"name": {"$in": values}}, "i.value")

    assert steps_of(refused, [1] * 1_000_000) < 1_000
    assert steps_of(refused, [[1] * 1_000_000]) < 1_000


@pytest.mark.parametrize("filter", ["an $in", "fields"])
def test_compiling_a_filter_takes_linear_time(filter: str) -> None:
    whole = LARGEST[filter]

    def part(size: int) -> dict[str, Any]:
        return {"name": {"$in": whole["name"]["$in"][:size]}} if filter == "an $in" else dict([*whole.items()][:size])

    assert_linear(lambda size: steps_of(compile_filter, part(size), "i.value"), 250)
