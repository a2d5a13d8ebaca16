"""How values are written on pages."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.server.pages import texts

NOW = datetime(2026, 11, 22, 3, 12, tzinfo=UTC)


def test_markup_is_text() -> None:
    assert texts.shown("<script>alert('&')</script>") == "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x1b", "\u202e", "\u2066", "\u200b", "\ud800", "\ufeff", "\u2028", "\U000e0041"]
)
def test_what_hides_is_marked(hidden: str) -> None:
    told = texts.shown(f"a{hidden}b")

    assert hidden not in told
    assert f"U+{ord(hidden):04X}" in told


@given(st.text())
def test_other_text_stays_as_it_is(text: str) -> None:
    told = texts.shown(text)
    if "hidden-character" not in told:
        assert unescape(str(told)) == text


def test_whatever_obeys_no_eye_is_marked() -> None:
    joining = {"\u200c", "\u200d"}
    visible = {"Cf": "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
    egyptian = {chr(code) for code in range(0x13430, 0x13440)}  # which place one hieroglyph by another
    for code in range(0x110000):
        one = chr(code)
        if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and one not in "\t\n\r":
            left_alone = one in joining or one in visible["Cf"] or one in egyptian
            assert ("hidden-character" in texts.shown(one)) != left_alone, hex(code)


def test_what_joins_characters_of_a_script_or_an_emoji_is_left_alone() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert texts.shown(family) == family


def test_words_are_marked_whatever_their_case_and_markup_is_text() -> None:
    assert texts.marked("The TENT <b>", "tent") == "The <mark>TENT</mark> &lt;b&gt;"
    assert texts.marked("a.b", ".") == "a.b"


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 KB"), (10_940, "10.9 KB"), (999_600, "1.00 MB"), (5e15, "5000 TB")],
)
def test_sizes_have_three_digits(count: float, told: str) -> None:
    assert texts.size(count) == told


@pytest.mark.parametrize(
    ("passed", "told"),
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
def test_ages_are_told_in_one_unit(passed: timedelta, told: str) -> None:
    assert texts.age(NOW - passed, NOW).replace("\u202f", " ") == told


@given(st.text(), st.integers(1, 50))
def test_a_cut_text_loses_nothing(text: str, most: int) -> None:
    beginning, rest = texts.cut(text, most)

    assert beginning + rest == text
    assert len(beginning) <= most


def test_very_many_hidden_characters_take_little_place_and_none_is_left() -> None:
    told = texts.shown("\u202e\u200b" * 50_000)

    assert len(told) < 150_000
    assert "\u202e" not in told
    assert "\u200b" not in told
    assert "U+202E" in told


def test_of_a_deep_value_the_blanks_do_not_take_hundreds_of_times_its_size() -> None:
    value: Any = [1] * 20_000
    for _ in range(190):
        value = [value]

    told = texts.pretty(value)

    assert len(told) == texts.MOST_PRETTY
    assert texts.pretty(value, 10) == told[:10]
    assert texts.pretty({"a": [1, "\u00e9"]}) == '{\n  "a": [\n    1,\n    "\u00e9"\n  ]\n}'
