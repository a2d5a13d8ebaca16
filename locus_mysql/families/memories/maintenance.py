"""Vacuum and health, as generators that do no I/O: what nobody needs is counted, and removed a batch at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import cast

from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.maintenance import KEPT_IN
from ...dialect.memories.writing import TOKENS_AT_ONCE
from ...engine.operation import Batch, Operation
from .writing import REMOVED_KEPT_US, ItemKey, WritingOperations

#: How much one transaction removes.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Waste:
    """What is stored of a tenant, or was removed, that nobody needs.

    Args:
        expired: Items that have expired.
        loose: Items that are not there and have embeddings, as somebody deleted rows by hand.
        removed: What tells caches of embeddings that were removed; needed for an hour.
        tokens: What tells of writes that were carried out; needed for a quarter of an hour.
    """

    expired: int
    loose: int
    removed: int
    tokens: int


class CaringOperations:
    """What looks after the tables.

    Args:
        sql: The statements.
        writing: Removes what has expired.
    """

    def __init__(self, sql: MemoryDialect, writing: WritingOperations) -> None:
        self.sql = sql
        self._writing = writing

    def waste(self, tenant: str) -> Operation[Waste]:
        """How much there is that nobody needs, or will not need soon. One round trip; changes nothing."""
        results = yield Batch(self.sql.care.count_waste(tenant), atomic=False)
        return Waste(*(int(cast(int, result.rows[0][0])) for result in results))

    def vacuum(self, tenant: str, *, removed_kept_us: int = REMOVED_KEPT_US) -> Operation[Waste]:
        """Remove what nobody needs, in transactions that are short; returns how much.

        What writers do on their own now and then, a few rows at a time. Tokens go of all tenants.

        Args:
            tenant: Whose.
            removed_kept_us: For how long caches are told of embeddings that were removed, in microseconds.
        """
        expired = 0
        while some := (yield from self._writing.sweep(AT_ONCE, tenant)):
            expired += some
        loose = yield from self._remove_loose(tenant)
        removed = tokens = 0
        while some := (yield from self._writing.purge_codes(tenant, removed_kept_us, AT_ONCE)):
            removed += some
        while True:
            (forgotten,) = yield Batch.of(self.sql.writing.forget_settled())
            tokens += forgotten.affected
            if forgotten.affected < TOKENS_AT_ONCE:
                return Waste(expired, loose, removed, tokens)

    def _remove_loose(self, tenant: str) -> Operation[int]:
        """Go through all that has embeddings, and remove those of what is not there."""
        removed: set[ItemKey] = set()
        for kept in KEPT_IN:
            after: ItemKey | None = None
            while True:
                (found,) = yield Batch.of(self.sql.care.walk(kept, tenant, after, AT_ONCE))
                loose = [(cast(bytes, path), cast(bytes, key)) for path, key, gone in found.rows if gone]
                if loose:
                    writing, token = self.sql.writing, os.urandom(16)
                    yield Batch.named(
                        writing.touch(tenant, [path for path, _ in loose], token),
                        self.sql.vectors.remove_gone(tenant, loose),
                        self.sql.care.remove_loose_signs(tenant, loose),
                        writing.settle_affected(tenant, token),
                        landed=writing.outcome(tenant, token),
                    )
                    removed.update(loose)
                if len(found.rows) < AT_ONCE:
                    break
                after = (cast(bytes, found.rows[-1][0]), cast(bytes, found.rows[-1][1]))
        return len(removed)
