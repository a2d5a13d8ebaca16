"""Keys of the metadata index."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from locus_mysql.runtime.matching import INDEXED_KEYS_LIMIT, TOO_MANY_NAMES, contains, index_keys, lookup_keys

from ..families.checkpoints.states import JSON

#: Small values that often contain one another.
SMALL = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, "1", "a", "\0bool"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


def finds(metadata: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether a lookup of a pair in the index finds the metadata."""
    return not {*index_keys(metadata)}.isdisjoint(lookup_keys(name, value))


@given(SMALL, SMALL)
def test_metadata_is_found_by_every_value_that_it_contains(target: Any, candidate: Any) -> None:
    if contains(target, candidate):
        assert finds({"k": target, "other": 1}, "k", candidate)


@given(JSON)
def test_every_value_is_found_by_itself(value: Any) -> None:
    assume("nan" not in repr(value) and "inf" not in repr(value))
    assert finds({"k": value}, "k", value)
    keys = index_keys({"k": value}) + lookup_keys("k", value)
    assert all(0 <= key < 2**64 for key in keys)


def test_different_pairs_have_different_keys() -> None:
    values: list[Any] = [None, True, False, 1, 0, "1", "true", "", [], {}, {"a": 1}, {"b": 1}, {"a": {"a": 1}}]
    keys = {lookup_keys(name, value)[0] for name in ("k", "K", "") for value in values}
    assert len(keys) == 3 * len(values)


@pytest.mark.parametrize(
    ("metadata", "name", "value"),
    [
        ({"k": 1}, "K", 1),
        ({"k": 1}, "k", True),
        ({"k": "a"}, "k", ["a", "bb"]),
        ({"k": {"x": 1}}, "k", {"x": 2}),
        ({"k": {"x": {"y": 1}}}, "k", {"y": 1}),
        ({"k": {"x": 1}}, "k", 1),
        ({"k": 1}, "k", []),
        ({"k": [1]}, "k", {}),
    ],
)
def test_the_index_excludes_most_metadata_without_the_value(metadata: Any, name: str, value: Any) -> None:
    assert not finds(metadata, name, value)


def test_a_scalar_s_key_can_be_made_by_others_too() -> None:
    digest = hashlib.sha256(json.dumps(["ticket", 7], separators=(",", ":")).encode()).digest()
    assert index_keys({"ticket": 7}) == [int.from_bytes(digest[:8])]
    assert lookup_keys("ticket", 7.0)[0] == int.from_bytes(digest[:8])


def test_of_a_pair_with_too_many_keys_only_the_name_is_indexed() -> None:
    metadata = {"many": list(range(INDEXED_KEYS_LIMIT)), "few": [1, 2]}
    assert len(index_keys(metadata)) == 1 + 3
    assert finds(metadata, "many", 7)
    assert finds(metadata, "few", 2)
    assert not finds(metadata, "few", 3)
    assert len(index_keys({"many": list(range(INDEXED_KEYS_LIMIT - 1))})) == INDEXED_KEYS_LIMIT


def test_metadata_with_too_many_names_is_always_compared() -> None:
    metadata = {str(number): number for number in range(INDEXED_KEYS_LIMIT + 1)}
    assert index_keys(metadata) == [TOO_MANY_NAMES]
    assert finds(metadata, "7", 7)
    metadata.popitem()
    assert len(index_keys(metadata)) == INDEXED_KEYS_LIMIT


def test_deep_metadata_with_long_names_takes_no_time_to_index() -> None:
    value: Any = list(range(899))
    for _ in range(100):
        value = {"n" * 600: value}
    assert len(index_keys({"k": value})) == 100 + 1 + 899
