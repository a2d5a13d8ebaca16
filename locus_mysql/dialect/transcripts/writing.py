"""Statements that write transcripts. Each write begins with one that locks the transcript and raises its revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from .pieces import RowKey

#: The maximum number of rows that one statement writes.
ROWS_PER_STATEMENT = 100

#: The maximum number of rows that one statement removes.
SEQS_PER_STATEMENT = 1_000

# Remove a transcript that has expired, so that the next statement creates a new one.
REMOVE_EXPIRED = """
DELETE t, i
  FROM {transcripts} t
  LEFT JOIN {items} i ON {OF_TRANSCRIPT}
 WHERE {KEY} AND t.expires_at <= UTC_TIMESTAMP(6)
"""

# Create a transcript, or lock the existing one, and add the new items to its counts; the next statements insert them.
# The assignments run left to right.
LOCK = """
INSERT INTO {transcripts} (tenant, kind, collection, name, part, sid, revision, prior, items, size_bytes, last_seq,
                           created_at, expires_at, seal)
VALUES (%s, %s, %s, %s, %s, %s, {US_SINCE_1970}, 0, %s, %s, %s, UTC_TIMESTAMP(6), {expiry}, %s) AS fresh
    ON DUPLICATE KEY UPDATE
       prior      = {transcripts}.revision,
       revision   = GREATEST({transcripts}.revision + 1, fresh.revision),
       items      = {transcripts}.items + fresh.items,
       size_bytes = {transcripts}.size_bytes + fresh.size_bytes,
       last_seq   = {transcripts}.last_seq + fresh.items,
       expires_at = {later}
"""
REPLACED, LATEST = "fresh.expires_at", "GREATEST({transcripts}.expires_at, fresh.expires_at)"  # NULL stands for never
NEVER, AFTER = "NULL", "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"

# Lock an existing transcript, and subtract items from its counts; the next statement removes them.
LOCK_EXISTING = """
UPDATE {transcripts} t
   SET t.prior      = t.revision,
       t.revision   = GREATEST(t.revision + 1, {US_SINCE_1970}),
       t.items      = t.items - %s,
       t.size_bytes = t.size_bytes - %s
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
"""

# The same for a transcript, or one with all its parts, whose items are all removed.
LOCK_EMPTIED = """
UPDATE {transcripts} t
   SET t.prior      = t.revision,
       t.revision   = GREATEST(t.revision + 1, {US_SINCE_1970}),
       t.items      = 0,
       t.size_bytes = 0
 WHERE {which} AND {LIVE_TRANSCRIPT}
"""

# Undo the batch, with error 3141, unless the transcript had this revision before the batch; 0 stands for no transcript.
GUARD = """
SELECT CAST(IF(COALESCE(MAX(t.prior), 0) = %s, '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}
"""

# Undo the batch, with error 3141, unless the seq of the last item that the transcript ever had is this one.
# MAX: see docs/design/writes.md.
GUARD_SEQ = "SELECT CAST(IF(MAX(t.last_seq) = %s, '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}"

# Undo the batch, with error 3141, unless the transcript had this tag. It is replaced later in the batch.
GUARD_TAG = """
SELECT CAST(IF(MAX(t.prior > 0 AND t.tag = %s), '1', '') AS JSON) FROM {transcripts} t WHERE {KEY}
"""

# Undo the batch, with error 3141, unless the transcript has an item with this id.
GUARD_ITEM = """
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = %s
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
"""

SET_HEADER = "UPDATE {transcripts} t SET t.tag = %s, t.scope = %s, t.state = %s, t.seal = %s WHERE {KEY}"

# The same without the state, which stays. A guard in the batch requires the revision at which the state was read.
SET_TAG = "UPDATE {transcripts} t SET t.tag = %s, t.scope = %s, t.seal = %s WHERE {KEY}"

# The seq of an item is that of the last new item minus the number of items that follow it.
ADD_ONE = """
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, t.last_seq, %s, %s, UTC_TIMESTAMP(6)
  FROM {transcripts} t
 WHERE {KEY}
"""
ADD = """
INSERT INTO {items} (tenant, sid, seq, item_id, content, created_at)
SELECT t.tenant, t.sid, t.last_seq - fresh.behind, fresh.item_id, fresh.content, UTC_TIMESTAMP(6)
  FROM {transcripts} t
  JOIN (VALUES {rows}) AS fresh (behind, item_id, content)
 WHERE {KEY}
"""

# Replace the content of an item by its id. The first statement corrects the transcript's bytes.
COUNT_REPLACED = """
UPDATE {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = %s
   SET t.size_bytes = t.size_bytes - LENGTH(i.content) + %s
 WHERE {KEY}
"""
REPLACE = """
UPDATE {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = %s
   SET i.content = %s
 WHERE {KEY}
"""

REMOVE_ITEM = "DELETE i FROM {transcripts} t JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq = %s WHERE {KEY}"

# Remove items by their seqs, after subtracting them from the counts; and recount the items of a transcript.
SUBTRACT_COUNTS = """
UPDATE {transcripts} t
  JOIN (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.content)), 0) AS size_bytes
          FROM {transcripts} t
          JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN ({seqs})
         WHERE {KEY}) AS gone
   SET t.items      = t.items - gone.items,
       t.size_bytes = t.size_bytes - gone.size_bytes
 WHERE {KEY}
"""
REMOVE_AT = "DELETE i FROM {transcripts} t JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN ({seqs}) WHERE {KEY}"
RECOUNT = """
UPDATE {transcripts} t
  JOIN (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.content)), 0) AS size_bytes, COALESCE(MAX(i.seq), 0) AS last_seq
          FROM {transcripts} t
          JOIN {items} i ON {OF_TRANSCRIPT}
         WHERE {KEY}) AS counted
   SET t.items      = counted.items,
       t.size_bytes = counted.size_bytes,
       t.last_seq   = GREATEST(t.last_seq, counted.last_seq)
 WHERE {KEY}
"""

REMOVE_ITEMS = "DELETE i FROM {transcripts} t JOIN {items} i ON {OF_TRANSCRIPT} WHERE {KEY}"

DELETE = "DELETE t, i FROM {transcripts} t LEFT JOIN {items} i ON {OF_TRANSCRIPT} WHERE {which}"

# Relies on the index expiry.
EXPIRED = """
SELECT t.tenant, t.kind, t.collection, t.name, t.part
  FROM {transcripts} t
 WHERE t.expires_at <= UTC_TIMESTAMP(6)
 ORDER BY t.expires_at
 LIMIT %s
"""

# In the order of the primary key.
OF_TENANT = """
SELECT t.tenant, t.kind, t.collection, t.name, t.part
  FROM {transcripts} t
 WHERE t.tenant = %s
 LIMIT %s
"""


class KeyRow(NamedTuple):
    """The key of a transcript; see `EXPIRED`."""

    tenant: str
    kind: bytes
    collection: bytes
    name: bytes
    part: bytes


class ItemRow(NamedTuple):
    """An item to write.

    Args:
        item_id: Its id, if it has one.
        content: Its sealed content.
    """

    item_id: bytes | None
    content: bytes


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


class WritingStatements(Statements):
    """Writing transcripts and their items."""

    def lock(
        self,
        key: RowKey,
        sid: bytes,
        seal: int,
        rows: Sequence[ItemRow] = (),
        ttl_us: int | None = None,
        *,
        only_later: bool = False,
    ) -> tuple[Statement, ...]:
        """Lock a transcript, or create it, and add new items to its counts; `add` must follow in the batch.

        Args:
            key: The transcript.
            sid: Its sid if it is new.
            seal: Its seal if it is new.
            rows: The items.
            ttl_us: Its time to live in microseconds; None if it never expires.
            only_later: Whether an earlier expiry than the current one is ignored.
        """
        expiry, ttl = (NEVER, ()) if ttl_us is None else (AFTER, (ttl_us,))
        size_bytes = sum(len(row.content) for row in rows)
        counts = (len(rows), size_bytes, len(rows))
        params = (*key, sid, *counts, *ttl, seal)
        text = self._text(LOCK, expiry=expiry, later=LATEST if only_later else REPLACED)
        return Statement(self._text(REMOVE_EXPIRED), key), Statement(text, params)

    def lock_existing(self, key: RowKey, removed: int = 0, size_bytes: int = 0) -> Statement:
        """Lock a transcript if it exists, and subtract items from its counts; the batch must then remove them."""
        return Statement(self._text(LOCK_EXISTING), (removed, size_bytes, *key))

    def lock_emptied(self, key: RowKey, *, parts: bool = False) -> Statement:
        """Lock a transcript if it exists, with all its parts if ``parts``, and set its counts to 0."""
        return Statement(self._text(LOCK_EMPTIED, which=_which(parts)), key[:-1] if parts else key)

    def guard(self, key: RowKey, revision: int) -> Statement:
        """Undo the batch unless the transcript had this revision before it; 0 stands for no transcript."""
        return Statement(self._text(GUARD), (revision, *key))

    def guard_seq(self, key: RowKey, last_seq: int) -> Statement:
        """Undo the batch unless this is the seq of the last item, those that this batch adds included."""
        return Statement(self._text(GUARD_SEQ), (last_seq, *key))

    def guard_tag(self, key: RowKey, tag: bytes) -> Statement:
        """Undo the batch unless the transcript exists and has this tag."""
        return Statement(self._text(GUARD_TAG), (tag, *key))

    def guard_item(self, key: RowKey, item_id: bytes) -> Statement:
        """Undo the batch unless the transcript has an item with this id."""
        return Statement(self._text(GUARD_ITEM), (item_id, *key))

    def set_header(self, key: RowKey, header: HeaderRow, *, keeps_state: bool = False) -> Statement:
        """Replace the caller's columns; with ``keeps_state``, the state is the stored one and is not sent."""
        if keeps_state:
            return Statement(self._text(SET_TAG), (header.tag, header.scope, header.seal, *key))
        return Statement(self._text(SET_HEADER), (*header, *key))

    def add(self, key: RowKey, rows: Sequence[ItemRow]) -> tuple[Statement, ...]:
        """Add the items that were counted when the transcript was locked."""
        if len(rows) == 1:
            return (Statement(self._text(ADD_ONE), (*rows[0], *key)),)
        statements = []
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            portion = rows[start : start + ROWS_PER_STATEMENT]
            text = self._text(ADD, rows=placeholders(len(portion), "ROW(%s, %s, %s)"))
            params: list[Param] = []
            for index, row in enumerate(portion, start + 1):
                params += (len(rows) - index, *row)
            statements.append(Statement(text, (*params, *key)))
        return tuple(statements)

    def replace(self, key: RowKey, row: ItemRow) -> tuple[Statement, ...]:
        """Replace the content of the item with this id."""
        return (
            Statement(self._text(COUNT_REPLACED), (row.item_id, len(row.content), *key)),
            Statement(self._text(REPLACE), (*row, *key)),
        )

    def remove_item(self, key: RowKey, seq: int) -> Statement:
        """Remove one item."""
        return Statement(self._text(REMOVE_ITEM), (seq, *key))

    def remove_at(self, key: RowKey, seqs: Sequence[int]) -> tuple[Statement, ...]:
        """Remove items by their seqs, and count them out. Reads no other items."""
        statements = []
        for start in range(0, len(seqs), SEQS_PER_STATEMENT):
            some = seqs[start : start + SEQS_PER_STATEMENT]
            statements.append(Statement(self._text(SUBTRACT_COUNTS, seqs=placeholders(len(some))), (*some, *key, *key)))
            statements.append(Statement(self._text(REMOVE_AT, seqs=placeholders(len(some))), (*some, *key)))
        return tuple(statements)

    def remove_items(self, key: RowKey) -> Statement:
        """Remove all items."""
        return Statement(self._text(REMOVE_ITEMS), key)

    def empty(self, key: RowKey) -> tuple[Statement, ...]:
        """Remove all items, and count that there are none."""
        return self.remove_items(key), Statement(self._text(RECOUNT), (*key, *key))

    def delete(self, key: RowKey, *, parts: bool = False) -> Statement:
        """Delete a transcript with its items; with all its parts if ``parts``."""
        return Statement(self._text(DELETE, which=_which(parts)), key[:-1] if parts else key)

    def remove_if_expired(self, key: RowKey) -> Statement:
        """Delete a transcript with its items if it has expired."""
        return Statement(self._text(REMOVE_EXPIRED), key)

    def expired(self, limit: int) -> Query[KeyRow]:
        """Transcripts of all tenants that have expired."""
        return Query(self._text(EXPIRED), (limit,), row=KeyRow)

    def of_tenant(self, tenant: str, limit: int) -> Query[KeyRow]:
        """Some transcripts of a tenant."""
        return Query(self._text(OF_TENANT), (tenant, limit), row=KeyRow)


def _which(parts: bool) -> str:
    return "{GROUP}" if parts else "{KEY}"
