"""Several operations that only read, in the round trips of one: `abreast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.operation import Batch, Operation, Results


def gather(operations: Sequence[Operation[Any]]) -> Operation[list[Any]]:
    """Run operations side by side: what all of them yield at a time is one batch.

    Args:
        operations: They only read, so that nothing is lost if one of them fails.

    Returns:
        What each returns, in their order.
    """
    returned: list[Any] = [None] * len(operations)
    waiting: dict[int, Batch] = {}
    try:
        for place, operation in enumerate(operations):
            _go_on(operation, None, place, waiting, returned)
        while waiting:
            batches = dict(waiting)
            waiting.clear()
            merged = tuple(statement for batch in batches.values() for statement in batch.statements)
            results = yield Batch(merged, atomic=False)
            start = 0
            for place, batch in batches.items():
                end = start + len(batch.statements)
                _go_on(operations[place], Results(results[start:end], batch.names), place, waiting, returned)
                start = end
    finally:
        for operation in operations:
            operation.close()
    return returned


def _go_on(
    operation: Operation[Any], results: Results | None, place: int, waiting: dict[int, Batch], returned: list[Any]
) -> None:
    try:
        waiting[place] = next(operation) if results is None else operation.send(results)
    except StopIteration as done:
        returned[place] = done.value
