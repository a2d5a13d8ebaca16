"""Reading many rows where some may be damaged: `readable`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ..engine.logs import DAMAGE
from ..errors import CorruptCheckpoint

R = TypeVar("R")
T = TypeVar("T")


def readable(parse: Callable[[R], T], found: Iterable[R]) -> Iterator[T]:
    """What was found, parsed. Damaged rows are left out and logged, so that all others can be read.

    Args:
        parse: Makes something of a row; raises `CorruptCheckpoint` if the row is damaged.
        found: The rows.
    """
    for one in found:
        try:
            parsed = parse(one)
        except CorruptCheckpoint as error:
            DAMAGE.warning("What is damaged was left out of an answer; at level DEBUG this logger says which thread's.")
            DAMAGE.debug("Left out of an answer: %s", error)
        else:
            yield parsed
