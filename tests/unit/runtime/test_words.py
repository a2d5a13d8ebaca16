"""Splitting of a query into words and phrases."""

from __future__ import annotations

from locus_mysql.runtime.words import PARTS_SCORED, parts_of


def test_words_end_at_blanks_and_punctuation_and_phrases_at_quotes() -> None:
    assert parts_of('green-tea, "dark  roast"\tcafé_1') == ["green", "tea", '"dark  roast"', "café_1"]
    assert parts_of(" ,.- ") == []


def test_each_part_counts_once_whatever_its_case() -> None:
    assert parts_of('Tea tea TEA "tea"') == ["TEA", '"tea"']


def test_of_a_long_query_only_the_first_parts_count() -> None:
    assert parts_of(" ".join(f"w{n}" for n in range(100))) == [f"w{n}" for n in range(PARTS_SCORED)]
