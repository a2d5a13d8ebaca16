"""Runs several operations that only read in the round trips of one: `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.operation import Batch, Operation, Results


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
