"""A batch as the statements to send."""

from __future__ import annotations

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
    statements = batch.statements
    return (BEGIN, *statements, COMMIT) if batch.atomic and len(statements) > 1 else statements


def to_return(batch: Batch, results: list[Result], *, fate_unknown: bool) -> Results:
    """The results of the batch's own statements."""
    own = results if len(results) == len(batch.statements) else results[1:-1]
    return Results(own, batch.names, fate_unknown=fate_unknown)
