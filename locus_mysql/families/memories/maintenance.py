"""Counting items, and removing unneeded rows in batches, as generators that do no I/O."""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

from ...config import MySQLConfig
from ...dialect.sql import SQL, Select
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...engine.retry import Backoff, next_page
from ...records import ledger
from ...records.maintenance import Count, Counts, Upkeep
from .statements.items import touch
from .statements.tables import ALL, CountRow, ItemKeyRow, PathRow, Token, dialect_of, owner_of, path_at
from .statements.vectors import CLEAR_SIGNS, remove_loose
from .writing import REMOVED_KEPT_US, WritingOperations

#: Rows that one transaction removes.
AT_ONCE = 500


class ModelRow(NamedTuple):
    """A model, by its number, and the number of its embeddings."""

    model: int
    embeddings: int


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


#: The paths of namespaces without items, after a path.
LEFT_BEHIND = Select(
    """
SELECT s.path FROM {scopes} s
 WHERE s.tenant = :tenant AND s.path > :after
   AND NOT EXISTS (SELECT /*+ NO_SEMIJOIN() */ 1 FROM {items} i WHERE i.tenant = s.tenant AND i.path = s.path)
 ORDER BY s.path
 LIMIT :limit
""",
    PathRow,
)

#: Undoes the batch, with error 3141, if a namespace has items.
GUARD_EMPTY = SQL("""
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON) FROM {items} i WHERE i.tenant = :tenant AND i.path = :path
""")

DELETE_SCOPE = SQL("DELETE FROM {scopes} WHERE tenant = :tenant AND path = :path")
DELETE_VECTORS = SQL("DELETE FROM {vectors} WHERE tenant = :tenant AND path = :path")


class MemoryUpkeep(Upkeep):
    """Counts embeddings, and removes those of items that do not exist, marks for caches, and empty namespaces.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = dialect_of(config)
        self._encrypted = config.encryption is not None
        self._writing = WritingOperations(config)

    def stored(self, tenant: str) -> Operation[Counts]:
        """Count the embeddings of each model, if there are several. One round trip."""
        statement = MODELS_ENCRYPTED if self._encrypted else MODELS
        models = yield from fetch(statement(self.sql, **_all(tenant)))
        counts = [
            Count(
                one.embeddings,
                f"{{embedding}} of model {one.model:08x}" if one.model else "{embedding} of an unnamed model",
            )
            for one in models
        ]
        return tuple(counts) if len(counts) > 1 else ()

    def waste(self, tenant: str) -> Operation[Counts]:
        """Count embeddings without an item, and marks of removed ones. One round trip."""
        loose = COUNT_LOOSE(self.sql, pieces={"loose": LOOSE.text, "limit": ""}, **_all(tenant))
        removed = COUNT_REMOVED(self.sql, tenant=tenant)
        results = yield Batch((loose, removed), atomic=False)
        return _waste(results.rows(loose)[0].total, results.rows(removed)[0].total)

    def vacuum(self, tenant: str, age_us: int) -> Operation[Counts]:
        """Remove rows that writers also remove from time to time, a few at a time. The age is ignored."""
        loose = yield from self._remove_loose(tenant)
        removed = 0
        while some := (yield from self._writing.purge_removed(tenant, REMOVED_KEPT_US, AT_ONCE)):
            removed += some
        return _waste(loose, removed)

    def forget(self, tenant: str) -> Operation[None]:
        """Remove namespaces without items, with the marks of their embeddings. A cache sees that, and reads anew."""
        after = b""
        while page := (yield from fetch(LEFT_BEHIND(self.sql, tenant=tenant, after=after, limit=AT_ONCE))):
            for (path,) in page:
                key: dict[str, Any] = {"tenant": tenant, "path": path}
                token = Token(tenant, os.urandom(16))
                with contextlib.suppress(Outdated):  # it has items by now
                    yield Batch.of(
                        touch(self.sql, token, [path]),
                        GUARD_EMPTY(self.sql, **key),
                        DELETE_VECTORS(self.sql, **key),
                        CLEAR_SIGNS(self.sql, owner=owner_of(tenant, path)),
                        DELETE_SCOPE(self.sql, **key),
                    )
            after = next_page(after, page[-1].path)

    def _remove_loose(self, tenant: str) -> Operation[int]:
        """Remove the embeddings of items that do not exist; returns of how many items."""
        removed, backoff = 0, Backoff("Embeddings of deleted items that were removed were found again")
        query: dict[str, Any] = {"pieces": {"limit": " LIMIT :limit"}, "limit": AT_ONCE, **_all(tenant)}
        while loose := (yield from fetch(LOOSE(self.sql, **query))):
            backoff.compare(loose)
            token = Token(tenant, os.urandom(16))
            yield Batch.of(
                touch(self.sql, token, [path for path, _ in loose]),
                remove_loose(self.sql, tenant, loose),
                ledger.RECORD(self.sql, token),
                outcome_query=ledger.FIND(self.sql, token),
            )
            removed += len(loose)
        return removed


def _all(tenant: str) -> dict[str, Any]:
    """Return the parameters of statements about all rows of a tenant."""
    return {"tenant": tenant, "path_at": path_at(tenant), **ALL.owned_params(tenant)}


def _waste(loose: int, removed: int) -> Counts:
    return (
        Count(loose, "embeddings of {deleted item}"),  # rows were deleted by hand
        Count(removed, "{note} to caches about removed embeddings"),  # caches need these marks for an hour
    )
