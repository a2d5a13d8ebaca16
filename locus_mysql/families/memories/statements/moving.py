"""Statements that read and write items with all columns, for export, import and transfer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ....dialect import Query
from ....dialect.sql import SQL, Select
from .dialect import ItemKey, MemoryDialect, Range

# The columns that are read: an item's row, its full-text search text, whether it has not expired, and an embedding.
_WHOLE = """{COLUMNS}, i.ttl_us, i.embed_paths, COALESCE(i.search_text, i.pending_text), {LIVE_ITEM}, v.number,
       v.embedding, v.model"""

RESTORE = SQL("""
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, embed_paths, search_text, pending_text,
                     unindexed, created_at, updated_at, expires_at, seal)
VALUES [rows: (:tenant, :path, :key, :value, :metadata, :version, :ttl_us, :embed_paths, NULL, :text, :unindexed,
        :created_at, :updated_at, :expires_at, :seal)] AS fresh
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
       seal         = fresh.seal
""")


class WholeItemRow(NamedTuple):
    """An item with all columns and one of its embeddings, if it has any."""

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    seal: int | None
    ttl_us: int | None
    embed_paths: str | None
    text: str | None
    live: int
    number: int | None
    embedding: bytes | None
    model: int | None


class RestoredRow(NamedTuple):
    """An item to write with all columns, sealed; see `KeptRow`."""

    tenant: str
    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    ttl_us: int | None
    embed_paths: str | None
    text: str | None
    unindexed: int | None
    created_at: str
    updated_at: str
    expires_at: str | None
    seal: int | None


@dataclass(frozen=True, slots=True)
class KeptRow:
    """The content of an item, without its tenant and embeddings.

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


_PAGE = Select(
    f"""
SELECT {_WHOLE}
  FROM (SELECT i.tenant, i.path, i.item_key FROM {{items}} i
         WHERE i.tenant = :tenant{{range}}{{after}} AND {{LIVE_ITEM}}
         ORDER BY i.path, i.item_key
         LIMIT :limit) AS chosen
  JOIN {{items}} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
  LEFT JOIN {{vectors}} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
                       AND v.removed = 0
 ORDER BY i.path, i.item_key, v.number
""",
    WholeItemRow,
)
_AFTER = " AND (i.path > :last_path OR (i.path = :last_path AND i.item_key > :last_key))"

#: The existing ones of some items, expired or not, with their embeddings.
KEPT = Select(
    f"""
SELECT {_WHOLE}
  FROM {{items}} i
  LEFT JOIN {{vectors}} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
                       AND v.removed = 0
 WHERE (i.tenant, i.path, i.item_key) IN (:keys)
 ORDER BY i.path, i.item_key, v.number
""",
    WholeItemRow,
)


def page_of_items(
    sql: MemoryDialect, tenant: str, where: Range, after: ItemKey | None, limit: int
) -> Query[WholeItemRow]:
    """Read unexpired items after a key, with their embeddings, in the order of their keys.

    One statement, so that items and embeddings are consistent. The inner query reads keys, in the order of the primary
    key; an item is returned once for each of its embeddings.
    """
    pieces, params = {"range": where.condition("i"), "after": _AFTER if after else ""}, where.params
    if after:
        params |= {"last_path": after[0], "last_key": after[1]}
    return _PAGE(sql, tenant=tenant, limit=limit, pieces=pieces, **params)
