"""Counting items, and removing unneeded rows in batches, as generators that do no I/O."""

from __future__ import annotations

import os

from ...config import MySQLConfig
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.filters import ItemFilter
from ...dialect.memories.ranges import Range
from ...engine.operation import Batch, Operation, fetch
from ...engine.retry import Backoff
from ...runtime.ledger import forget_old_tokens
from ..family import Count, Counts
from .reading import ReadingOperations
from .writing import REMOVED_KEPT_US, WritingOperations

#: Rows that one transaction removes.
AT_ONCE = 500


class MemoryMaintenance:
    """Counts items and removes unneeded rows. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = MemoryDialect(config.table_prefix, search=config.search, search_parser=config.search_parser)
        self._tenant = config.tenant
        self._encrypted = config.encryption is not None
        self._reading = ReadingOperations(config, self.sql)
        self._writing = WritingOperations(config, self.sql)

    def stored(self) -> Operation[Counts]:
        """Count items; and the embeddings of each model, if there are several. Two round trips."""
        items = yield from self._reading.count(self._tenant, Range(b""), ItemFilter())
        models = yield from fetch(self.sql.maintenance.models(self._tenant, encrypted=self._encrypted))
        counts = [
            Count(
                one.embeddings,
                f"{{embedding}} of model {one.model:08x}" if one.model else "{embedding} of an unnamed model",
            )
            for one in models
        ]
        return (Count(items, "{item}"), *(counts if len(counts) > 1 else ()))

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed, or soon will not be. One round trip."""
        maintenance, tenant = self.sql.maintenance, self._tenant
        queries = (
            maintenance.count_expired(tenant),
            maintenance.count_loose(tenant),
            maintenance.count_removed(tenant),
        )
        tokens = self.sql.ledger.count(tenant)
        results = yield Batch((*queries, tokens), atomic=False)
        expired, loose, removed = (results.rows(query)[0].total for query in queries)
        return _waste(expired, loose, removed, results.rows(tokens)[0].tokens)

    def vacuum(self, older_than_days: float = 30, *, removed_kept_us: int = REMOVED_KEPT_US) -> Operation[Counts]:
        """Remove rows that writers also remove from time to time, a few at a time; tokens of all tenants.

        Args:
            older_than_days: Ignored.
            removed_kept_us: How long to keep the marks that report removed embeddings to caches, in microseconds.
        """
        expired = 0
        while some := (yield from self._writing.sweep(AT_ONCE, self._tenant)):
            expired += some
        loose = yield from self._remove_loose(self._tenant)
        removed = 0
        while some := (yield from self._writing.purge_removed(self._tenant, removed_kept_us, AT_ONCE)):
            removed += some
        return _waste(expired, loose, removed, (yield from forget_old_tokens(self.sql.ledger)))

    def _remove_loose(self, tenant: str) -> Operation[int]:
        """Remove the embeddings of items that do not exist; returns of how many items."""
        removed, backoff = 0, Backoff("Embeddings of deleted items that were removed were found again")
        while loose := (yield from fetch(self.sql.maintenance.loose(tenant, AT_ONCE))):
            backoff.compare(loose)
            writing, token = self.sql.writing, os.urandom(16)
            yield Batch.of(
                writing.touch(tenant, [path for path, _ in loose], token),
                self.sql.vectors.remove_gone(tenant, loose),
                self.sql.ledger.record(tenant, token),
                outcome_query=self.sql.ledger.find(tenant, token),
            )
            removed += len(loose)
        return removed


def _waste(expired: int, loose: int, removed: int, tokens: int) -> Counts:
    return (
        Count(expired, "{expired item}"),
        Count(loose, "embeddings of {deleted item}"),  # rows were deleted by hand
        Count(removed, "{note} to caches about removed embeddings"),  # caches need these marks for an hour
        Count(tokens, "{record} of recent writes"),  # they identify repeated writes for a quarter of an hour
    )
