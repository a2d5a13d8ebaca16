"""GTID sets are parsed, united and written as by MySQL."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.engine.gtids import GTIDs

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        (f"{A}:7", f"{A}:7-7"),
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A.upper()}:1-5:6-7:10", f"{A}:1-7:10-10"),
        (f"{A}:1-5,\n{B}:1-3", f"{B}:1-3,{A}:1-5"),
        (f"{A}:1-5:audit:2-3:9:other:1", f"{A}:1-5,{A}:audit:2-3:9-9,{A}:other:1-1"),
        (f"{A}:8#12:9#13,\n{B}:audit:4#1", f"{B}:audit:4-4,{A}:8-9"),  # gtid_owned
    ],
)
def test_a_set_is_read_and_written(text: str, written: str) -> None:
    assert str(GTIDs.read(text)) == written
    assert GTIDs.read(written) == GTIDs.read(text)
    assert bool(GTIDs.read(text)) == bool(text)


def test_an_invalid_gtid_set_is_refused() -> None:
    with pytest.raises(ValueError, match="GTIDs"):
        GTIDs.read("ON")


numbers = st.dictionaries(st.sampled_from([(A, ""), (A, "audit"), (B, "")]), st.sets(st.integers(1, 30), min_size=1))


def as_set(members: dict[tuple[str, str], set[int]]) -> GTIDs:
    """Return the numbers one by one, without intervals."""
    entries = [":".join([server, *([tag] if tag else []), *map(str, has)]) for (server, tag), has in members.items()]
    return GTIDs.read(",".join(entries))


@given(numbers, numbers)
def test_a_union_uses_the_fewest_intervals(
    one: dict[tuple[str, str], set[int]], other: dict[tuple[str, str], set[int]]
) -> None:
    both = {source: one.get(source, set()) | other.get(source, set()) for source in one.keys() | other.keys()}
    union = as_set(one) | as_set(other)
    assert union == as_set(both) == as_set(other) | as_set(one)
    for source, intervals in union.intervals.items():
        assert {number for first, last in intervals for number in range(first, last + 1)} == both[source]
        assert all(before[1] + 1 < after[0] for before, after in pairwise(intervals))
    assert union | union == union
    assert GTIDs.read(str(union)) == union
