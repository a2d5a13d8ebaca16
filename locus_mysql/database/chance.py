"""What one call in many does for all: whether it is this one's turn is left to chance, see `its_turn`."""

from __future__ import annotations

from random import random


def its_turn(one_in: int) -> bool:
    """Whether this is the one write in so many that does something for others as well.

    Nothing is counted, as a process may end after a few writes, and then nobody would ever do it.
    """
    return random() * one_in < 1  # noqa: S311 - spreads work, guards no secret
