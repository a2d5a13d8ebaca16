"""What an operation is: a generator that yields what to run and is sent what came back."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..dialect import Statement
from ..drivers.base import Result

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements that are carried out together or not at all, in one round trip where the driver can.

    Args:
        statements: Run in this order. More than one run as one transaction.
        landed: Asked before the batch is repeated when it is not known whether an earlier try was carried out. If it
            finds a row the batch is not repeated, and the result of this statement is its only result.
        atomic: If False, each is a transaction of its own, and all are repeated if one of them fails.
    """

    statements: tuple[Statement, ...]
    landed: Statement | None = None
    atomic: bool = True

    @classmethod
    def of(cls, *statements: Statement) -> Batch:
        """An atomic batch of these statements."""
        return cls(statements)


#: Yields batches, is sent a result for each statement, returns what the caller wants. An engine runs it, asynchronous
#: or not. Errors are raised where the batch was yielded, so an operation can catch `Duplicate`
#: and `Outdated`.
Operation: TypeAlias = Generator[Batch, list[Result], T]


class Undone(Exception):
    """The batch was undone for a reason that an operation may expect.

    An operation that does not lets it pass; the engine then tells the caller what the server refused, its cause.
    """


class Duplicate(Undone):
    """The batch was undone because a unique key exists already."""


class Outdated(Undone):
    """The batch was undone because what it relied on is no longer so: a value came out as NULL where none may be."""
