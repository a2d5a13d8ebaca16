"""Statements that read and write items with all columns, for export, import and transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..statement import Param, Query, Statement
from ..template import placeholders
from .pieces import MemoryStatements, portions
from .ranges import Range
from .writing import item_checksum

#: The columns that are read: an item's row, its full-text search text, whether it has not expired, and an embedding.
WHOLE = """{COLUMNS}, i.ttl_us, i.embed_paths, COALESCE(i.search_text, i.pending_text), {LIVE_ITEM}, v.digest,
       {EMBEDDING}"""

# One statement, so that items and embeddings are consistent. The inner query reads keys, in the order of the primary
# key; an item is returned once for each of its embeddings.
PAGE = """
SELECT {whole}
  FROM (SELECT i.tenant, i.path, i.item_key FROM {items} i
         WHERE i.tenant = %s{range}{after} AND {LIVE_ITEM}
         ORDER BY i.path, i.item_key
         LIMIT %s) AS chosen
  JOIN {items} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
  LEFT JOIN {vectors} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
                       AND v.removed = 0
 ORDER BY i.path, i.item_key, v.number
"""
AFTER = " AND (i.path > %s OR (i.path = %s AND i.item_key > %s))"

KEPT = """
SELECT {whole}
  FROM {items} i
  LEFT JOIN {vectors} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
                       AND v.removed = 0
 WHERE (i.tenant, i.path, i.item_key) IN ({keys})
 ORDER BY i.path, i.item_key, v.number
"""

# Undo the batch, with error 3141, if one of these items exists.
ABSENT = """
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {items} i
 WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND {LIVE_ITEM}
"""

RESTORE = """
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, embed_paths, search_text, pending_text,
                     unindexed, created_at, updated_at, expires_at, checksum)
VALUES {rows} AS fresh
    ON DUPLICATE KEY UPDATE
       value        = fresh.value,
       metadata     = fresh.metadata,
       version      = fresh.version,
       ttl_us       = fresh.ttl_us,
       embed_paths  = fresh.embed_paths,
       search_text  = NULL,
       pending_text = fresh.pending_text,
       unindexed    = fresh.unindexed,
       created_at   = fresh.created_at,
       updated_at   = fresh.updated_at,
       expires_at   = fresh.expires_at,
       checksum     = fresh.checksum
"""
RESTORE_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, NULL, %s, %s, %s, %s, %s, %s)"


class WholeItemRow(NamedTuple):
    """An item with all columns and one of its embeddings, if it has any; see `WHOLE`."""

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    checksum: int
    ttl_us: int | None
    embed_paths: str | None
    text: str | None
    live: int
    digest: bytes | None
    embedding_path: bytes | None
    embedding_key: bytes | None
    number: int | None
    embedding: bytes | None
    embedding_checksum: int | None
    model: int | None


@dataclass(frozen=True, slots=True)
class KeptRow:
    """The stored columns of an item, without its tenant and embeddings.

    Args:
        path: Its namespace.
        key: Its key.
        value: JSON text.
        metadata: JSON text of an object.
        version: Its version.
        ttl_us: Microseconds from a write or refresh until it expires.
        text: The text for full-text search.
        created_at: Time in UTC as MySQL writes it, like the others.
        updated_at: Time of the last write.
        expires_at: Time from which on it is expired.
        embed_paths: JSON text of the paths whose texts are embedded; None for those of the store.
    """

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    ttl_us: int | None
    text: str | None
    created_at: str
    updated_at: str
    expires_at: str | None
    embed_paths: str | None = None

    def params(self, tenant: str) -> tuple[Param, ...]:
        """Return the values of the row in the order of the statement."""
        return (
            *(tenant, self.path, self.key, self.value, self.metadata, self.version, self.ttl_us),
            self.embed_paths,
            *(self.text, None if self.text is None else 1, self.created_at, self.updated_at, self.expires_at),
            item_checksum(tenant, self.path, self.key, self.value, self.metadata, self.version),
        )


class MovingStatements(MemoryStatements):
    """Statements that read and write items with all columns."""

    def page(self, tenant: str, where: Range, after: tuple[bytes, bytes] | None, limit: int) -> Query[WholeItemRow]:
        """Read unexpired items after a key, with their embeddings, in the order of their keys."""
        text = self._text(PAGE, whole=WHOLE, range=where.condition("i"), after=AFTER if after else "")
        after_params = (after[0], *after) if after else ()
        return Query(text, (tenant, *where.params, *after_params, limit), row=WholeItemRow)

    def kept(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Query[WholeItemRow], ...]:
        """Read the existing ones of these items, expired or not, with their embeddings."""
        return tuple(
            Query(statement.sql, statement.params, row=WholeItemRow)
            for statement in self.over_keys(KEPT, tenant, keys, whole=WHOLE)
        )

    def absent(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Undo the batch if one of these items exists."""
        return self.over_keys(ABSENT, tenant, keys)

    def restore(self, tenant: str, rows: Sequence[KeptRow]) -> tuple[Statement, ...]:
        """Write items with all columns, replacing existing ones."""
        return tuple(
            Statement(
                self._text(RESTORE, rows=placeholders(len(some), RESTORE_ROW)),
                tuple(param for row in some for param in row.params(tenant)),
            )
            for some in portions(rows)
        )
