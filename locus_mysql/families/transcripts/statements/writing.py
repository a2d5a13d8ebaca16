"""Statements that write transcripts. Each write begins with one that locks the transcript and raises its revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dialect import Statement
from ....dialect.sql import SQL, Dialect
from ....records.ledger import record_outcome
from .tables import RowKey

#: The maximum number of rows that one statement writes, and the maximum number that one removes.
ROWS_PER_STATEMENT, SEQS_PER_STATEMENT = 100, 1_000


class ItemRow(NamedTuple):
    """An item to write.

    Args:
        item_id: Its id, if it has one.
        content: Its sealed content.
        behind: The number of new items behind it.
    """

    item_id: bytes | None
    content: bytes
    behind: int = 0


class HeaderRow(NamedTuple):
    """The columns of a transcript with data of the caller.

    Args:
        tag: A text by which writes can be made conditional.
        scope: A text by which transcripts can be listed.
        state: The sealed state.
        seal: The seal of the row.
    """

    tag: bytes | None
    scope: bytes | None
    state: bytes | None
    seal: int


#: Remove a transcript that has expired, so that the next statement creates a new one.
REMOVE_EXPIRED = SQL("""
DELETE t, i
  FROM {transcripts} t
  LEFT JOIN {items} i ON {OF_TRANSCRIPT}
 WHERE {KEY} AND t.expires_at <= UTC_TIMESTAMP(6)
""")

#: Create a transcript, or lock the existing one, and add the new items to its counts; `add` must follow in the batch.
#: ``sid`` and ``seal`` are those of a new one. The assignments run left to right. NULL stands for never.
LOCK = SQL("""
INSERT INTO {transcripts} (tenant, kind, collection, name, part, sid, revision, prior, items, size_bytes, last_seq,
                           created_at, expires_at, seal)
VALUES (:tenant, :kind, :collection, :name, :part, :sid, {US_SINCE_1970}, 0, :items, :size_bytes, :items,
        UTC_TIMESTAMP(6), {expiry}, :seal) AS fresh
    ON DUPLICATE KEY UPDATE
       prior      = {transcripts}.revision,
       revision   = GREATEST({transcripts}.revision + 1, fresh.revision),
       items      = {transcripts}.items + fresh.items,
       size_bytes = {transcripts}.size_bytes + fresh.size_bytes,
       last_seq   = {transcripts}.last_seq + fresh.items,
       expires_at = {later}
""")
NEVER, AFTER = "NULL", "UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND"
REPLACED, LATEST = "fresh.expires_at", "GREATEST({transcripts}.expires_at, fresh.expires_at)"

#: Lock an existing transcript, and subtract items from its counts; the next statement removes them.
LOCK_EXISTING = SQL("""
UPDATE {transcripts} t
   SET t.prior      = t.revision,
       t.revision   = GREATEST(t.revision + 1, {US_SINCE_1970}),
       t.items      = t.items - :removed,
       t.size_bytes = t.size_bytes - :size_bytes
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
""")

#: The same for a transcript ({KEY}), or one with all its parts ({GROUP}), whose items are all removed.
LOCK_EMPTIED = SQL("""
UPDATE {transcripts} t
   SET t.prior      = t.revision,
       t.revision   = GREATEST(t.revision + 1, {US_SINCE_1970}),
       t.items      = 0,
       t.size_bytes = 0
 WHERE {which} AND {LIVE_TRANSCRIPT}
""")

#: Undo the batch, with error 3141, unless the transcript had this revision before the batch; 0 stands for no
#: transcript. MAX: see docs/design/writes.md.
GUARD = SQL("SELECT CAST(IF(COALESCE(MAX(t.prior), 0) = :revision, '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}")

#: Undo the batch unless this is the seq of the last item that the transcript ever had, with those of this batch.
GUARD_SEQ = SQL("SELECT CAST(IF(MAX(t.last_seq) = :last_seq, '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}")

#: Undo the batch unless the transcript exists and had this tag. It is replaced later in the batch.
GUARD_TAG = SQL("""
SELECT CAST(IF(MAX(t.prior > 0 AND t.tag = :tag), '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}
""")

#: Undo the batch unless the transcript has an item with this id.
GUARD_ITEM = SQL("""
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = :item_id
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
""")

SET_HEADER = SQL(
    "UPDATE {transcripts} t SET t.tag = :tag, t.scope = :scope, t.state = :state, t.seal = :seal WHERE {KEY}"
)

#: The same without the state, which stays. A guard in the batch requires the revision at which the state was read.
SET_TAG = SQL("UPDATE {transcripts} t SET t.tag = :tag, t.scope = :scope, t.seal = :seal WHERE {KEY}")

#: Add the items that were counted when the transcript was locked; see `add`. The seq of an item is that of the last new
#: item minus the number of items behind it.
ADD_ONE = SQL("""
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, t.last_seq, :item_id, :content, UTC_TIMESTAMP(6)
  FROM {transcripts} t
 WHERE {KEY}
""")
ADD = SQL("""
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, t.last_seq - fresh.behind, fresh.item_id, fresh.content, UTC_TIMESTAMP(6)
  FROM {transcripts} t
  JOIN (VALUES [rows: ROW(:behind, :item_id, :content)]) AS fresh (behind, item_id, content)
 WHERE {KEY}
""")

#: Replace the content of an item by its id. The first statement corrects the transcript's bytes.
COUNT_REPLACED = SQL("""
UPDATE {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = :item_id
   SET t.size_bytes = t.size_bytes - LENGTH(i.content) + :size_bytes
 WHERE {KEY}
""")
REPLACE = SQL("""
UPDATE {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = :item_id
   SET i.content = :content
 WHERE {KEY}
""")

#: Remove items by their seqs, after subtracting them from the counts; see `remove_at`.
SUBTRACT_COUNTS = SQL("""
UPDATE {transcripts} t
  JOIN (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.content)), 0) AS size_bytes
          FROM {transcripts} t
          JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN (:seqs)
         WHERE {KEY}) AS gone
   SET t.items      = t.items - gone.items,
       t.size_bytes = t.size_bytes - gone.size_bytes
 WHERE {KEY}
""")
REMOVE_AT = SQL("DELETE i FROM {transcripts} t JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN (:seqs) WHERE {KEY}")

REMOVE_ITEMS = SQL("DELETE i FROM {transcripts} t JOIN {items} i ON {OF_TRANSCRIPT} WHERE {KEY}")

#: Count the items of a transcript anew.
RECOUNT = SQL("""
UPDATE {transcripts} t
  JOIN (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.content)), 0) AS size_bytes, COALESCE(MAX(i.seq), 0) AS last_seq
          FROM {transcripts} t
          JOIN {items} i ON {OF_TRANSCRIPT}
         WHERE {KEY}) AS counted
   SET t.items      = counted.items,
       t.size_bytes = counted.size_bytes,
       t.last_seq   = GREATEST(t.last_seq, counted.last_seq)
 WHERE {KEY}
""")

#: Delete a transcript ({KEY}), or one with all its parts ({GROUP}), with their items.
DELETE = SQL("DELETE t, i FROM {transcripts} t LEFT JOIN {items} i ON {OF_TRANSCRIPT} WHERE {which}")

#: Record the token of a write whose outcome is the transcript's new revision.
RECORD_REVISION = record_outcome("MAX(t.revision)", "{transcripts} t WHERE {KEY}")


def add(sql: Dialect, key: RowKey, rows: Sequence[ItemRow]) -> tuple[Statement, ...]:
    """Add the items that were counted when the transcript was locked."""
    if len(rows) == 1:
        return (ADD_ONE(sql, key, rows[0]),)
    starts = range(0, len(rows), ROWS_PER_STATEMENT)
    return tuple(ADD(sql, key, rows=list(rows[start : start + ROWS_PER_STATEMENT])) for start in starts)


def remove_at(sql: Dialect, key: RowKey, seqs: Sequence[int]) -> tuple[Statement, ...]:
    """Remove items by their seqs, and count them out. Reads no other items."""
    portions = (list(seqs[start : start + SEQS_PER_STATEMENT]) for start in range(0, len(seqs), SEQS_PER_STATEMENT))
    return tuple(
        statement(sql, key, seqs=portion) for portion in portions for statement in (SUBTRACT_COUNTS, REMOVE_AT)
    )
