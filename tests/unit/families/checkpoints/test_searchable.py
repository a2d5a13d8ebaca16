"""Which text is searched, and the snippet that shows it."""

from __future__ import annotations

from typing import Any

from locus_mysql.families.checkpoints.coding.delta import Lineage, extend
from locus_mysql.families.checkpoints.searchable import (
    CHARACTERS_PER_TEXT,
    SHARED_TEXT_END,
    snippet,
    snippet_words,
    strings,
    text_of_plain,
)

from .states import delta_of


def text_after(state: dict[str, Any], *before: dict[str, Any]) -> tuple[str, bool]:
    """The text of a state that follows others."""
    lineage: Lineage = ()
    for seq, earlier in enumerate(before, start=1):
        lineage = extend(lineage, delta_of(earlier, lineage), seq, seq.to_bytes(16))
    return text_of_plain(state, delta_of(state, lineage))


def test_a_first_state_gives_all_its_text() -> None:
    assert text_after({"m": ["a", {"b": "c"}], "h": {"k": "d"}}) == (f"a\nc{SHARED_TEXT_END}d", False)


def test_a_state_that_goes_on_gives_what_is_new_and_its_head() -> None:
    assert text_after({"m": ["a", "b"], "h": "x"}, {"m": ["a"], "h": "y"}) == (f"b{SHARED_TEXT_END}x", True)
    assert text_after({"m": ["a"]}, {"m": ["a"]}) == ("", True)


def test_an_edited_state_gives_all_its_text() -> None:
    assert text_after({"m": ["b", "c"]}, {"m": ["a"]}) == ("b\nc", False)
    assert text_after({"m": ["a", "b"]}, {"m": ["a"], "n": ["gone"]}) == ("a\nb", False)


def test_a_new_list_beside_one_that_goes_on_is_new_text() -> None:
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
    def test_it_stands_around_the_first_word_found(self) -> None:
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

    def test_without_a_match_it_is_the_beginning(self) -> None:
        assert snippet("a short text", snippet_words("nothing")) == "a short text"

    def test_it_shows_neither_the_separator_nor_line_breaks(self) -> None:
        assert snippet(f"one\ntwo{SHARED_TEXT_END}three", snippet_words("two")) == "one two three"

    def test_it_copes_with_empty_texts_and_queries(self) -> None:
        assert snippet("", snippet_words("a")) == ""
        assert snippet("abc", snippet_words("")) == "abc"
