"""Statements that write items. Each write begins with `touch`, which locks the namespaces, and records its token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..checksums import checksum, version_sql, with_version
from ..statement import Param, Query, Statement
from ..template import placeholders
from ..variants import OCEANBASE
from .pieces import MemoryStatements, portions
from .ranges import Range

# Lock namespaces, in the order of their paths so that writers cannot deadlock, and raise their stamps. The assignments
# run left to right.
TOUCH = """
INSERT INTO {scopes} (tenant, path, stamp, purged, token)
VALUES {rows} AS fresh
    ON DUPLICATE KEY UPDATE
       earlier = {scopes}.token,
       token   = fresh.token,
       stamp   = GREATEST({scopes}.stamp + 1, {WRITE_US})
"""
TOUCH_ROW = "(%s, %s, {WRITE_US}, {WRITE_US}, %s)"

# The second time of a row is later than the first, and a stamp must not be less than `purged`.
OCEANBASE.instead_of(TOUCH, TOUCH.replace("stamp, purged", "purged, stamp"))

# Undo the batch, with error 3141, unless an item has this version; 0 stands for no item.
GUARD = """
SELECT CAST(IF(COALESCE(MAX(i.version), 0) = %s, '1', '') AS JSON)
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE_ITEM}
"""

# Undo the batch, with error 3141, if one of these items exists.
GUARD_ABSENT = """
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {items} i
 WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND {LIVE_ITEM}
"""

# Undo the batch, with error 3141, unless some items are still those that were read. Deleting and writing an item again
# may give it its earlier version, but not its earlier time.
GUARD_UNCHANGED = """
SELECT CAST(IF(COUNT(*) = %s, '1', '') AS JSON)
  FROM {items} i
 WHERE i.tenant = %s AND ({items_read})
"""
ITEM_READ = "(i.path = %s AND i.item_key = %s AND i.version = %s AND i.updated_at = %s)"

# An expired item starts again with version 1. The assignments run left to right; expires_at comes after those that read
# it. The checksum in the parameters is that of version 1.
PUT = """
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, embed_paths, search_text, pending_text,
                     unindexed, created_at, updated_at, expires_at, checksum)
VALUES {rows} AS fresh
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
       checksum     = fresh.checksum ^ 1 ^ {version}
"""
PUT_ROW = """(%s, %s, %s, %s, %s, 1, %s, %s, NULL, %s, %s, {WRITTEN_AT}, {WRITTEN_AT},
        {WRITTEN_AT_PLUS}, %s)"""

# An item has expired for all columns or for none; see `pieces` for the time. In this part of the statement,
# LAST_INSERT_ID raises error 4016.
OCEANBASE.instead_of(PUT, PUT.replace("UTC_TIMESTAMP(6)", "fresh.updated_at"))

VERSION = version_sql("{items}.version")

DELETE_LIVE = "DELETE i FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND {LIVE_ITEM}"
DELETE_EXPIRED = """
DELETE i FROM {items} i
 WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND i.expires_at <= UTC_TIMESTAMP(6)
"""
DELETE_RANGE_LIVE = "DELETE i FROM {items} i WHERE i.tenant = %s{range} AND {LIVE_ITEM}"
DELETE_RANGE = "DELETE i FROM {items} i WHERE i.tenant = %s{range}"

# Restart the time to live of items.
REFRESH = """
UPDATE {items} i
   SET i.expires_at = UTC_TIMESTAMP(6) + INTERVAL i.ttl_us MICROSECOND
 WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND i.ttl_us IS NOT NULL AND {LIVE_ITEM}
"""

EXPIRED = """
SELECT i.tenant, i.path, i.item_key
  FROM {items} i
 WHERE i.expires_at <= UTC_TIMESTAMP(6){tenant}
 ORDER BY i.expires_at
 LIMIT %s
"""

# Move new texts into the full-text index. Relies on the index pending.
INDEX_PENDING = """
UPDATE {items} i
  JOIN (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending)
         WHERE unindexed = 1 LIMIT %s{locking}) AS waiting
    ON waiting.tenant = i.tenant AND waiting.path = i.path AND waiting.item_key = i.item_key
   SET i.search_text = i.pending_text, i.pending_text = NULL, i.unindexed = NULL
 WHERE i.unindexed = 1
"""


class ExpiredRow(NamedTuple):
    """An expired item."""

    tenant: str
    path: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item to write, without its tenant.

    Args:
        path: The path of the namespace.
        key: The key.
        value: JSON text.
        metadata: JSON text of an object.
        ttl_us: The time to live in microseconds.
        text: The text that is searched by word.
        embed_paths: JSON text of the paths whose texts are embedded; None for those of the store.
    """

    path: bytes
    key: bytes
    value: str
    metadata: str | None = None
    ttl_us: int | None = None
    text: str | None = None
    embed_paths: str | None = None

    def params(self, tenant: str) -> tuple[Param, ...]:
        """Return the values of the row in the order of the statement."""
        unindexed = None if self.text is None else 1
        sealed = item_checksum(tenant, self.path, self.key, self.value, self.metadata, 1)
        return (
            *(tenant, self.path, self.key, self.value, self.metadata),
            *(self.ttl_us, self.embed_paths, self.text, unindexed, self.ttl_us, sealed),
        )


def item_checksum(tenant: str, path: bytes, key: bytes, value: str, metadata: str | None, version: int) -> int:
    """Return the checksum of an item. `InspectionStatements` computes the same on the server."""
    return with_version(checksum((tenant, path, key), value, metadata), version)


class WritingStatements(MemoryStatements):
    """Writing, refreshing and deleting items."""

    def touch(self, tenant: str, paths: Sequence[bytes], token: bytes) -> tuple[Statement, ...]:
        """Lock namespaces until the transaction ends, raise their stamps, and store the token of the write."""
        return tuple(
            Statement(
                self._text(TOUCH, rows=placeholders(len(some), TOUCH_ROW)),
                tuple(param for path in some for param in (tenant, path, token)),
            )
            for some in portions(sorted(set(paths)))
        )

    def guard(self, tenant: str, path: bytes, key: bytes, version: int) -> Statement:
        """Undo the batch unless an item has this version; 0 requires that it does not exist."""
        return Statement(self._text(GUARD), (version, tenant, path, key))

    def guard_absent(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Undo the batch if one of these items exists."""
        return self.over_keys(GUARD_ABSENT, tenant, keys)

    def guard_unchanged(self, tenant: str, items: Sequence[tuple[bytes, bytes, int, str]]) -> tuple[Statement, ...]:
        """Undo the batch unless items, by path and key, still have the version and the time of their last write."""
        return tuple(
            Statement(
                self._text(GUARD_UNCHANGED, items_read=" OR ".join([ITEM_READ] * len(some))),
                (len(some), tenant, *(param for item in some for param in item)),
            )
            for some in portions(items)
        )

    def put(self, tenant: str, rows: Sequence[ItemRow]) -> tuple[Statement, ...]:
        """Write items, replacing existing ones."""
        return tuple(
            Statement(
                self._text(PUT, rows=placeholders(len(some), PUT_ROW), version=VERSION),
                tuple(param for row in some for param in row.params(tenant)),
            )
            for some in portions(rows)
        )

    def delete(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> Statement:
        """Delete items that have not expired. A single statement, so that its number of affected rows counts them."""
        return self.over_keys(DELETE_LIVE, tenant, keys, len(keys))[0]

    def delete_expired(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Delete those of these items that have expired."""
        return self.over_keys(DELETE_EXPIRED, tenant, keys)

    def delete_range_live(self, tenant: str, where: Range) -> Statement:
        """Delete the items of namespaces that have not expired."""
        return Statement(self._text(DELETE_RANGE_LIVE, range=where.condition("i")), (tenant, *where.params))

    def delete_range(self, tenant: str, where: Range) -> Statement:
        """Delete the items of namespaces, expired or not."""
        return Statement(self._text(DELETE_RANGE, range=where.condition("i")), (tenant, *where.params))

    def refresh(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Restart the time to live of items."""
        return self.over_keys(REFRESH, tenant, keys)

    def expired(self, limit: int, tenant: str | None = None) -> Query[ExpiredRow]:
        """Return expired items, of one tenant or of all."""
        text = self._text(EXPIRED, tenant="" if tenant is None else " AND i.tenant = %s")
        return Query(text, (limit,) if tenant is None else (tenant, limit), row=ExpiredRow)

    def index_pending(self, limit: int, *, skip_locked: bool = False) -> Statement:
        """Move new texts of all tenants into the full-text index."""
        locking = " FOR UPDATE SKIP LOCKED" if skip_locked else ""
        return Statement(self._text(INDEX_PENDING, locking=locking), (limit,))
