"""`Driven`: operations that a test drives by hand, without an engine."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from locus_mysql.drivers.interface import Result, Row
from locus_mysql.engine.operation import Batch, Operation, Results


class Landed:
    """The answer to a batch that an earlier attempt carried out.

    Args:
        row: The row that `Batch.outcome_query` finds.
    """

    def __init__(self, *row: Any) -> None:
        self.row: Row = row


class Driven:
    """An operation, with the batch whose results it waits for.

    Args:
        operation: The operation.
    """

    def __init__(self, operation: Operation[Any]) -> None:
        self._operation = operation
        self.batch = Batch(())

    def __next__(self) -> Batch:
        self.batch = next(self._operation)
        return self.batch

    def send(self, answer: Results | Iterable[Result] | Landed | None) -> Batch:
        """Answer the batch with a result for each statement; return the next batch. None starts the operation."""
        if answer is None:
            return next(self)
        if isinstance(answer, Landed):
            answer = Results((), self.batch, answer.row)
        elif not isinstance(answer, Results):
            answer = Results(answer, self.batch)
        self.batch = self._operation.send(answer)
        return self.batch

    def throw(self, error: Exception) -> Batch:
        """Fail the batch; return the next batch."""
        self.batch = self._operation.throw(error)
        return self.batch

    def close(self) -> None:
        """Close the operation."""
        self._operation.close()


class DrivenOperations:
    """The operations of a family, each as a `Driven`.

    Args:
        operations: The object that has them.
    """

    def __init__(self, operations: Any) -> None:
        self._operations = operations

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._operations, name)
        if any(inspect.isgeneratorfunction(one) for one in vars(type(found)).values()):  # a part of the operations
            return DrivenOperations(found)
        if not inspect.isgeneratorfunction(found):
            return found
        return lambda *args, **options: Driven(found(*args, **options))
