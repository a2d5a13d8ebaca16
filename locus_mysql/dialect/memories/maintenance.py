"""Statements for vacuum and health."""

from __future__ import annotations

from typing import NamedTuple

from ..statement import Query
from .pieces import CountRow, MemoryStatements
from .ranges import Range, path_at
from .vectors import ItemKeyRow

COUNT_EXPIRED = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s AND i.expires_at <= UTC_TIMESTAMP(6)"

# The keys of missing items with embeddings or signs.
LOOSE = """
SELECT v.path, v.item_key
  FROM {vectors} v
 WHERE v.tenant = %s AND v.removed = 0
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = v.tenant AND i.path = v.path AND i.item_key = v.item_key)
 UNION
SELECT SUBSTR(s.owner, %s), s.item_key
  FROM {signs} s{all}
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key)
"""
COUNT_LOOSE = "SELECT COUNT(*) FROM ({loose}) AS loose"

# The most frequent model first. Encrypted embeddings have no signs.
MODELS = "SELECT s.model, COUNT(*) FROM {signs} s{all} GROUP BY s.model ORDER BY 2 DESC, 1"
MODELS_ENCRYPTED = (
    "SELECT v.model, COUNT(*) FROM {vectors} v WHERE v.tenant = %s AND v.removed = 0"
    " GROUP BY v.model ORDER BY 2 DESC, 1"
)

# Relies on the index changes.
COUNT_REMOVED = "SELECT COUNT(*) FROM {vectors} v WHERE v.tenant = %s AND v.removed = 1"

#: All namespaces of a tenant.
ALL = Range(b"")


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
        loose = self.loose(tenant)
        return Query(self._text(COUNT_LOOSE, loose=loose.sql), loose.params, row=CountRow)

    def loose(self, tenant: str, limit: int | None = None) -> Query[ItemKeyRow]:
        """Return missing items with embeddings, at most ``limit``."""
        at = path_at(tenant)
        text = self._text(LOOSE, all=ALL.owned("s")) + ("" if limit is None else " LIMIT %s")
        return Query(
            text,
            (tenant, at, *ALL.owned_params(tenant), tenant, at, *(() if limit is None else (limit,))),
            row=ItemKeyRow,
        )

    def count_removed(self, tenant: str) -> Query[CountRow]:
        """Count removed embeddings whose rows are kept for caches."""
        return Query(self._text(COUNT_REMOVED), (tenant,), row=CountRow)
