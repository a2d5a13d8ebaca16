"""Statements for inspection: pages of namespaces and of items. They only read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..checksums import checksum_sql, version_sql
from ..inspection import CreatedRow
from ..statement import Query
from .pieces import MemoryStatements
from .ranges import Range

#: The number of characters of an item's value that a list shows.
PREVIEW_CHARACTERS = 400

#: As many as a value can have.
ALL_CHARACTERS = 2**32 - 1

# Namespaces with items, after a path, in the order of their paths. Counts only the items of the returned namespaces.
NAMESPACES = """
SELECT s.path, held.items, held.size_bytes, held.updated_at
  FROM (SELECT s.tenant, s.path FROM {scopes} s
         WHERE s.tenant = %s{range} AND s.path > %s
           AND EXISTS (SELECT /*+ NO_SEMIJOIN() */ 1 FROM {items} i
                        WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM})
         ORDER BY s.path
         LIMIT %s) AS s
  JOIN LATERAL (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.value)), 0) AS size_bytes,
                       MAX(i.updated_at) AS updated_at
                  FROM {items} i
                 WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM}) AS held
 ORDER BY s.path
"""

#: The condition that an item's checksum is right. The server computes it, as it reads the whole values anyway.
SOUND = (
    f"i.checksum = {checksum_sql(('i.tenant', 'i.path', 'i.item_key'), ('i.value', 'i.metadata'))}"
    f" ^ {version_sql('i.version')}"
)

# Items of exactly one namespace, in the order of their keys, after one.
ITEMS = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at, {sound}
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key > %s AND {LIVE_ITEM}
 ORDER BY i.item_key
 LIMIT %s
"""

# An item whole, with the number and the width of its embeddings.
ITEM = """
SELECT i.path, i.item_key, LEFT(i.value, %s), LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version,
       i.created_at, i.updated_at, i.expires_at, {sound}, i.value, i.metadata,
       (SELECT COUNT(*) FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key AND v.removed = 0),
       (SELECT MAX(LENGTH(v.embedding)) DIV 4 FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key AND v.removed = 0)
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE_ITEM}
"""

# The items created on each of the last 30 days, among the first ones in the order of the primary key; and a row without
# a day with the number of these.
CREATED = """
WITH first AS (
  SELECT i.created_at FROM {items} i WHERE i.tenant = %s AND {LIVE_ITEM} LIMIT %s
)
(SELECT CAST(DATE(created_at) AS CHAR) AS day, COUNT(*) AS items FROM first
  WHERE created_at > UTC_TIMESTAMP(6) - INTERVAL 30 DAY
  GROUP BY day)
UNION ALL
(SELECT NULL, COUNT(*) FROM first)
"""


class NamespaceSizeRow(NamedTuple):
    """A namespace with the number of its items, the bytes of their values, and the time of the last write."""

    path: bytes
    items: int
    size_bytes: int | Decimal
    updated_at: datetime


class PreviewRow(NamedTuple):
    """An item with the beginning of its value. Times are in UTC.

    Args:
        path: The namespace's path.
        key: The key.
        preview: The beginning of the value.
        size_bytes: The bytes of value and metadata.
        version: The version.
        created_at: The time of the first write.
        updated_at: The time of the last write.
        expires_at: The time from which on the item is no longer found.
        sound: Whether the checksum is right.
    """

    path: bytes
    key: bytes
    preview: str
    size_bytes: int
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    sound: int


class WholeItemRow(NamedTuple):
    """A `PreviewRow` with the whole item, and the number and width of its embeddings."""

    path: bytes
    key: bytes
    preview: str
    size_bytes: int
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    sound: int
    value: str
    metadata: str | None
    embeddings: int
    dims: int | None


class InspectionStatements(MemoryStatements):
    """Inspection of namespaces and items."""

    def namespaces(self, tenant: str, where: Range, after: bytes, limit: int) -> Query[NamespaceSizeRow]:
        """Return the namespaces with items, after a path."""
        text = self._text(NAMESPACES, range=where.condition("s"))
        return Query(text, (tenant, *where.params, after, limit), row=NamespaceSizeRow)

    def items(self, tenant: str, path: bytes, after: bytes, limit: int, *, whole: bool) -> Query[PreviewRow]:
        """Return the items of a namespace, after a key; with the beginnings of their values, or the whole values."""
        params = (ALL_CHARACTERS if whole else PREVIEW_CHARACTERS, tenant, path, after, limit)
        return Query(self._text(ITEMS, sound=SOUND), params, row=PreviewRow)

    def item(self, tenant: str, path: bytes, key: bytes) -> Query[WholeItemRow]:
        """Return an item whole."""
        return Query(self._text(ITEM, sound=SOUND), (PREVIEW_CHARACTERS, tenant, path, key), row=WholeItemRow)

    def created(self, tenant: str, limit: int) -> Query[CreatedRow]:
        """Return the number of items created on each day, among at most ``limit`` of them, and their number."""
        return Query(self._text(CREATED), (tenant, limit), row=CreatedRow)
