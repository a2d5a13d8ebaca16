"""Statements that write items. Each write begins with `touch`, which locks the namespaces, and ends with `settle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..checksums import checksum, version_sql, with_version
from ..statement import Param, Statement
from .ranges import Range
from .template import MemoryStatements, portions

# Lock namespaces, in the order of their paths so that writers do not wait for each other in a circle, and raise their
# stamps. The assignments run left to right.
TOUCH = """
INSERT INTO {scopes} (tenant, path, stamp, purged, token)
VALUES <rows> AS fresh
    ON DUPLICATE KEY UPDATE
       earlier = {scopes}.token,
       token   = fresh.token,
       stamp   = GREATEST({scopes}.stamp + 1, {CLOCK})
"""
TOUCH_ROW = "(%s, %s, {CLOCK}, {CLOCK}, %s)"

# Undo the batch, with error 3141, unless an item has this version; 0 stands for no item.
GUARD = """
SELECT CAST(IF(COALESCE((SELECT i.version FROM {items} i
                          WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE}), 0) = %s,
               '1', '') AS JSON)
"""

# An expired item starts anew. The assignments run left to right; expires_at comes after those that read it. The
# checksum that is sent covers the version 1.
PUT = """
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, search_text, pending_text, unindexed,
                     created_at, updated_at, expires_at, checksum)
VALUES <rows> AS fresh
    ON DUPLICATE KEY UPDATE
       value        = fresh.value,
       metadata     = fresh.metadata,
       version      = IF({items}.expires_at <= UTC_TIMESTAMP(6), 1, {items}.version + 1),
       ttl_us       = fresh.ttl_us,
       search_text  = NULL,
       pending_text = fresh.pending_text,
       unindexed    = fresh.unindexed,
       created_at   = IF({items}.expires_at <= UTC_TIMESTAMP(6), fresh.created_at, {items}.created_at),
       updated_at   = fresh.updated_at,
       expires_at   = fresh.expires_at,
       checksum     = fresh.checksum ^ 1 ^ <version>
"""
PUT_ROW = """(%s, %s, %s, %s, %s, 1, %s, NULL, %s, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND, %s)"""

PUT = PUT.replace("<version>", version_sql("{items}.version"))

DELETE_LIVE = "DELETE i FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN (<keys>) AND {LIVE}"
DELETE_EXPIRED = """
DELETE i FROM {items} i
 WHERE (i.tenant, i.path, i.item_key) IN (<keys>) AND i.expires_at <= UTC_TIMESTAMP(6)
"""
DELETE_RANGE_LIVE = "DELETE i FROM {items} i WHERE i.tenant = %s<range> AND {LIVE}"
DELETE_RANGE = "DELETE i FROM {items} i WHERE i.tenant = %s<range>"

# Give items that expire their whole time again.
REFRESH = """
UPDATE {items} i
   SET i.expires_at = UTC_TIMESTAMP(6) + INTERVAL i.ttl_us MICROSECOND
 WHERE (i.tenant, i.path, i.item_key) IN (<keys>) AND i.ttl_us IS NOT NULL AND {LIVE}
"""

EXPIRED = """
SELECT i.tenant, i.path, i.item_key
  FROM {items} i
 WHERE i.expires_at <= UTC_TIMESTAMP(6)<tenant>
 ORDER BY i.expires_at
 LIMIT %s
"""

# The answer of the write is that of the statement before: how many rows it changed.
SETTLE_AFFECTED = """
INSERT INTO {settled} (tenant, token, outcome, settled_at) VALUES (%s, %s, GREATEST(ROW_COUNT(), 0), UTC_TIMESTAMP(6))
"""
SETTLE_VERSION = """
INSERT INTO {settled} (tenant, token, outcome, settled_at)
SELECT i.tenant, %s, i.version, UTC_TIMESTAMP(6)
  FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s
"""
OUTCOME = "SELECT s.outcome FROM {settled} s WHERE s.tenant = %s AND s.token = %s"

# Relies on the index age.
FORGET_SETTLED = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT %s"

#: At most so many tokens are removed at a time.
TOKENS_AT_ONCE = 1_000

# Move the text of items written since into the full-text index. Relies on the index pending.
INDEX_PENDING = """
UPDATE {items} i
  JOIN (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending)
         WHERE unindexed = 1 LIMIT %s<locking>) AS waiting
    ON waiting.tenant = i.tenant AND waiting.path = i.path AND waiting.item_key = i.item_key
   SET i.search_text = i.pending_text, i.pending_text = NULL, i.unindexed = NULL
 WHERE i.unindexed = 1
"""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item to write, but for its tenant.

    Args:
        path: Its namespace.
        key: Its key.
        value: JSON text.
        metadata: JSON text of an object.
        ttl_us: After how many microseconds it expires.
        text: What is searched by word.
    """

    path: bytes
    key: bytes
    value: str
    metadata: str | None = None
    ttl_us: int | None = None
    text: str | None = None

    def params(self, tenant: str) -> tuple[Param, ...]:
        """The values of the row in the order of the statement."""
        unindexed = None if self.text is None else 1
        sealed = item_checksum(tenant, self.path, self.key, self.value, self.metadata, 1)
        return (
            *(tenant, self.path, self.key, self.value, self.metadata),
            *(self.ttl_us, self.text, unindexed, self.ttl_us, sealed),
        )


def item_checksum(tenant: str, path: bytes, key: bytes, value: str, metadata: str | None, version: int) -> int:
    """The checksum of an item; see also `InspectionStatements`, where the server computes it."""
    return with_version(checksum((tenant, path, key), value, metadata), version)


class WritingStatements(MemoryStatements):
    """Writing, refreshing and deleting items."""

    def touch(self, tenant: str, paths: Sequence[bytes], token: bytes) -> tuple[Statement, ...]:
        """Lock namespaces until the transaction ends, raise their stamps, and leave the token of the write there."""
        return tuple(
            Statement(
                self._text(TOUCH.replace("<rows>", ", ".join([TOUCH_ROW] * len(some)))),
                tuple(param for path in some for param in (tenant, path, token)),
            )
            for some in portions(sorted(set(paths)))
        )

    def guard(self, tenant: str, path: bytes, key: bytes, version: int) -> Statement:
        """Undo the batch unless an item has this version; 0: unless there is none."""
        return Statement(self._text(GUARD), (tenant, path, key, version))

    def put(self, tenant: str, rows: Sequence[ItemRow]) -> tuple[Statement, ...]:
        """Write items whole, each in the place of what is there."""
        return tuple(
            Statement(
                self._text(PUT.replace("<rows>", ",\n       ".join([PUT_ROW] * len(some)))),
                tuple(param for row in some for param in row.params(tenant)),
            )
            for some in portions(rows)
        )

    def delete(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> Statement:
        """Delete items that have not expired; one statement, so that one number tells how many there were."""
        return self.over_keys(DELETE_LIVE, tenant, keys, len(keys))[0]

    def delete_expired(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Delete those of these items that have expired."""
        return self.over_keys(DELETE_EXPIRED, tenant, keys)

    def delete_range_live(self, tenant: str, where: Range) -> Statement:
        """Delete the items of namespaces that have not expired."""
        return Statement(
            self._text(DELETE_RANGE_LIVE.replace("<range>", where.condition("i"))), (tenant, *where.params)
        )

    def delete_range(self, tenant: str, where: Range) -> Statement:
        """Delete the items of namespaces, expired or not."""
        return Statement(self._text(DELETE_RANGE.replace("<range>", where.condition("i"))), (tenant, *where.params))

    def refresh(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Give items that expire their whole time again."""
        return self.over_keys(REFRESH, tenant, keys)

    def expired(self, limit: int, tenant: str | None = None) -> Statement:
        """Tenant, path and key of items that have expired, of all tenants or of one."""
        text = EXPIRED.replace("<tenant>", "" if tenant is None else " AND i.tenant = %s")
        return Statement(self._text(text), (limit,) if tenant is None else (tenant, limit))

    def settle_affected(self, tenant: str, token: bytes) -> Statement:
        """Leave the token of a write whose answer is how many rows the statement before changed."""
        return Statement(self._text(SETTLE_AFFECTED), (tenant, token))

    def settle_version(self, tenant: str, token: bytes, path: bytes, key: bytes) -> Statement:
        """Leave the token of a write whose answer is the version of an item."""
        return Statement(self._text(SETTLE_VERSION), (token, tenant, path, key))

    def outcome(self, tenant: str, token: bytes) -> Statement:
        """What a write has to answer, if it was carried out."""
        return Statement(self._text(OUTCOME), (tenant, token))

    def forget_settled(self) -> Statement:
        """Remove up to `TOKENS_AT_ONCE` of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_SETTLED), (TOKENS_AT_ONCE,))

    def index_pending(self, limit: int, *, skip_locked: bool = False) -> Statement:
        """Index the text of items written since; of all tenants."""
        locking = " FOR UPDATE SKIP LOCKED" if skip_locked else ""
        return Statement(self._text(INDEX_PENDING.replace("<locking>", locking)), (limit,))
