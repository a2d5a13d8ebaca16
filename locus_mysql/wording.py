"""Words for messages and reports: `did_you_mean` suggests names, `counted` puts a noun behind a number."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name that ``name`` resembles, after a space; empty if there is none."""
    from difflib import get_close_matches  # only messages of errors need it

    close = get_close_matches(name[:100], list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it needs one: ``1 thread``, ``2,000 threads``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
