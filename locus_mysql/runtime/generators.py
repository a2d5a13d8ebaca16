"""Running generators that yield what is to be done and are sent what came of it, awaited or blocking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


async def drive_awaited(steps: Generator[S, Any, T], answer: Callable[[S], Awaitable[Any]]) -> T:
    """What a generator returns.

    Args:
        steps: The generator; it is closed in any case.
        answer: Does one step; what it raises is raised in the generator.
    """
    try:
        step = next(steps)
        while True:
            try:
                came = await answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(came)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


def drive_blocking(steps: Generator[S, Any, T], answer: Callable[[S], Any]) -> T:
    """The same, blocking."""
    try:
        step = next(steps)
        while True:
            try:
                came = answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(came)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()
