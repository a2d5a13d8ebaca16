"""Splitting of a query into words and phrases, and the scores of texts that contain them."""

from __future__ import annotations

from math import log

import pytest

from locus_mysql.dialect.words import PARTS_LIMIT, parts_of, patterns_of, scores


def test_words_end_at_blanks_and_any_punctuation_and_phrases_at_quotes() -> None:
    assert parts_of('green-tea, "dark  roast"\tcafé_1') == ["green", "tea", "dark roast", "café_1"]
    assert parts_of("order\u20134711 don\u2019t 「東京」タワー €5") == [
        "order",
        "4711",
        "don",
        "t",
        "東京",
        "タワー",
        "5",
    ]
    assert parts_of("हिन्दी cafe\u0301") == ["हिन्दी", "cafe\u0301"]
    assert parts_of(' ,.- "" "!" 😀') == []


def test_each_part_counts_once_whatever_its_case() -> None:
    assert parts_of('Tea tea TEA "tea" "green tea"') == ["tea", "green tea"]


def test_of_a_long_query_only_the_first_parts_count() -> None:
    assert parts_of(" ".join(["no", *(f"word{n:03}" for n in range(100))])) == [
        f"word{n:03}" for n in range(PARTS_LIMIT)
    ]


def test_a_pattern_finds_whole_words_unless_parts_of_words_are_indexed() -> None:
    (word,) = patterns_of("Rome", "default")
    assert word.search("to rome, by train")
    assert not word.search("chrome")
    (phrase,) = patterns_of('"order 4711"', "default")
    assert phrase.search("Order\u20134711")
    (part,) = patterns_of("東京", "ngram")
    assert part.search("私は東京タワー")


def test_rare_parts_weigh_more_and_a_text_with_all_scores_1() -> None:
    everything, common, nothing = scores([(True, True), (True, False), (False, False)])
    assert everything == 1.0
    assert common == pytest.approx(log(2) / (log(2) + log(3)))
    assert nothing == 0.0
    assert scores([]) == []
