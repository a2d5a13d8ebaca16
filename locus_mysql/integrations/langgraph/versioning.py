"""Versions of channels, as LangGraph's own savers number them."""

from __future__ import annotations

import random


def next_version(current: str | int | float | None) -> str:
    """The version after another: a number of 32 digits, and chance behind it so that branches differ.

    In the form of the official savers, so that versions of threads that came from them go on rising.
    """
    if current is None:
        number = 0
    elif isinstance(current, str):
        number = int(current.split(".")[0])
    else:
        number = int(current)
    return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - tells branches apart, guards no secret
