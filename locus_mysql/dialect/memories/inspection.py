"""Statements for looking inside: pages of namespaces and of items. All of them only read."""

from __future__ import annotations

from collections.abc import Sequence

from ..checksums import checksum_sql, version_sql
from ..like import like
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

#: Whether an item's checksum is right. The server computes it: of a list it reads the whole values anyway.
SOUND = (
    f"i.checksum = {checksum_sql(('i.tenant', 'i.path', 'i.item_key'), ('i.value', 'i.metadata'))}"
    f" ^ {version_sql('i.version')}"
)

# Items of exactly one namespace in the order of their keys, from one on.
ITEMS = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at, <sound>
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key > %s AND {LIVE}
 ORDER BY i.item_key
 LIMIT %s
"""

# An item whole, with how many embeddings it has and how wide they are.
ITEM = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at, <sound>, i.value, i.metadata,
       (SELECT COUNT(*) FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key),
       (SELECT MAX(LENGTH(v.embedding)) DIV 4 FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key)
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE}
"""

# Items whose text waits for the full-text index, by the index pending: those that hold any part of a query. There are
# few, as each search of a store indexes them. Their share of the parts is their score.
PENDING = """
SELECT {COLUMNS}, (<held>) / <parts>e0
  FROM (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending) WHERE unindexed = 1 LIMIT %s) AS waiting
  STRAIGHT_JOIN {items} i
     ON i.tenant = waiting.tenant AND i.path = waiting.path AND i.item_key = waiting.item_key
 WHERE i.tenant = %s<range> AND i.unindexed = 1 AND {LIVE} AND (<any>)
 ORDER BY 10 DESC, i.updated_at DESC, i.path, i.item_key
 LIMIT %s
"""
HOLDS = "(i.pending_text LIKE %s)"

#: Of the texts that wait for the index, so many are looked at.
PENDING_LOOKED_AT = 10_000


class InspectionStatements(MemoryStatements):
    """Looking inside."""

    def namespaces(self, tenant: str, where: Range, after: bytes, limit: int) -> Statement:
        """Paths that have items, after one: how many, the bytes of their values, when one was last written."""
        text = NAMESPACES.replace("<range>", where.condition("s"))
        return Statement(self._text(text), (tenant, *where.params, after, limit))

    def items(self, tenant: str, path: bytes, after: bytes, limit: int) -> Statement:
        """Path, key, beginning of the value, bytes, version and times of items, after a key."""
        return Statement(self._text(ITEMS.replace("<sound>", SOUND)), (PREVIEW_CHARACTERS, tenant, path, after, limit))

    def item(self, tenant: str, path: bytes, key: bytes) -> Statement:
        """The same of one item; then value, metadata, how many embeddings, and their width."""
        return Statement(self._text(ITEM.replace("<sound>", SOUND)), (PREVIEW_CHARACTERS, tenant, path, key))

    def pending(self, tenant: str, where: Range, parts: Sequence[str], limit: int) -> Statement:
        """Rows of items that are not in the full-text index yet and hold any of these texts, each with its score."""
        holds = [HOLDS] * len(parts)
        text = PENDING.replace("<held>", " + ".join(holds)).replace("<any>", " OR ".join(holds))
        text = text.replace("<parts>", str(len(parts))).replace("<range>", where.condition("i"))
        patterns = tuple(like(f"*{literal}*") for literal in parts)
        params = (*patterns, PENDING_LOOKED_AT, tenant, *where.params, *patterns, limit)
        return Statement(self._text(text), params)
