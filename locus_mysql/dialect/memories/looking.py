"""Statements for looking inside: pages of namespaces and of items. All of them only read."""

from __future__ import annotations

from ..statement import Statement
from .ranges import Range
from .template import MemoryStatements

#: Of an item's value in a list, so many characters are shown.
PREVIEW_CHARACTERS = 200

# Namespaces with items in them, in the order of their paths, from one on. Counts the items of a page of them only.
NAMESPACES = """
SELECT s.path, held.items, held.size_bytes, held.updated_at
  FROM (SELECT s.tenant, s.path FROM {scopes} s
         WHERE s.tenant = %s<range> AND s.path > %s
           AND EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE})
         ORDER BY s.path
         LIMIT %s) AS s
  JOIN LATERAL (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.value)), 0) AS size_bytes,
                       MAX(i.updated_at) AS updated_at
                  FROM {items} i
                 WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE}) AS held
 ORDER BY s.path
"""

# Items of exactly one namespace in the order of their keys, from one on.
ITEMS = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key > %s AND {LIVE}
 ORDER BY i.item_key
 LIMIT %s
"""

# An item whole, with how many embeddings it has and how wide they are.
ITEM = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at, i.value, i.metadata,
       (SELECT COUNT(*) FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key),
       (SELECT MAX(LENGTH(v.embedding)) DIV 4 FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key)
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE}
"""


class LookingStatements(MemoryStatements):
    """Looking inside."""

    def namespaces(self, tenant: str, where: Range, after: bytes, limit: int) -> Statement:
        """Paths that have items, after one: how many, the bytes of their values, when one was last written."""
        text = NAMESPACES.replace("<range>", where.condition("s"))
        return Statement(self._text(text), (tenant, *where.params, after, limit))

    def items(self, tenant: str, path: bytes, after: bytes, limit: int) -> Statement:
        """Path, key, beginning of the value, bytes, version and times of items, after a key."""
        return Statement(self._text(ITEMS), (PREVIEW_CHARACTERS, tenant, path, after, limit))

    def item(self, tenant: str, path: bytes, key: bytes) -> Statement:
        """The same of one item; then value, metadata, how many embeddings, and their width."""
        return Statement(self._text(ITEM), (PREVIEW_CHARACTERS, tenant, path, key))
