"""Operations: generators that yield a `Batch` of statements, and receive its `Results`; and two loops that drive any.

An operation yields its batches one after another; `gather` runs several that only read in the round trips of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from ..dialect import Query, Statement
from ..dialect.statement import column_types
from ..drivers.interface import Result, Row
from ..errors import CorruptCheckpoint

R = TypeVar("R", bound=tuple[Any, ...])
T = TypeVar("T")


#: Whether operations run in a program's own transaction.
IN_TRANSACTION: ContextVar[bool] = ContextVar("locus_mysql_in_transaction", default=False)

#: The types of a row's values.
_Types: TypeAlias = tuple[type, ...]


@dataclass(slots=True)
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


@dataclass(slots=True)
class Pause(Batch):
    """A step that sends nothing, and waits.

    Args:
        seconds: How long.
    """

    statements: tuple[Statement, ...] = ()
    seconds: float = 0


@dataclass(slots=True)
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
        self.earlier_attempt = earlier_attempt
        self.fate_unknown = fate_unknown

    def of(self, statement: Statement) -> Result:
        """Return the result of a statement of the batch, which is found by identity."""
        for own, result in zip(self._batch.statements, self, strict=False):
            if own is statement:
                return result
        raise LookupError(f"The batch has no such statement: {statement.sql}")

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


def read_rows(row_type: type[R], rows: Sequence[Row]) -> list[R]:
    """Return the rows as named tuples.

    Rows of the same types are checked once per process; after that, the check is one look-up per row.

    Args:
        row_type: The named tuple; its annotations are the types that the columns may have.
        rows: The rows.

    Raises:
        CorruptCheckpoint: A row has another number of columns, or a NULL or another type where none is expected. Then
            the answer belongs to another statement, or a component between the server and this process modifies
            answers.
    """
    accepted = _accepted(row_type)
    for row in rows:
        types = tuple(map(type, row))
        if types not in accepted:
            _check(row_type, types)
            accepted.add(types)
    return [tuple.__new__(row_type, row) for row in rows]


def _check(row_type: type[Any], types: _Types) -> None:
    declared = column_types(row_type)
    if len(types) != len(declared) or not all(map(issubclass, types, declared)):
        found = ", ".join(one.__name__ for one in types)
        wanted = ", ".join("|".join(one.__name__ for one in alternatives) for alternatives in declared)
        raise CorruptCheckpoint(
            f"The server's answer does not fit the question: {len(declared)} columns of certain types were expected "
            f"({row_type.__name__}: {wanted:.300}), and these came: {found:.300}. Look for a proxy that changes or "
            f"mixes up answers; if you wrote the query, compare {row_type.__name__} with its columns."
        )


@lru_cache(maxsize=1024)
def _accepted(row_type: type[Any]) -> set[_Types]:
    """Return the set of the types of rows that `_check` has passed; `read_rows` adds to it."""
    return set()


def gather(operations: Sequence[Operation[Any]]) -> Operation[list[Any]]:
    """Run operations concurrently: the batches that they yield in each step are sent as one batch.

    Args:
        operations: Operations that only read, as all of them fail if one does.

    Returns:
        The result of each operation, in their order.
    """
    returned: list[Any] = [None] * len(operations)
    waiting: dict[int, Batch] = {}
    try:
        for index, operation in enumerate(operations):
            _advance(operation, None, index, waiting, returned)
        while waiting:
            while without := [index for index, batch in waiting.items() if not batch.statements]:
                for index in without:
                    batch = waiting.pop(index)
                    _advance(operations[index], (yield batch), index, waiting, returned)
            if not waiting:
                break
            batches = dict(waiting)
            waiting.clear()
            merged = tuple(statement for batch in batches.values() for statement in batch.statements)
            results = yield Batch(merged, atomic=False)
            start = 0
            for index, batch in batches.items():
                end = start + len(batch.statements)
                _advance(operations[index], Results(results[start:end], batch), index, waiting, returned)
                start = end
    finally:
        for operation in operations:
            operation.close()
    return returned


def _advance(
    operation: Operation[Any], results: Results | None, index: int, waiting: dict[int, Batch], returned: list[Any]
) -> None:
    try:
        waiting[index] = next(operation) if results is None else operation.send(results)
    except StopIteration as done:
        returned[index] = done.value


S = TypeVar("S")
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
