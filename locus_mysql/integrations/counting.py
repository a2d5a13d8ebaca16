"""Numbers in words, as reports and commands say them: `counted`."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """So many of something: ``1 thread``, ``2,000 threads``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
