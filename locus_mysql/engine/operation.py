"""Operations: generators that yield a `Batch` of statements, and receive its `Results`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ..dialect import Query, Statement
from ..drivers.interface import Result, Row
from .rows import read_rows

R = TypeVar("R", bound=tuple[Any, ...])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements that are carried out together or not at all, in one round trip where the driver can do that.

    Args:
        statements: Run in this order. More than one run as one transaction.
        outcome_query: A query that finds a row if the batch was carried out. It is sent before the batch is
            repeated after an answer was lost. If it finds a row, the batch is not repeated, and the row is
            `Results.earlier_attempt`. The engine repeats every batch whose answer was lost, writes too: without this
            query, a write may be done twice.
        atomic: If False, each statement is a transaction of its own, and all are repeated if one of them fails.
        lock: The row that the batch locks first, as a table's name and the beginning of a key. Given for short writes
            that have `outcome_query`: those that wait for a connection may be carried out in one transaction, in this
            order (`group_commit`).
    """

    statements: tuple[Statement, ...]
    outcome_query: Statement | None = None
    atomic: bool = True
    lock: tuple[str | bytes, ...] = ()

    @property
    def only_reads(self) -> bool:
        """Return whether the batch changes nothing."""
        return all(statement.brings_rows for statement in self.statements)

    @classmethod
    def of(
        cls,
        *steps: Statement | Sequence[Statement],
        outcome_query: Statement | None = None,
        lock: tuple[str | bytes, ...] = (),
    ) -> Batch:
        """Return an atomic batch.

        Args:
            steps: The statements in order; those that belong together may be given as a tuple.
            outcome_query: See `Batch`.
            lock: See `Batch`.
        """
        statements: list[Statement] = []
        for step in steps:
            if isinstance(step, Statement):
                statements.append(step)
            else:
                statements += step
        return cls(tuple(statements), outcome_query, lock=lock)


@dataclass(frozen=True, slots=True)
class Pause(Batch):
    """A step that sends nothing, and waits.

    Args:
        seconds: How long.
    """

    statements: tuple[Statement, ...] = ()
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Computation(Batch):
    """A step that sends nothing: long work, which an event loop does in a thread.

    Args:
        work: The work. It raises no error, and keeps its outcome itself; see `compute`.
    """

    statements: tuple[Statement, ...] = ()
    work: Callable[[], None] = lambda: None


class Results(list[Result]):
    """A result for each statement of a batch, in their order.

    Args:
        results: The results.
        batch: The batch.
        earlier_attempt: The row that identified an earlier attempt of the batch. Then `results` is empty.
        fate_unknown: Whether an earlier attempt of the batch may still reach the server.
    """

    def __init__(
        self, results: Iterable[Result], batch: Batch, earlier_attempt: Row | None = None, *, fate_unknown: bool = False
    ) -> None:
        super().__init__(results)
        self._batch = batch
        self._by_statement: dict[int, Result] | None = None
        self.earlier_attempt = earlier_attempt
        self.fate_unknown = fate_unknown

    def of(self, statement: Statement) -> Result:
        """Return the result of a statement of the batch, which is found by identity."""
        if self._by_statement is None:
            self._by_statement = dict(zip(map(id, self._batch.statements), self, strict=False))
        try:
            return self._by_statement[id(statement)]
        except KeyError:
            raise LookupError(f"The batch has no such statement: {statement.sql}") from None

    def rows(self, query: Query[R]) -> list[R]:
        """Return the rows of a query of the batch, or the row of its `Batch.outcome_query`.

        Raises:
            CorruptCheckpoint: A row is not as the query declares.
        """
        if self.earlier_attempt is not None and query is self._batch.outcome_query:
            return read_rows(query.row, (self.earlier_attempt,))
        return read_rows(query.row, self.of(query).rows)

    def row(self, query: Query[R]) -> R | None:
        """Return the first of the rows that `rows` returns; None if there is none."""
        rows = self.rows(query)
        return rows[0] if rows else None


#: Yields batches, receives the results of each, returns the result of the call. Both engines run it.
#: Errors are raised where the batch was yielded, so an operation can catch `Duplicate` and `Outdated`.
Operation: TypeAlias = Generator[Batch, Results, T]


def fetch(query: Query[R]) -> Operation[list[R]]:
    """Run one query; return its rows.

    Raises:
        CorruptCheckpoint: A row is not as the query declares.
    """
    results = yield Batch((query,))
    return results.rows(query)


def compute(work: Callable[[], T]) -> Operation[T]:
    """Return the outcome of long work, such as decoding megabytes; an event loop does it in a thread.

    Args:
        work: The work. An error of it is raised here.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # raised in the operation
            outcome.set_exception(error)

    yield Computation(work=run)
    return outcome.result(0)


class Undone(Exception):
    """The batch was rolled back for a reason that an operation may expect.

    If the operation does not catch it, the engine raises an error that explains its cause, the server's refusal.
    """


class Duplicate(Undone):
    """The batch was undone because a unique key exists already.

    Args:
        table: The table's name.
        key: The key's name; ``PRIMARY`` is the primary key.
        message: The server's message.
    """

    def __init__(self, table: str, key: str, message: str) -> None:
        super().__init__(message)
        self.table = table
        self.key = key


class Outdated(Undone):
    """The batch was undone because its assumptions no longer hold: a thread was deleted or written to meanwhile."""
