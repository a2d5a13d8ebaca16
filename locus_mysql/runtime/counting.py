"""Numbers in words, for reports and commands: `counted`."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it needs one: ``1 thread``, ``2,000 threads``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
