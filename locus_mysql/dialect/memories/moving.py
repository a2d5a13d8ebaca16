"""Statements that read items whole and write them as they were, for export, import and moving over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..statement import Param, Statement
from .ranges import Range
from .template import MemoryStatements, portions
from .writing import item_checksum

#: What an item is read as: its row, the text that is searched by word, whether it has not expired, and an embedding.
WHOLE = """{COLUMNS}, i.ttl_us, COALESCE(i.search_text, i.pending_text), {LIVE}, v.digest, {EMBEDDING}"""

# One statement, so that items and embeddings are of one moment. The inner part reads keys, in the order of the primary
# key; an item comes once for each of its embeddings.
PAGE = """
SELECT <whole>
  FROM (SELECT i.tenant, i.path, i.item_key FROM {items} i
         WHERE i.tenant = %s<range><after> AND {LIVE}
         ORDER BY i.path, i.item_key
         LIMIT %s) AS chosen
  JOIN {items} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
  LEFT JOIN {vectors} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
 ORDER BY i.path, i.item_key, v.place
"""
AFTER = " AND (i.path > %s OR (i.path = %s AND i.item_key > %s))"

KEPT = """
SELECT <whole>
  FROM {items} i
  LEFT JOIN {vectors} v ON v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key
 WHERE (i.tenant, i.path, i.item_key) IN (<keys>)
 ORDER BY i.path, i.item_key, v.place
"""

# Undo the batch, with error 3141, if one of these items is there.
ABSENT = """
SELECT CAST(IF(EXISTS (SELECT 1 FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN (<keys>) AND {LIVE}),
               '', '1') AS JSON)
"""

RESTORE = """
INSERT INTO {items} (tenant, path, item_key, value, metadata, version, ttl_us, search_text, pending_text, unindexed,
                     created_at, updated_at, expires_at, checksum)
VALUES <rows> AS fresh
    ON DUPLICATE KEY UPDATE
       value        = fresh.value,
       metadata     = fresh.metadata,
       version      = fresh.version,
       ttl_us       = fresh.ttl_us,
       search_text  = NULL,
       pending_text = fresh.pending_text,
       unindexed    = fresh.unindexed,
       created_at   = fresh.created_at,
       updated_at   = fresh.updated_at,
       expires_at   = fresh.expires_at,
       checksum     = fresh.checksum
"""
RESTORE_ROW = "(%s, %s, %s, %s, %s, %s, %s, NULL, %s, %s, %s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class KeptRow:
    """An item as it is stored, but for its tenant and embeddings.

    Args:
        path: Its namespace.
        key: Its key.
        value: JSON text.
        metadata: JSON text of an object.
        version: Its version.
        ttl_us: After how many microseconds from a write or refresh it expires.
        text: What is searched by word.
        created_at: As MySQL writes it, in UTC, like the others.
        updated_at: When it was last written.
        expires_at: From when on it is no longer there.
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

    def params(self, tenant: str) -> tuple[Param, ...]:
        """The values of the row in the order of the statement."""
        return (
            *(tenant, self.path, self.key, self.value, self.metadata, self.version, self.ttl_us),
            *(self.text, None if self.text is None else 1, self.created_at, self.updated_at, self.expires_at),
            item_checksum(tenant, self.path, self.key, self.value, self.metadata, self.version),
        )


class MovingStatements(MemoryStatements):
    """Reading items whole, and writing them as they were."""

    def page(self, tenant: str, where: Range, after: tuple[bytes, bytes] | None, limit: int) -> Statement:
        """Items that have not expired, with their embeddings, in the order of their keys, behind one."""
        text = PAGE.replace("<whole>", WHOLE).replace("<range>", where.condition("i"))
        text = text.replace("<after>", AFTER if after else "")
        behind = (after[0], *after) if after else ()
        return Statement(self._text(text), (tenant, *where.params, *behind, limit))

    def kept(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Those of these items that are stored, expired or not, with their embeddings."""
        return self.over_keys(KEPT.replace("<whole>", WHOLE), tenant, keys)

    def absent(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Undo the batch if one of these items is there."""
        return self.over_keys(ABSENT, tenant, keys)

    def restore(self, tenant: str, rows: Sequence[KeptRow]) -> tuple[Statement, ...]:
        """Write items as they were, each in the place of what is there."""
        return tuple(
            Statement(
                self._text(RESTORE.replace("<rows>", ",\n       ".join([RESTORE_ROW] * len(some)))),
                tuple(param for row in some for param in row.params(tenant)),
            )
            for some in portions(rows)
        )
