"""A batch as the statements to send."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect import Statement
from ..drivers.interface import Result
from .operation import Batch, Results

BEGIN = Statement("START TRANSACTION")
COMMIT = Statement("COMMIT")
ROLLBACK = Statement("ROLLBACK")


def is_transaction(batch: Batch) -> bool:
    """Whether the batch needs a transaction of its own; a single statement is one by itself."""
    return batch.atomic and len(batch.statements) > 1


def to_send(batch: Batch) -> tuple[Statement, ...]:
    """The batch's statements, within a transaction if it needs one."""
    return (BEGIN, *batch.statements, COMMIT) if is_transaction(batch) else batch.statements


def to_return(batch: Batch, results: Sequence[Result], *, fate_unknown: bool) -> Results:
    """The results of the batch's own statements."""
    own = results[1:-1] if is_transaction(batch) else results
    return Results(own, batch.names, fate_unknown=fate_unknown)
