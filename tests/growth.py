"""Measures how a function's work grows with its input, in executed steps, independently of the machine's load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

#: At four times the size, linear work grows by a factor of 4, and quadratic work by a factor of 16.
FACTOR, MOST = 4, 6.0


def steps_of(work: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    """Count the Python instructions that a function executes; a call of a built-in function counts as one."""
    # From Python 3.12 on, not all instructions are counted while a function is traced for the first time.
    for _ in range(1 if sys.version_info < (3, 12) else 2):
        count = _traced(work, arguments, options)
    return count


def _traced(work: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    count = 0

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work(*arguments, **options)
    finally:
        sys.settrace(before)
    return count


def assert_linear(cost: Callable[[int], float], size: int, most: float = MOST) -> None:
    """Check that the cost at four times a size is at most about four times as much.

    Args:
        cost: Returns the cost of an input of a size.
        size: The smaller size.
        most: The largest allowed ratio.
    """
    small, large = cost(size), cost(FACTOR * size)
    assert large <= most * small, (
        f"{small:g} at {size}, {large:g} at {FACTOR * size}: {large / small:.1f} times as much"
    )
