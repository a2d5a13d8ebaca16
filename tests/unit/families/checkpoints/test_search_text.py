"""The searchable text of a state, and snippets of hits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from locus_mysql.families.checkpoints.coding.delta import Lineage, extend
from locus_mysql.families.checkpoints.queries import (
    CHARACTERS_PER_SAVE,
    CHARACTERS_PER_TEXT,
    SHARED_TEXT_END,
    SNIPPET_CHARACTERS,
    SNIPPET_WORDS,
    joined,
    snippet,
    snippet_words,
    strings,
    text_of_dict,
)
from tests.growth import assert_linear, steps_of

from .states import delta_of


def text_after(state: dict[str, Any], *before: dict[str, Any]) -> tuple[str, bool]:
    """Return the search text of a state that follows others."""
    lineage: Lineage = ()
    for seq, earlier in enumerate(before, start=1):
        lineage = extend(lineage, delta_of(earlier, lineage), seq, seq.to_bytes(16))
    return text_of_dict(state, delta_of(state, lineage))


def test_a_first_state_gives_all_its_text() -> None:
    assert text_after({"m": ["a", {"b": "c"}], "h": {"k": "d"}}) == (f"a\nc{SHARED_TEXT_END}d", False)


def test_a_growing_state_yields_its_new_text_and_its_head() -> None:
    assert text_after({"m": ["a", "b"], "h": "x"}, {"m": ["a"], "h": "y"}) == (f"b{SHARED_TEXT_END}x", True)
    assert text_after({"m": ["a"]}, {"m": ["a"]}) == ("", True)


def test_an_edited_state_gives_all_its_text() -> None:
    assert text_after({"m": ["b", "c"]}, {"m": ["a"]}) == ("b\nc", False)
    assert text_after({"m": ["a", "b"]}, {"m": ["a"], "n": ["gone"]}) == ("a\nb", False)


def test_a_new_list_beside_a_growing_one_is_new_text() -> None:
    assert text_after({"m": ["a", "b"], "n": ["c"]}, {"m": ["a"]}) == ("b\nc", True)


def test_the_separator_within_a_text_does_not_end_the_shared_part() -> None:
    text, _ = text_after({"m": [f"a{SHARED_TEXT_END}b"], "h": f"c{SHARED_TEXT_END}d"})
    assert text.count(SHARED_TEXT_END) == 1


def test_long_texts_and_lone_surrogates_are_cut_and_replaced() -> None:
    text, _ = text_after({"m": ["x" * (CHARACTERS_PER_TEXT + 5), "\ud800"]})
    assert len(text) == CHARACTERS_PER_TEXT + 2
    text.encode()


def test_strings_come_in_order_without_keys_and_empty_ones() -> None:
    assert list(strings({"k": ["a", {"l": "b", "m": ["c", 1, None, "", True]}], "z": "d"})) == ["a", "b", "c", "d"]


def test_strings_of_deep_values_need_no_recursion() -> None:
    value: Any = "core"
    for _ in range(10_000):
        value = [value]
    assert list(strings(value)) == ["core"]


class TestSnippet:
    def test_a_snippet_surrounds_the_first_word_found(self) -> None:
        text = "start " + "x " * 200 + "the Apple pie " + "y " * 200
        found = snippet(text, snippet_words("apple"))
        assert "the Apple pie" in found
        assert found.startswith("…")
        assert found.endswith("…")
        assert len(found) <= 162

    def test_of_several_words_the_first_in_the_text_counts_and_one_that_is_not_there_does_not(self) -> None:
        text = "first " + "x " * 200 + "second"
        assert snippet(text, snippet_words("second first")).startswith("first")
        assert snippet(text, snippet_words("missing second")).endswith("second")

    def test_a_snippet_contains_neither_the_separator_nor_line_breaks(self) -> None:
        assert snippet(f"one\ntwo{SHARED_TEXT_END}three", snippet_words("two")) == "one two three"

    def test_a_snippet_of_an_empty_text_or_query_is_no_error(self) -> None:
        assert snippet("", snippet_words("a")) == ""
        assert snippet("abc", snippet_words("")) == "abc"


def test_only_a_part_of_a_huge_query_and_text_is_searched() -> None:
    words = snippet_words(" ".join(f"w{n}" for n in range(10_000)))
    assert len(words) == SNIPPET_WORDS
    text = "z " * SNIPPET_CHARACTERS + "w0"
    assert snippet(text, words) == snippet(text[:SNIPPET_CHARACTERS] + "more", words)


@pytest.mark.parametrize("query", ["a" * 4_000 + "b", " ".join("a" * n + "b" for n in range(1, 16))])
def test_the_words_of_a_query_are_found_without_going_back(query: str) -> None:
    words, text = snippet_words(query), "a" * SNIPPET_CHARACTERS
    began = time.process_time()
    for _ in range(10):
        assert snippet(text, words).startswith("aaa")
    assert time.process_time() - began < 2  # about 0.03 s; going back for each word, a minute


def test_the_text_of_a_huge_state_is_joined_up_to_the_limit() -> None:
    texts = ["x" * 9_000] * 100_000
    assert len(joined(texts)) == CHARACTERS_PER_SAVE
    assert steps_of(joined, texts) < 10_000
    assert_linear(lambda size: steps_of(lambda: list(strings({"a": [["x", {"b": "y"}]] * size}))), 200)
