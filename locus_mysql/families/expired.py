"""Maintenance of families whose entities expire as a whole: counts and removes expired ones and old tokens. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from ..dialect.dialect import Dialect
from ..dialect.inspection import ExpiredCount
from ..dialect.statement import Query
from ..engine.operation import Batch, Operation
from ..records import ledger
from .family import Count, Counts

#: The number of expired entities that one statement finds. Each is removed in a transaction of its own.
AT_ONCE = 500


def count_waste(noun: str, sql: Dialect, expired: Query[ExpiredCount]) -> Operation[Counts]:
    """Count rows of all tenants that are no longer needed, or soon will not be. One round trip.

    Args:
        noun: The name of an expired entity, for messages.
        sql: The family's.
        expired: Counts the expired entities.
    """
    tokens = ledger.COUNT(sql)
    results = yield Batch((expired, tokens), atomic=False)
    (entities,), (recorded,) = results.rows(expired), results.rows(tokens)
    return _counts(noun, entities.expired, recorded.tokens)


def remove_waste(noun: str, sql: Dialect, sweep: Callable[[int], Operation[int]]) -> Operation[Counts]:
    """Remove rows of all tenants that writers also remove from time to time. Age alone removes nothing.

    Args:
        noun: The name of an expired entity, for messages.
        sql: The family's.
        sweep: Removes at most a number of expired entities, and returns the number that it removed.
    """
    expired = 0
    while removed := (yield from sweep(AT_ONCE)):
        expired += removed
    return _counts(noun, expired, (yield from ledger.forget_old_tokens(sql)))


def _counts(noun: str, expired: int, tokens: int) -> Counts:
    # Tokens identify repeated writes for a quarter of an hour.
    return Count(expired, f"{{expired {noun}}}"), Count(tokens, "{record} of recent writes")
