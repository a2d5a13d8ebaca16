"""Statements for vacuum and health."""

from __future__ import annotations

from typing import NamedTuple

from ..statement import Param, Query
from .pieces import CountRow, MemoryStatements
from .ranges import Range, owner_of, path_at

#: The tables with embeddings, in each of their forms.
KEPT_IN = ("vectors", "signs")

COUNT_EXPIRED = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s AND i.expires_at <= UTC_TIMESTAMP(6)"

COUNT_LOOSE = """
SELECT COUNT(DISTINCT s.owner, s.item_key)
  FROM {signs} s
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key
{all} AND i.tenant IS NULL
"""

# The most frequent model first. Encrypted embeddings have no signs.
MODELS = "SELECT s.model, COUNT(*) FROM {signs} s{all} GROUP BY s.model ORDER BY 2 DESC, 1"
MODELS_ENCRYPTED = (
    "SELECT v.model, COUNT(*) FROM {vectors} v WHERE v.tenant = %s AND v.removed = 0"
    " GROUP BY v.model ORDER BY 2 DESC, 1"
)

# Relies on the index changes.
COUNT_REMOVED = "SELECT COUNT(*) FROM {vectors} v WHERE v.tenant = %s AND v.removed = 1"

# Keys with embeddings after a key, each with whether its item is missing. LIMIT bounds the rows that it reads.
WALK = """
SELECT x.path, x.item_key, i.item_key IS NULL
  FROM (SELECT y.path, y.item_key FROM {vectors} y
         WHERE y.tenant = %s{after} AND y.removed = 0
         GROUP BY y.path, y.item_key
         ORDER BY y.path, y.item_key
         LIMIT %s) AS x
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = x.path AND i.item_key = x.item_key
 ORDER BY x.path, x.item_key
"""
AFTER = " AND (y.path > %s OR (y.path = %s AND y.item_key > %s))"

# The same for signs.
WALK_SIGNS = """
SELECT SUBSTR(x.owner, %s), x.item_key, i.item_key IS NULL
  FROM (SELECT y.owner, y.item_key FROM {signs} y
        {all}{after}
         GROUP BY y.owner, y.item_key
         ORDER BY y.owner, y.item_key
         LIMIT %s) AS x
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(x.owner, %s) AND i.item_key = x.item_key
 ORDER BY x.owner, x.item_key
"""
AFTER_SIGNS = " AND (y.owner > %s OR (y.owner = %s AND y.item_key > %s))"

#: All namespaces of a tenant.
ALL = Range(b"")


class WalkRow(NamedTuple):
    """The key of an item with embeddings, and whether the item is missing."""

    path: bytes
    key: bytes
    missing: int


class ModelRow(NamedTuple):
    """A model, by its number, and the number of its embeddings."""

    model: int
    embeddings: int


class MaintenanceStatements(MemoryStatements):
    """Counting and removing unneeded rows."""

    def count_expired(self, tenant: str) -> Query[CountRow]:
        """Count expired items."""
        return Query(self._text(COUNT_EXPIRED), (tenant,), row=CountRow)

    def models(self, tenant: str, *, encrypted: bool) -> Query[ModelRow]:
        """Count the embeddings of each model."""
        if encrypted:
            return Query(self._text(MODELS_ENCRYPTED), (tenant,), row=ModelRow)
        return Query(self._text(MODELS, all=ALL.owned("s")), ALL.owned_params(tenant), row=ModelRow)

    def count_loose(self, tenant: str) -> Query[CountRow]:
        """Count missing items with embeddings."""
        text = self._text(COUNT_LOOSE, all=ALL.owned("s"))
        return Query(text, (tenant, path_at(tenant), *ALL.owned_params(tenant)), row=CountRow)

    def count_removed(self, tenant: str) -> Query[CountRow]:
        """Count removed embeddings whose rows are kept for caches."""
        return Query(self._text(COUNT_REMOVED), (tenant,), row=CountRow)

    def walk(self, kept: str, tenant: str, after: tuple[bytes, bytes] | None, limit: int) -> Query[WalkRow]:
        """Return the keys of items with embeddings, after a key.

        Args:
            kept: One of `KEPT_IN`.
            tenant: The tenant.
            after: The path and key of the last item of the page before.
            limit: The maximum number of items.
        """
        if kept == "signs":
            return self._walk_signs(tenant, after, limit)
        text = self._text(WALK, after=AFTER if after else "")
        after_params = (after[0], *after) if after else ()
        return Query(text, (tenant, *after_params, limit, tenant), row=WalkRow)

    def _walk_signs(self, tenant: str, after: tuple[bytes, bytes] | None, limit: int) -> Query[WalkRow]:
        text = self._text(WALK_SIGNS, all=ALL.owned("y"), after=AFTER_SIGNS if after else "")
        after_params: tuple[Param, ...] = ()
        if after:
            owner = owner_of(tenant, after[0])
            after_params = (owner, owner, after[1])
        at = path_at(tenant)
        return Query(text, (at, *ALL.owned_params(tenant), *after_params, limit, tenant, at), row=WalkRow)
