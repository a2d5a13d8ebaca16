"""How the work of a function grows with its input, counted in calls instead of seconds, so that no other load matters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

#: At four times the size, linear work is four times as much; quadratic work is sixteen times as much.
FACTOR, MOST = 4, 6.0


def calls_of(work: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    """How many Python lines and built-in calls a function runs through."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        work(*arguments, **options)
    finally:
        sys.settrace(before)
    return count


def assert_linear(cost: Callable[[int], float], size: int, most: float = MOST) -> None:
    """Check that the cost at four times a size is at most about four times as much.

    Args:
        cost: What an input of a size costs.
        size: The smaller size.
        most: The ratio that is allowed.
    """
    small, large = cost(size), cost(FACTOR * size)
    assert large <= most * small, f"{small:g} at {size}, {large:g} at {FACTOR * size}: {large / small:.1f} times as much"
