"""Words of queries, and excerpts of texts that contain them."""

from __future__ import annotations

import re

#: Maximum number of words and phrases of a query that are used for the score of a hit.
PARTS_SCORED = 16

#: A phrase, or a run of characters between spaces and ASCII punctuation. MySQL may split such a part differently.
_PART = re.compile(r'"([^"]*)"|([^\s!-/:-@\[-^`{-~]+)')


def parts_of(query: str) -> list[str]:
    """Return the parts of a query that are used for the score of a hit, each once: quoted phrases, and words.

    Args:
        query: The query of a search by word.

    Returns:
        At most `PARTS_SCORED`, in the order of the query; phrases with their quotes. Parts that differ only in case are
        the same.
    """
    parts = [f'"{phrase}"' if phrase else word for phrase, word in _PART.findall(query)]
    return list({part.casefold(): part for part in parts}.values())[:PARTS_SCORED]


def excerpt(text: str, offset: int, radius: int = 80) -> str:
    """Return the part of a text around a position, on one line."""
    start, end = max(0, offset - radius), min(len(text), offset + radius)
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")
