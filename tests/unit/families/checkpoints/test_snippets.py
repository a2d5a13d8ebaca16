"""Snippets of hits."""

from __future__ import annotations

import time

import pytest

from locus_mysql.families.checkpoints.searchable import (
    CHARACTERS_PER_SAVE,
    SNIPPET_CHARACTERS,
    SNIPPET_WORDS,
    joined,
    snippet,
    snippet_words,
    strings,
)
from tests.growth import assert_linear, steps_of


def test_a_snippet_is_around_the_first_word() -> None:
    text = "x " * 500 + "the Walrus and the carpenter" + " y" * 500
    found = snippet(text, snippet_words("carpenter WALRUS"))
    assert "Walrus and the carpenter" in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert len(found) <= 162


def test_a_word_that_a_text_does_not_hold_gives_its_beginning() -> None:
    assert snippet("one two", snippet_words("three")) == "one two"
    assert snippet("", snippet_words("")) == ""
    assert snippet("a+b (c", snippet_words("(c")) == "a+b (c"


def test_of_a_huge_query_and_a_huge_text_a_part_is_looked_at() -> None:
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
