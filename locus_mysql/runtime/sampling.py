"""Random sampling: see `one_in`."""

from __future__ import annotations

from random import random


def one_in(count: int) -> bool:
    """Return True in one of ``count`` calls, at random.

    A counter would never reach ``count`` in processes that stop after a few writes.
    """
    return random() * count < 1  # noqa: S311 - spreads work, guards no secret
