"""Operations on the idempotency ledger of a family, as generators that do no I/O."""

from __future__ import annotations

from ..dialect import Query, Statement
from ..dialect.ledger import FORGOTTEN_AT_ONCE, Ledger, OutcomeRow
from ..engine.operation import Batch, Operation, Results


def affected_rows(results: Results, statement: Statement, outcome_query: Query[OutcomeRow]) -> int:
    """Return the number of rows that a statement affected, in this or an earlier attempt of its batch.

    Args:
        results: The results of the batch.
        statement: A statement of the batch, which is followed by `Ledger.record_affected`.
        outcome_query: `Batch.outcome_query`.
    """
    if results.earlier_attempt is None:
        return results.of(statement).affected
    return results.rows(outcome_query)[0].outcome or 0


def forget_old_tokens(ledger: Ledger) -> Operation[int]:
    """Remove the tokens of all tenants that no write is repeated with any more; returns their number."""
    removed = 0
    while True:
        (forgotten,) = yield Batch.of(ledger.forget_old())
        removed += forgotten.affected
        if forgotten.affected < FORGOTTEN_AT_ONCE:
            return removed
