"""Statements that write and find items, alone or with their embeddings.

A write begins with `TOUCH`, which locks namespaces, and records its token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect import Query, Statement
from ....dialect.sql import SQL, Select
from ....dialect.words import WordSearch
from ....records.ledger import record_outcome
from .filters import ItemFilter
from .tables import ItemKey, MemoryDialect, PathRow, Range, Token, of_tenant, portions

_TOUCH = """
INSERT INTO {scopes} (tenant, path, stamp, purged, token)
VALUES [namespaces: (:tenant, :path, {WRITE_US}, {WRITE_US}, :token)] AS fresh
    ON DUPLICATE KEY UPDATE
       earlier = {scopes}.token,
       token   = fresh.token,
       stamp   = GREATEST({scopes}.stamp + 1, {WRITE_US})
"""

#: Locks namespaces, in the order of their paths so that writers cannot deadlock, and raises their stamps. The
#: assignments run left to right. On OceanBase, the second time of a row is later than the first, and a stamp must not
#: be less than ``purged``.
TOUCH = SQL(_TOUCH, oceanbase=_TOUCH.replace("stamp, purged", "purged, stamp"))

#: Undoes the batch, with error 3141, unless an item has this version; 0 stands for no item.
GUARD = SQL("""
SELECT CAST(IF(COALESCE(MAX(i.version), 0) = :version, '1', '') AS JSON)
  FROM {items} i
 WHERE i.tenant = :tenant AND i.path = :path AND i.item_key = :key AND {LIVE_ITEM}
""")

#: Undoes the batch, with error 3141, if one of these items exists.
GUARD_ABSENT = SQL("""
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {items} i
 WHERE (i.tenant, i.path, i.item_key) IN (:keys) AND {LIVE_ITEM}
""")

#: Undoes the batch, with error 3141, unless some items are still those that were read. Deleting and writing an item
#: again may give it its earlier version, but not its earlier time.
GUARD_UNCHANGED = SQL("""
SELECT CAST(IF(COUNT(*) = :count, '1', '') AS JSON)
  FROM (VALUES [seen: ROW(:path, :key, :version, :updated_at)]) AS seen (path, item_key, version, updated_at)
  JOIN {items} i ON i.tenant = :tenant AND i.path = seen.path AND i.item_key = seen.item_key
                AND i.version = seen.version AND i.updated_at = CAST(seen.updated_at AS DATETIME(6))
""")

_PUT = """
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, embed_paths, search_text, pending_text,
                     unindexed, created_at, updated_at, expires_at, seal)
VALUES [rows: (:tenant, :path, :key, :value, :metadata, 1, :ttl_us, :embed_paths, NULL, :text, :unindexed,
        {WRITTEN_AT}, {WRITTEN_AT}, {WRITTEN_AT_PLUS}, :seal)] AS fresh
    ON DUPLICATE KEY UPDATE
       value        = fresh.value,
       metadata     = fresh.metadata,
       version      = IF({items}.expires_at <= UTC_TIMESTAMP(6), 1, {items}.version + 1),
       ttl_us       = fresh.ttl_us,
       embed_paths  = fresh.embed_paths,
       search_text  = NULL,
       pending_text = fresh.pending_text,
       unindexed    = fresh.unindexed,
       created_at   = IF({items}.expires_at <= UTC_TIMESTAMP(6), fresh.created_at, {items}.created_at),
       updated_at   = fresh.updated_at,
       expires_at   = fresh.expires_at,
       seal         = fresh.seal
"""

#: Writes items, replacing existing ones. An expired item starts again with version 1. The assignments run left to
#: right; expires_at comes after those that read it. On OceanBase, an item has expired for all columns or for none (see
#: `dialect` for the time); in this part of the statement, LAST_INSERT_ID raises error 4016.
PUT = SQL(_PUT, oceanbase=_PUT.replace("UTC_TIMESTAMP(6)", "fresh.updated_at"))

#: Records the token of a write whose outcome is the version of an item.
RECORD_VERSION = record_outcome(
    "MAX(i.version)", "{items} i WHERE i.tenant = :tenant AND i.path = :path AND i.item_key = :key"
)

#: Deletes items that have not expired.
DELETE = SQL("DELETE i FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN (:keys) AND {LIVE_ITEM}")

#: Deletes the items of a namespace that have not expired.
CLEAR_LIVE = SQL("DELETE i FROM {items} i WHERE i.tenant = :tenant AND i.path = :path AND {LIVE_ITEM}")

#: Deletes the other ones.
CLEAR = SQL("DELETE i FROM {items} i WHERE i.tenant = :tenant AND i.path = :path")

#: Restarts the time to live of items.
REFRESH = SQL("""
UPDATE {items} i
   SET i.expires_at = UTC_TIMESTAMP(6) + INTERVAL i.ttl_us MICROSECOND
 WHERE (i.tenant, i.path, i.item_key) IN (:keys) AND i.ttl_us IS NOT NULL AND {LIVE_ITEM}
""")

#: Moves new texts of all tenants into the full-text index. Relies on the index pending.
INDEX_PENDING = SQL("""
UPDATE {items} i
  JOIN (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending)
         WHERE unindexed = 1 LIMIT :limit{locking}) AS waiting
    ON waiting.tenant = i.tenant AND waiting.path = i.path AND waiting.item_key = i.item_key
   SET i.search_text = i.pending_text, i.pending_text = NULL, i.unindexed = NULL
 WHERE i.unindexed = 1
""")


class PutRow(NamedTuple):
    """An item to write, sealed.

    Args:
        tenant: The tenant.
        path: The path of the namespace.
        key: The key.
        value: JSON text, or encrypted.
        metadata: JSON text of an object.
        ttl_us: The time to live in microseconds.
        embed_paths: JSON text of the paths whose texts are embedded; None for those of the store.
        text: The text that is searched by word.
        unindexed: 1 if there is a text.
        seal: The seal of value and metadata; None if they are encrypted.
    """

    tenant: str
    path: bytes
    key: bytes
    value: str
    metadata: str | None
    ttl_us: int | None
    embed_paths: str | None
    text: str | None
    unindexed: int | None
    seal: int | None


class SeenRow(NamedTuple):
    """An item as it was read."""

    path: bytes
    key: bytes
    version: int
    updated_at: str


class ItemRow(NamedTuple):
    """An item as it is stored, with its score in a search by word: see `words`. Times are in UTC."""

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    seal: int | None
    score: float | Decimal | int | None


class VersionRow(NamedTuple):
    """The version of an item."""

    version: int


class KeyRow(NamedTuple):
    """The key of an item."""

    key: bytes


class NumberRow(NamedTuple):
    """A number of items."""

    items: int


#: Items by their keys, in any order.
GET = Select(
    "SELECT {COLUMNS}, NULL FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN (:keys) AND {LIVE_ITEM}{filter}",
    ItemRow,
)

VERSION = Select(
    "SELECT i.version FROM {items} i WHERE i.tenant = :tenant AND i.path = :path AND i.item_key = :key AND {LIVE_ITEM}",
    VersionRow,
)

#: The keys of a namespace, in their order.
KEYS = Select(
    """
SELECT i.item_key FROM {items} i
 WHERE i.tenant = :tenant AND i.path = :path AND {LIVE_ITEM}
 ORDER BY i.item_key
 LIMIT :limit OFFSET :offset
""",
    KeyRow,
)

COUNT = Select("SELECT COUNT(*) FROM {items} i WHERE i.tenant = :tenant{range} AND {LIVE_ITEM}{filter}", NumberRow)

_LIST = Select(
    """
SELECT {COLUMNS}, NULL
  FROM (SELECT i.tenant, i.path, i.item_key FROM {items} i
         WHERE i.tenant = :tenant{range}{after} AND {LIVE_ITEM}{filter}
         ORDER BY i.updated_at DESC, i.path, i.item_key
         LIMIT :limit OFFSET :offset) AS chosen
  JOIN {items} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
 ORDER BY i.updated_at DESC, i.path, i.item_key
""",
    ItemRow,
)
_OLDER = """ AND (i.updated_at < :last_time OR (i.updated_at = :last_time
                                     AND (i.path > :last_path OR (i.path = :last_path AND i.item_key > :last_key))))"""

#: The paths of namespaces with items, after a path, in their order. MySQL would run EXISTS as a semijoin, and read all
#: items for each page.
NAMESPACES = Select(
    """
SELECT s.path FROM {scopes} s
 WHERE s.tenant = :tenant{range} AND s.path > :after
   AND EXISTS (SELECT /*+ NO_SEMIJOIN() */ 1 FROM {items} i
                WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM})
 ORDER BY s.path
 LIMIT :limit
""",
    PathRow,
)

# Uses the full-text index: see `words`.
_WORDS = Select(
    """
WITH found AS (
  (SELECT i.path, i.item_key, i.updated_at{flags}
     FROM {items} i
    WHERE {indexed} AND i.tenant = :tenant{range} AND {LIVE_ITEM}{filter}{having}){waiting}
), best AS (
  SELECT found.path, found.item_key, found.updated_at, {score} AS score
    FROM found{weights}
   ORDER BY score DESC, found.updated_at DESC, found.path, found.item_key
   LIMIT :limit OFFSET :offset
)
SELECT {COLUMNS}, best.score
  FROM best
  JOIN {items} i ON i.tenant = :tenant AND i.path = best.path AND i.item_key = best.item_key
 ORDER BY best.score DESC, best.updated_at DESC, i.path, i.item_key
""",
    ItemRow,
)

# Items whose text waits for the full-text index, by the index pending: at most 10,000. There are few, as each search of
# a store indexes them; an inspector may not.
_WAITING = """
  UNION ALL
  (SELECT i.path, i.item_key, i.updated_at{pending_flags}
     FROM (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending)
            WHERE unindexed = 1 LIMIT 10000) AS waiting
     STRAIGHT_JOIN {items} i
       ON i.tenant = waiting.tenant AND i.path = waiting.path AND i.item_key = waiting.item_key
    WHERE {pending} AND i.unindexed = 1 AND i.tenant = :tenant{range} AND {LIVE_ITEM}{filter})"""


def touch(sql: MemoryDialect, token: Token, paths: Iterable[bytes]) -> list[Statement]:
    """Lock namespaces until the transaction ends, raise their stamps, and store the token of the write."""
    rows = [PathRow(path) for path in sorted(set(paths))]
    return [TOUCH(sql, token, namespaces=some) for some in portions(rows)]


def get_items(
    sql: MemoryDialect, tenant: str, keys: Sequence[ItemKey], condition: ItemFilter | None = None
) -> tuple[Query[ItemRow], ...]:
    """Return the items with these keys that match a filter, in any order."""
    condition = condition or ItemFilter()
    pieces = {"filter": condition.sql}
    return tuple(GET(sql, keys=some, pieces=pieces, **condition.params) for some in of_tenant(tenant, keys))


def list_items(
    sql: MemoryDialect,
    tenant: str,
    where: Range,
    condition: ItemFilter,
    limit: int,
    *,
    offset: int = 0,
    after: ItemRow | None = None,
) -> Query[ItemRow]:
    """Return items, most recently written first. The inner query sorts keys, not values.

    Args:
        sql: The names of the tables.
        tenant: The tenant.
        where: The namespaces.
        condition: The filter that the items match.
        limit: The maximum number of items.
        offset: Items to skip.
        after: The last item of the page before.
    """
    pieces = {"range": where.condition("i"), "after": _OLDER if after else "", "filter": condition.sql}
    params = {**where.params, **condition.params}
    if after:
        params |= {"last_time": f"{after.updated_at:%Y-%m-%d %H:%M:%S.%f}", "last_path": after.path}
        params |= {"last_key": after.key}
    return _LIST(sql, tenant=tenant, limit=limit, offset=offset, pieces=pieces, **params)


def find_words(
    sql: MemoryDialect,
    tenant: str,
    where: Range,
    condition: ItemFilter,
    parts: Sequence[str],
    limit: int,
    *,
    offset: int = 0,
    inspects: bool = False,
) -> Query[ItemRow]:
    """Return items that hold any part of a query, best first.

    Args:
        sql: The names of the tables.
        tenant: The tenant.
        where: The namespaces.
        condition: The filter that the items match.
        parts: Words and phrases.
        limit: The maximum number of items.
        offset: Items to skip.
        inspects: Whether to search texts that are not indexed yet, too.
    """
    words = WordSearch(tenant, parts, sql.parser, "i")
    pieces = {
        **words.pieces,
        "range": where.condition("i"),
        "filter": condition.sql,
        "waiting": _WAITING if inspects else "",
    }
    params = {**words.values, **where.params, **condition.params}
    return _WORDS(sql, tenant=tenant, limit=limit, offset=offset, pieces=pieces, **params)


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
