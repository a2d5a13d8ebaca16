"""A JSON value as a tree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.server.pages.texts import MOST_CHARACTERS, MOST_LEVELS, MOST_NODES, Branch, hits, tree

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=40,
)


def all_of(branch: Branch) -> list[Branch]:
    return [branch, *(one for below in branch.below for one in all_of(below))]


def test_the_first_level_is_unfolded() -> None:
    root = tree({"a": {"b": 1}, "c": [True, None]})

    assert [(one.name, one.kind, one.count, one.open) for one in root.below] == [
        ("a", "object", 1, False),
        ("c", "array", 2, False),
    ]
    assert root.open


def test_search_matches_are_unfolded_and_counted() -> None:
    root = tree({"a": {"b": {"word": 1}}, "c": ["a WORD here"], "d": {"e": "f"}}, "word")

    assert [one.open for one in root.below] == [True, True, False]
    assert hits(root) == 2


def test_a_large_value_is_truncated_with_a_note() -> None:
    root = tree(list(range(3 * MOST_NODES)))

    assert len(root.below) <= MOST_NODES + 1
    assert root.below[-1].kind == "more"
    assert "more" in root.below[-1].text


def test_a_deep_value_is_truncated_with_a_note() -> None:
    value: Any = "bottom"
    for _ in range(500):
        value = [value]

    deepest = all_of(tree(value))[-1]

    assert len(all_of(tree(value))) <= MOST_LEVELS + 2
    assert (deepest.kind, deepest.text) == ("more", "deeper than is shown here")


def test_a_long_text_is_truncated_but_searched_whole() -> None:
    root = tree({"a": "x" * 1_000_000 + "needle"}, "needle")

    assert len(root.below[0].text) < MOST_CHARACTERS + 100
    assert hits(root) == 1


@given(JSON, st.text(max_size=3))
def test_any_json_has_a_tree(value: Any, find: str) -> None:
    assert len(all_of(tree(value, find))) <= 2 * MOST_NODES
