"""Changes of texts, word by word."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.inspection.differences import LONGEST, Piece, text_changes

TEXTS = st.text(alphabet="ab \n.", max_size=60)


def test_changed_words_are_found_in_their_lines() -> None:
    before = "The tent is 349.00 EUR.\nIt ships from Malmö today.\n"
    after = "The tent is 299.00 EUR.\nIt ships from Malmö tomorrow.\n"
    assert text_changes(before, after) == [
        Piece("same", "The tent is "),
        Piece("removed", "349"),
        Piece("added", "299"),
        Piece("same", ".00 EUR.\nIt ships from Malmö "),
        Piece("removed", "today"),
        Piece("added", "tomorrow"),
        Piece("same", ".\n"),
    ]


def test_long_unchanged_text_is_folded_between_and_beside_changes() -> None:
    context = " ".join(f"word{at}" for at in range(100))
    pieces = text_changes(f"one {context} two", f"eins {context} zwei")
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["removed", "added", "same", "folded", "same", "removed", "added"]
    assert len(pieces[2].text) == len(pieces[4].text) == 80
    pieces = text_changes(f"{context} two", f"{context} zwei")
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["folded", "same", "removed", "added"]


@pytest.mark.parametrize(("before", "after"), [("x" * (LONGEST + 1), "x"), ("one two three", "four five six")])
def test_long_and_different_texts_are_not_compared(before: str, after: str) -> None:
    assert text_changes(before, after) is None


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_the_changes(before: str, after: str) -> None:
    pieces = text_changes(before, after)
    if pieces is not None:
        assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
        assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after


@pytest.mark.parametrize("pair", [("a b ", "b a "), ("x. ", "y. "), ("a\n", "b\n"), ("ab", "ba"), ("a", "a")])
def test_the_time_of_a_comparison_is_limited(pair: tuple[str, str]) -> None:
    before, after = ((text * LONGEST)[:LONGEST] for text in pair)
    begun = time.process_time()
    text_changes(before, after + "!" if len(after) < LONGEST else after)
    assert time.process_time() - begun < 3
