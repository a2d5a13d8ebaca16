"""Words of queries, and excerpts of texts that hold them."""

from __future__ import annotations

import re

#: Of a query, only this many words and phrases count for the score of a hit.
PARTS_SCORED = 16

#: A phrase, or what stands between blanks and ASCII punctuation. A part need not be what MySQL takes for one word.
_PART = re.compile(r'"([^"]*)"|([^\s!-/:-@\[-^`{-~]+)')


def parts_of(query: str) -> list[str]:
    """The parts of a query that count for the score of a hit, each once: phrases in quotes, and words.

    Args:
        query: What is searched for by word.

    Returns:
        At most `PARTS_SCORED`, in the order of the query; phrases with their quotes. Case keeps no two apart.
    """
    parts = [f'"{phrase}"' if phrase else word for phrase, word in _PART.findall(query)]
    return list({part.casefold(): part for part in parts}.values())[:PARTS_SCORED]


def excerpt(text: str, place: int, radius: int = 80) -> str:
    """A part of a text around a place, on one line."""
    start, end = max(0, place - radius), min(len(text), place + radius)
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")
