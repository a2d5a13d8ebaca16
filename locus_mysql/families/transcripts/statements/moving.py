"""Statements that read and write transcripts and items with all columns, for export and import."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.sql import SQL, Select
from .reading import StoredHeader


class MovedItem(NamedTuple):
    """An item."""

    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime


class PutRow(NamedTuple):
    """An item to write, with its seq and time."""

    seq: int
    item_id: bytes | None
    content: bytes
    created_at: str


#: Transcripts from a kind, collection, name and part on, in the order of the primary key.
HEADERS = Select(
    """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = :tenant
   AND (t.kind > :kind OR t.kind = :kind AND (t.collection > :collection OR t.collection = :collection
        AND (t.name > :name OR t.name = :name AND t.part >= :part)))
   AND {LIVE_TRANSCRIPT}
 ORDER BY t.kind, t.collection, t.name, t.part
 LIMIT :limit
""",
    StoredHeader,
)

#: The items of a transcript after a seq, by its sid.
ITEMS = Select(
    """
SELECT i.seq, i.item_id, i.content, i.created_at
  FROM {items} i
 WHERE i.tenant = :tenant AND i.sid = :sid AND i.seq > :after
 ORDER BY i.seq
 LIMIT :limit
""",
    MovedItem,
)

#: Items of a transcript by their seqs.
AT = Select(
    """
SELECT i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN (:seqs)
 WHERE {KEY}
""",
    MovedItem,
)

#: A new transcript, without items. Fails with error 1062 if it exists.
CREATE = SQL("""
INSERT INTO {transcripts} (tenant, kind, collection, name, part, sid, revision, prior, tag, scope, state, items,
                           size_bytes, last_seq, created_at, expires_at, seal)
VALUES (:tenant, :kind, :collection, :name, :part, :sid, :revision, 0, :tag, :scope, :state, 0, 0, :last_seq,
        :created_at, :expires_at, :seal)
""")

#: Give later items seqs above this one.
RAISE_LAST_SEQ = SQL("UPDATE {transcripts} t SET t.last_seq = GREATEST(t.last_seq, :last_seq) WHERE {KEY}")

#: Lock an existing transcript. Its revision does not rise: an import only adds items that are missing.
HOLD = SQL("SELECT t.sid FROM {transcripts} t WHERE {KEY} FOR UPDATE")

PUT = SQL("""
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, fresh.seq, fresh.item_id, fresh.content, fresh.created_at
  FROM {transcripts} t
  JOIN (VALUES [rows: ROW(:seq, :item_id, :content, :created_at)]) AS fresh (seq, item_id, content, created_at)
 WHERE {KEY}
""")
