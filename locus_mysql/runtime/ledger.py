"""Operations on the idempotency ledger of a family, as generators that do no I/O."""

from __future__ import annotations

from ..dialect import Query, Statement
from ..dialect.ledger import FORGOTTEN_AT_ONCE, Ledger, OutcomeRow
from ..engine.operation import Batch, Duplicate, Operation, Outdated, Results


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


def refuse_late(ledger: Ledger, outcome: Duplicate | Outdated | Results, tenant: str, token: bytes) -> Operation[None]:
    """Void the token of a write that changed nothing, if an earlier attempt may still reach the server.

    Args:
        ledger: The ledger of the family.
        outcome: The error with which the write ended.
        tenant: The tenant of the write.
        token: The token of the write.
    """
    if outcome.fate_unknown:
        yield from void_token(ledger, tenant, token)


def void_token(ledger: Ledger, tenant: str, token: bytes) -> Operation[None]:
    """Record the token of a write that was not carried out, so that a late packet of it is refused."""
    yield Batch((ledger.record(tenant, token),), ledger.find(tenant, token))


def forget_old_tokens(ledger: Ledger) -> Operation[int]:
    """Remove the tokens of all tenants that no write is repeated with any more; returns their number."""
    removed = 0
    while True:
        (forgotten,) = yield Batch.of(ledger.forget_old())
        removed += forgotten.affected
        if forgotten.affected < FORGOTTEN_AT_ONCE:
            return removed
