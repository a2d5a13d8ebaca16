"""Compares two texts word by word, and folds what is unchanged. Pure functions with a limited number of comparisons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from .alignment import ComparisonBudget, common

#: Characters of texts that are compared; longer ones are shown whole.
LONGEST = 20_000

#: Characters of unchanged text shown on each side of a change, and the length from which the rest is folded.
AROUND, FOLDED_FROM = 80, 240

#: A line, and a word, a run of blanks or a sign.
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"\w+|[^\S\n]+|[^\w]")

PieceKind: TypeAlias = Literal["same", "removed", "added", "folded"]


class Piece(NamedTuple):
    """A part of two texts.

    Args:
        kind: Whether both have it, or only the first or the second one; ``folded`` is unchanged and left out.
        text: The text.
    """

    kind: PieceKind
    text: str


def text_changes(before: str, after: str) -> Sequence[Piece] | None:
    """Return the changes from one text to another; None if they are too long or have nothing in common."""
    if max(len(before), len(after)) > LONGEST:
        return None
    budget = ComparisonBudget()
    pieces = []
    for piece in _changes(_LINES.findall(before), _LINES.findall(after), budget):
        kind, old, new = piece
        if kind == "same" or not old or not new:
            pieces += [Piece("same", old)] if kind == "same" else _replaced(old, new)
        else:  # changed lines are compared word by word
            for inner, was, now in _changes(_WORDS.findall(old), _WORDS.findall(new), budget):
                pieces += [Piece("same", was)] if inner == "same" else _replaced(was, now)
    pieces = _joined(pieces)
    same = sum(len(piece.text) for piece in pieces if piece.kind == "same")
    if 4 * same < min(len(before), len(after)):
        return None
    return [made for at, piece in enumerate(pieces) for made in _folded(piece, at == 0, at == len(pieces) - 1)]


def _changes(
    before: Sequence[str], after: Sequence[str], budget: ComparisonBudget
) -> list[tuple[Literal["same", "changed"], str, str]]:
    """Return the common and the different runs of two lists of texts, joined."""
    runs: list[tuple[Literal["same", "changed"], str, str]] = []
    index = other = 0
    same: list[str] = []
    for at, counterpart in [*common(before, after, budget), (len(before), len(after))]:
        if at > index or counterpart > other or at == len(before):
            if same:
                runs.append(("same", "".join(same), ""))
                same = []
            old, new = "".join(before[index:at]), "".join(after[other:counterpart])
            if old or new:
                runs.append(("changed", old, new))
        if at < len(before):
            same.append(before[at])
        index, other = at + 1, counterpart + 1
    return runs


def _replaced(old: str, new: str) -> list[Piece]:
    return [Piece(kind, text) for kind, text in (("removed", old), ("added", new)) if text]  # type: ignore[arg-type]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join unchanged pieces that follow each other."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.kind == joined[-1].kind == "same":
            joined[-1] = Piece("same", joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def _folded(piece: Piece, first: bool, last: bool) -> list[Piece]:
    """Return a piece; of a long unchanged one only its ends next to changes."""
    if piece.kind != "same" or len(piece.text) < FOLDED_FROM:
        return [piece]
    begin, end = 0 if first else AROUND, len(piece.text) - (0 if last else AROUND)
    ends = Piece("same", piece.text[:begin]), Piece("same", piece.text[end:])
    return [one for one in (ends[0], Piece("folded", piece.text[begin:end]), ends[1]) if one.text]
