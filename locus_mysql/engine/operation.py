"""What an operation is: a generator that yields what is to be run, and is sent what came back."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from ..dialect import Statement
from ..drivers.interface import Result, Row

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements that are carried out together or not at all, in one round trip where the driver can.

    Args:
        statements: Run in this order. More than one run as one transaction.
        landed: Asked before the batch is repeated when it is not known whether an earlier try was carried out. If it
            finds a row, the batch is not repeated, and the operation is given that row as `Results.landed`.
        atomic: If False, each statement is a transaction of its own, and all are repeated if one of them fails.
        names: The places of the statements whose results the operation asks for by name.
        feeds_no_save: Whether it only reads, and what no save goes on from. With ``reads="secondary"``, a secondary
            may answer it.
    """

    statements: tuple[Statement, ...]
    landed: Statement | None = None
    atomic: bool = True
    names: Mapping[str, int] = field(default_factory=dict)
    feeds_no_save: bool = False

    @property
    def only_reads(self) -> bool:
        """Whether nothing is changed by it."""
        return all(statement.brings_rows for statement in self.statements)

    @classmethod
    def of(cls, *statements: Statement) -> Batch:
        """An atomic batch of these statements."""
        return cls(statements)

    @classmethod
    def query(cls, statement: Statement) -> Batch:
        """A question about many threads that brings no states, so that no save goes on from the answer.

        A state that a secondary gives may be older than one that another process has saved, and a save that goes on
        from it would leave that out. So `of` is for what loads a state, and for what tells which one is the newest.
        """
        return cls((statement,), feeds_no_save=True)

    @classmethod
    def named(
        cls, *steps: Statement | tuple[Statement, ...], landed: Statement | None = None, **results: Statement
    ) -> Batch:
        """An atomic batch whose results are asked for by name.

        Args:
            steps: The statements in order; those that belong together may be given as a tuple.
            landed: See `Batch`.
            results: By name, those of the statements whose results are wanted.
        """
        statements = tuple(_flat(steps))
        names = {name: _place(statements, statement) for name, statement in results.items()}
        return cls(statements, landed, names=names)


class Results(list[Result]):
    """A result for each statement of a batch, in their order, and by name.

    Args:
        results: The results.
        names: The places of those that have a name.
        landed: The row by which an earlier try of the batch was recognised. Then there are no results.
        fate_unknown: Whether an earlier try of the batch may still be on its way to the server.
    """

    def __init__(
        self,
        results: Iterable[Result],
        names: Mapping[str, int],
        landed: Row | None = None,
        *,
        fate_unknown: bool = False,
    ) -> None:
        super().__init__(results)
        self._names = names
        self.landed = landed
        self.fate_unknown = fate_unknown

    def named(self, name: str) -> Result:
        """The result of the statement with this name."""
        return self[self._names[name]]


#: Yields batches, is sent the results of each, returns what the caller wants. An engine runs it, asynchronous or not.
#: Errors are raised where the batch was yielded, so an operation can catch `Duplicate` and `Outdated`.
Operation: TypeAlias = Generator[Batch, Results, T]


class Undone(Exception):
    """The batch was undone for a reason that an operation may expect.

    An operation that does not expect it lets it pass. The engine then tells the caller what the server refused, which
    is its cause.
    """


class Duplicate(Undone):
    """The batch was undone because a unique key exists already.

    Args:
        table: The table's name.
        key: The key's name; ``PRIMARY`` is the primary key.
        words: The server's words.
        fate_unknown: Whether an earlier try may still be on its way to the server.
    """

    def __init__(self, table: str, key: str, words: str, *, fate_unknown: bool = False) -> None:
        super().__init__(words)
        self.table = table
        self.key = key
        self.fate_unknown = fate_unknown


class Outdated(Undone):
    """The batch was undone because what it relied on has changed: a thread is gone, or another process wrote to it.

    Args:
        words: The server's words.
        fate_unknown: Whether an earlier try may still be on its way to the server.
    """

    def __init__(self, words: str, *, fate_unknown: bool = False) -> None:
        super().__init__(words)
        self.fate_unknown = fate_unknown


def _flat(steps: Iterable[Statement | tuple[Statement, ...]]) -> Iterable[Statement]:
    for step in steps:
        if isinstance(step, Statement):
            yield step
        else:
            yield from step


def _place(statements: tuple[Statement, ...], wanted: Statement) -> int:
    return next(place for place, statement in enumerate(statements) if statement is wanted)
