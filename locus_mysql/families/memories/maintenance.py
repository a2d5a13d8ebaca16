"""Counting items, and removing unneeded rows in batches, as generators that do no I/O."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ...config import MySQLConfig
from ...dialect.sql import Select
from ...engine.operation import Batch, Operation, fetch
from ...engine.retry import Backoff
from ...records import ledger
from ..family import Count, Counts
from .reading import ReadingOperations
from .statements.dialect import ALL, CountRow, ItemKeyRow, Token, dialect_of, path_at
from .statements.filters import ItemFilter
from .statements.items import touch
from .statements.vectors import remove_loose
from .writing import REMOVED_KEPT_US, WritingOperations

#: Rows that one transaction removes.
AT_ONCE = 500


class ModelRow(NamedTuple):
    """A model, by its number, and the number of its embeddings."""

    model: int
    embeddings: int


COUNT_EXPIRED = Select(
    "SELECT COUNT(*) FROM {items} i WHERE i.tenant = :tenant AND i.expires_at <= UTC_TIMESTAMP(6)", CountRow
)

#: The keys of missing items with embeddings or signs.
LOOSE = Select(
    """
SELECT v.path, v.item_key
  FROM {vectors} v
 WHERE v.tenant = :tenant AND v.removed = 0
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = v.tenant AND i.path = v.path AND i.item_key = v.item_key)
 UNION
SELECT SUBSTR(s.owner, :path_at), s.item_key
  FROM {signs} s
 WHERE s.owner >= :range_owner AND s.owner < :range_owner_end
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = :tenant AND i.path = SUBSTR(s.owner, :path_at) AND i.item_key = s.item_key){limit}
""",
    ItemKeyRow,
)
COUNT_LOOSE = Select("SELECT COUNT(*) FROM ({loose}) AS loose", CountRow)

#: The number of embeddings of each model; the most frequent one first.
MODELS = Select(
    """
SELECT s.model, COUNT(*) FROM {signs} s WHERE s.owner >= :range_owner AND s.owner < :range_owner_end
 GROUP BY s.model ORDER BY 2 DESC, 1
""",
    ModelRow,
)

#: The same of encrypted embeddings, which have no signs.
MODELS_ENCRYPTED = Select(
    """
SELECT v.model, COUNT(*) FROM {vectors} v WHERE v.tenant = :tenant AND v.removed = 0
 GROUP BY v.model ORDER BY 2 DESC, 1
""",
    ModelRow,
)

#: The number of removed embeddings whose rows are kept for caches. Relies on the index changes.
COUNT_REMOVED = Select("SELECT COUNT(*) FROM {vectors} v WHERE v.tenant = :tenant AND v.removed = 1", CountRow)


class MemoryMaintenance:
    """Counts items and removes unneeded rows. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = dialect_of(config)
        self._tenant = config.tenant
        self._encrypted = config.encryption is not None
        self._reading = ReadingOperations(config, self.sql)
        self._writing = WritingOperations(config, self.sql)

    def stored(self) -> Operation[Counts]:
        """Count items; and the embeddings of each model, if there are several. Two round trips."""
        items = yield from self._reading.count(self._tenant, ALL, ItemFilter())
        statement = MODELS_ENCRYPTED if self._encrypted else MODELS
        models = yield from fetch(statement(self.sql, **self._all))
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
        queries = (
            COUNT_EXPIRED(self.sql, **self._all),
            COUNT_LOOSE(self.sql, pieces={"loose": LOOSE.text, "limit": ""}, **self._all),
            COUNT_REMOVED(self.sql, **self._all),
        )
        tokens = ledger.COUNT_OF_TENANT(self.sql, tenant=self._tenant)
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
        loose = yield from self._remove_loose()
        removed = 0
        while some := (yield from self._writing.purge_removed(self._tenant, removed_kept_us, AT_ONCE)):
            removed += some
        return _waste(expired, loose, removed, (yield from ledger.forget_old_tokens(self.sql)))

    @property
    def _all(self) -> dict[str, Any]:
        """The parameters of statements about all rows of the tenant."""
        return {"tenant": self._tenant, "path_at": path_at(self._tenant), **ALL.owned_params(self._tenant)}

    def _remove_loose(self) -> Operation[int]:
        """Remove the embeddings of items that do not exist; returns of how many items."""
        removed, backoff = 0, Backoff("Embeddings of deleted items that were removed were found again")
        query: dict[str, Any] = {"pieces": {"limit": " LIMIT :limit"}, "limit": AT_ONCE, **self._all}
        while loose := (yield from fetch(LOOSE(self.sql, **query))):
            backoff.compare(loose)
            token = Token(self._tenant, os.urandom(16))
            yield Batch.of(
                touch(self.sql, token, [path for path, _ in loose]),
                remove_loose(self.sql, self._tenant, loose),
                ledger.RECORD(self.sql, token),
                outcome_query=ledger.FIND(self.sql, token),
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
