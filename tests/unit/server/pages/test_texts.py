"""Formatting of values on pages."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.server.pages import texts
from locus_mysql.server.pages.texts import MOST_CHARACTERS, MOST_LEVELS, MOST_NODES, Branch, hits, tree

NOW = datetime(2026, 11, 22, 3, 12, tzinfo=UTC)


def test_markup_is_text() -> None:
    assert texts.shown("<script>alert('&')</script>") == "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x1b", "\u202e", "\u2066", "\u200b", "\ud800", "\ufeff", "\u2028", "\U000e0041"]
)
def test_invisible_characters_are_marked(hidden: str) -> None:
    written = texts.shown(f"a{hidden}b")

    assert hidden not in written
    assert f"U+{ord(hidden):04X}" in written


@given(st.text())
def test_other_text_stays_as_it_is(text: str) -> None:
    written = texts.shown(text)
    if "hidden-character" not in written:
        assert unescape(str(written)) == text


def test_every_invisible_character_is_marked() -> None:
    joining = {"\u200c", "\u200d"}
    visible = {"Cf": "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
    egyptian = {chr(code) for code in range(0x13430, 0x13440)}  # format controls that position hieroglyphs
    for code in range(0x110000):
        one = chr(code)
        if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and one not in "\t\n\r":
            left_alone = one in joining or one in visible["Cf"] or one in egyptian
            assert ("hidden-character" in texts.shown(one)) != left_alone, hex(code)


def test_words_are_marked_in_any_case_and_markup_stays_text() -> None:
    assert texts.marked("The TENT <b>", "tent") == "The <mark>TENT</mark> &lt;b&gt;"
    assert texts.marked("a.b", ".") == "a.b"
    assert texts.marked("20 of 120", "20") == "<mark>20</mark> of 120"
    assert texts.marked("tent tents", "tents tent") == "<mark>tent</mark> <mark>tents</mark>"
    assert texts.marked("a " * 1_000, "a").count("<mark>") == texts.MOST_MARKS
    assert texts.marked("last", "word " * 1_000 + "last") == "last"


@pytest.mark.parametrize(
    ("count", "written"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 KB"), (10_940, "10.9 KB"), (999_600, "1.00 MB"), (5e15, "5000 TB")],
)
def test_sizes_have_three_digits(count: float, written: str) -> None:
    assert texts.size(count) == written


@pytest.mark.parametrize(
    ("passed", "written"),
    [
        (timedelta(0), "now"),
        (timedelta(seconds=30), "30 s ago"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=40), "40 d ago"),
        (timedelta(days=800), "2 y ago"),
        (timedelta(hours=-2), "in 2 h"),
    ],
)
def test_ages_are_written_in_one_unit(passed: timedelta, written: str) -> None:
    assert texts.age(NOW - passed, NOW).replace("\u202f", " ") == written


@given(st.text(), st.integers(1, 50))
def test_a_cut_text_loses_nothing(text: str, most: int) -> None:
    beginning, rest = texts.cut(text, most)

    assert beginning + rest == text
    assert len(beginning) <= most


def test_very_many_hidden_characters_take_little_place_and_none_is_left() -> None:
    written = texts.shown("\u202e\u200b" * 50_000)

    assert len(written) < 150_000
    assert "\u202e" not in written
    assert "\u200b" not in written
    assert "U+202E" in written


def test_of_a_deep_value_the_blanks_do_not_take_hundreds_of_times_its_size() -> None:
    value: Any = [1] * 20_000
    for _ in range(190):
        value = [value]

    written = texts.pretty(value)

    assert len(written) == texts.MOST_PRETTY
    assert texts.pretty(value, 10) == written[:10]
    assert texts.pretty({"a": [1, "\u00e9"]}) == '{\n  "a": [\n    1,\n    "\u00e9"\n  ]\n}'


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=40,
)


def all_of(branch: Branch) -> list[Branch]:
    return [branch, *(one for below in branch.below for one in all_of(below))]


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


@given(ANY_JSON, st.text(max_size=3))
def test_any_json_has_a_tree(value: Any, find: str) -> None:
    assert len(all_of(tree(value, find))) <= 2 * MOST_NODES
