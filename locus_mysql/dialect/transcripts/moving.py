"""Statements that read and write transcripts and items with all columns, for export and import."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from .pieces import RowKey
from .reading import StoredHeader
from .writing import RECOUNT, REMOVE_AT, ItemRow

# In the order of the primary key, from a transcript on.
HEADERS = """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = %s
   AND (t.kind > %s OR t.kind = %s AND (t.collection > %s OR t.collection = %s
        AND (t.name > %s OR t.name = %s AND t.part >= %s)))
   AND {LIVE_TRANSCRIPT}
 ORDER BY t.kind, t.collection, t.name, t.part
 LIMIT %s
"""

# The items of a transcript after a seq, by its sid.
ITEMS = """
SELECT i.seq, i.item_id, i.content, i.created_at
  FROM {items} i
 WHERE i.tenant = %s AND i.sid = %s AND i.seq > %s
 ORDER BY i.seq
 LIMIT %s
"""

# Items of a transcript by their seqs.
AT = """
SELECT i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN ({seqs})
 WHERE {KEY}
"""

# A new transcript, without items. Fails with error 1062 if it exists.
CREATE = """
INSERT INTO {transcripts} (tenant, kind, collection, name, part, sid, revision, prior, tag, scope, state, items,
                           size_bytes, last_seq, created_at, expires_at, seal)
VALUES (%s, %s, %s, %s, %s, %s, %s, 0, %s, %s, %s, 0, 0, %s, %s, %s, %s)
"""

# The seqs of later items are above this one.
RAISE_LAST_SEQ = "UPDATE {transcripts} t SET t.last_seq = GREATEST(t.last_seq, %s) WHERE {KEY}"

# Lock an existing transcript. Its revision does not rise: an import only adds items that are missing.
HOLD = "SELECT t.sid FROM {transcripts} t WHERE {KEY} FOR UPDATE"

PUT = """
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, fresh.seq, fresh.item_id, fresh.content, fresh.created_at
  FROM {transcripts} t
  JOIN (VALUES {rows}) AS fresh (seq, item_id, content, created_at)
 WHERE {KEY}
"""


class MovedItem(NamedTuple):
    """An item."""

    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime


class MovingStatements(Statements):
    """Reading and writing transcripts and items with all columns."""

    def headers(self, tenant: str, first: tuple[bytes, bytes, bytes, bytes], limit: int) -> Query[StoredHeader]:
        """Transcripts from a kind, collection, name and part on, in the order of their keys."""
        kind, collection, name, part = first
        params = (tenant, kind, kind, collection, collection, name, name, part, limit)
        return Query(self._text(HEADERS), params, row=StoredHeader)

    def items(self, tenant: str, sid: bytes, after: int, limit: int) -> Query[MovedItem]:
        """Items after a seq."""
        return Query(self._text(ITEMS), (tenant, sid, after, limit), row=MovedItem)

    def items_at(self, key: RowKey, seqs: Sequence[int]) -> Query[MovedItem]:
        """Items by their seqs."""
        return Query(self._text(AT, seqs=placeholders(len(seqs))), (*seqs, *key), row=MovedItem)

    def create(self, key: RowKey, sid: bytes, *columns: Param) -> Statement:
        """A new transcript: its revision, tag, scope, state, last_seq, created_at, expires_at and seal."""
        return Statement(self._text(CREATE), (*key, sid, *columns))

    def raise_last_seq(self, key: RowKey, last_seq: int) -> Statement:
        """Give later items seqs above this one."""
        return Statement(self._text(RAISE_LAST_SEQ), (last_seq, *key))

    def hold(self, key: RowKey) -> Statement:
        """Lock a transcript."""
        return Statement(self._text(HOLD), key)

    def remove_at(self, key: RowKey, seqs: Sequence[int]) -> Statement:
        """Remove items by their seqs."""
        return Statement(self._text(REMOVE_AT, seqs=placeholders(len(seqs))), (*seqs, *key))

    def put(self, key: RowKey, rows: Sequence[tuple[int, ItemRow, str]]) -> Statement:
        """Add items with their seqs and times."""
        text = self._text(PUT, rows=placeholders(len(rows), "ROW(%s, %s, %s, %s)"))
        params: list[Param] = []
        for seq, row, created_at in rows:
            params += (seq, *row, created_at)
        return Statement(text, (*params, *key))

    def recount(self, key: RowKey) -> Statement:
        """Recount the items of a transcript."""
        return Statement(self._text(RECOUNT), (*key, *key))
