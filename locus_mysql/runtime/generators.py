"""Drives generators that yield steps and are sent the result of each step, awaited or blocking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")
G = TypeVar("G", bound=Generator[Any, Any, Any])


def name_of(steps: object) -> str:
    """Return the name of a generator, which is that of its function or the one that `named` gave it."""
    return getattr(steps, "__name__", "call").lstrip("_")


def named(steps: G, method: str) -> G:
    """Return a generator with the name of the public method that runs it, under which calls are logged and traced."""
    steps.__name__ = method  # type: ignore[attr-defined]  # a generator's name can be set
    return steps


async def drive_awaited(steps: Generator[S, Any, T], do: Callable[[S], Awaitable[Any]]) -> T:
    """Run a generator to its end and return its result.

    Args:
        steps: The generator; it is always closed.
        do: Does one step. The generator is sent its result; an exception is raised inside the generator.
    """
    try:
        step = next(steps)
        while True:
            try:
                result = await do(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        returned: T = stop.value
        return returned
    finally:
        steps.close()


def drive_blocking(steps: Generator[S, Any, T], do: Callable[[S], Any]) -> T:
    """`drive_awaited`, blocking."""
    try:
        step = next(steps)
        while True:
            try:
                result = do(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        returned: T = stop.value
        return returned
    finally:
        steps.close()
