"""Statements that read items with their embeddings, to see which of them are to be embedded anew."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect import Query
from ....dialect.sql import Select
from .dialect import ItemKey, MemoryDialect, Range


class WholeItemRow(NamedTuple):
    """An unexpired item with one of its embeddings, if it has any.

    Args:
        path: Its namespace.
        key: Its key.
        value: JSON text.
        metadata: JSON text of an object.
        version: Its version.
        created_at: When it was written first.
        updated_at: When it was written last.
        expires_at: When it expires.
        seal: See `Sealing.seal_text`.
        ttl_us: Microseconds from a write or refresh until it expires.
        embed_paths: JSON text of the paths whose texts are embedded; None for those of the store.
        text: The text that is searched by word.
        number: The number of the embedding.
        embedding: The embedding, sealed.
        model: Its model.
    """

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
    number: int | None
    embedding: bytes | None
    model: int | None


_WHOLE = (
    """{COLUMNS}, i.ttl_us, i.embed_paths, COALESCE(i.search_text, i.pending_text), v.number, v.embedding, v.model"""
)
_VECTORS = """
  LEFT JOIN {vectors} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key AND v.removed = 0"""

#: Unexpired items after a key along the primary key. One statement, so that items and embeddings fit together.
_PAGE = Select(
    f"""
SELECT {_WHOLE}
  FROM (SELECT i.tenant, i.path, i.item_key FROM {{items}} i
         WHERE i.tenant = :tenant{{range}}{{after}} AND {{LIVE_ITEM}}
         ORDER BY i.path, i.item_key
         LIMIT :limit) AS chosen
  JOIN {{items}} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key{_VECTORS}
 ORDER BY i.path, i.item_key, v.number
""",
    WholeItemRow,
)
_AFTER = " AND (i.path > :last_path OR (i.path = :last_path AND i.item_key > :last_key))"

#: Those of some items that exist.
AT = Select(
    f"""
SELECT {_WHOLE}
  FROM {{items}} i{_VECTORS}
 WHERE (i.tenant, i.path, i.item_key) IN (:keys) AND {{LIVE_ITEM}}
 ORDER BY i.path, i.item_key, v.number
""",
    WholeItemRow,
)


def page_of_items(
    sql: MemoryDialect, tenant: str, where: Range, after: ItemKey | None, limit: int
) -> Query[WholeItemRow]:
    """Read items after a key, in the order of their keys; an item once for each of its embeddings."""
    pieces, params = {"range": where.condition("i"), "after": _AFTER if after else ""}, where.params
    if after:
        params |= {"last_path": after[0], "last_key": after[1]}
    return _PAGE(sql, tenant=tenant, limit=limit, pieces=pieces, **params)
