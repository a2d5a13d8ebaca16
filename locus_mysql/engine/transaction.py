"""A batch as the statements to send, and the results of its own statements among those that came back."""

from __future__ import annotations

from ..dialect import Statement
from ..drivers.interface import DriverError, Result
from .commands import CommandGenerator
from .operation import Batch, Results
from .servers import ServerConnection

BEGIN = Statement("START TRANSACTION")
COMMIT = Statement("COMMIT")
ROLLBACK = Statement("ROLLBACK")


def to_send(batch: Batch) -> tuple[Statement, ...]:
    """The batch's statements, within a transaction if it needs one."""
    return (BEGIN, *batch.statements, COMMIT) if batch.is_transaction else batch.statements


def own_results(batch: Batch, results: list[Result], *, fate_unknown: bool) -> Results:
    """Return the results of the batch's own statements, without those that begin and end the transaction."""
    own = results[1:-1] if batch.is_transaction else results
    return Results(own, batch, fate_unknown=fate_unknown)


def roll_back(primary: ServerConnection, *after: Statement) -> CommandGenerator[None]:
    """Undo the open transaction, and execute statements after it; drop the connection if that fails."""
    try:
        yield from primary.execute((ROLLBACK, *after))
    except DriverError:  # the transaction may still be open, and must not be continued by another call
        primary.connection.abort()
