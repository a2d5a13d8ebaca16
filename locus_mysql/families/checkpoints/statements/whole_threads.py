"""Statements that copy and rewrite whole threads."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.resealing import shifted
from ....dialect.sql import SQL, Select
from ....records.ledger import FIND
from .saving import NewRow
from .threads import ThreadId

# Copying a thread

#: Locks both threads.
LOCK_BOTH = Select(
    """
SELECT t.thread_id FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id IN (:source, :destination) ORDER BY t.thread_id FOR UPDATE
""",
    ThreadId,
)

#: Copying takes two statements, so the source must exist and be locked, and the copy must not have been made yet:
#: otherwise error 3141 undoes the batch. MAX: see docs/design/writes.md.
SOURCE_HELD = SQL(f"""
SELECT CAST(IF(MAX(NOT EXISTS ({FIND.text})), '1', '') AS JSON) FROM {{threads}} t
 WHERE t.tenant = :tenant AND t.thread_id = :source AND {{LIVE_THREAD}}
   FOR UPDATE
""")

#: Removes the rows of an expired destination.
DELETE_EXPIRED = SQL("""
DELETE c FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND t.expires_at <= UTC_TIMESTAMP(6)
""")

DROP_EXPIRED = SQL("DELETE FROM {threads} WHERE {KEY} AND expires_at <= UTC_TIMESTAMP(6)")

#: Fails with error 1062 if the destination exists and has not expired.
COPY_THREAD = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
SELECT t.tenant, :destination, t.last_seq, t.first_seq, UUID_TO_BIN(UUID()), t.created_at, UTC_TIMESTAMP(6), {EXPIRY}
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id = :source
""")

#: Seals cover the thread, so those of a copy are other ones: see `Sealing.shift`.
COPY_ROWS = SQL(f"""
INSERT INTO {{checkpoints}} ({{ROW}})
SELECT c.tenant, :destination, c.seq, c.checkpoint_id, c.parent_seq, c.base_seq, c.continues, c.token,
       {shifted("c.payload")}, c.metadata, c.metadata_keys, COALESCE(c.search_text, c.pending_text),
       IF(COALESCE(c.search_text, c.pending_text) IS NULL, NULL, 1), c.oldest_at,
       c.seal ^ :shift, c.created_at
  FROM {{checkpoints}} c
  JOIN {{threads}} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :source AND c.seq >= t.first_seq
""")

# Rewriting the states of a thread: read them as stored, and put rows with the same seqs.

#: Ids of threads with a checkpoint whose oldest message is from before a time.
THREADS_WITH_OLD_MESSAGES = Select(
    """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id > :after AND c.oldest_at < :before AND c.checkpoint_id IS NOT NULL
   AND {LIVE_ROW}
 ORDER BY c.thread_id
 LIMIT :limit
""",
    ThreadId,
)


class WholeRow(NamedTuple):
    """A row of a thread that is rewritten."""

    seq: int
    token: bytes
    payload: bytes
    checkpoint_id: str | None
    base_seq: int | None
    parent_seq: int | None
    metadata: str | None
    metadata_keys: str | None
    created_at: datetime
    version: bytes
    seal: int


#: Every row of a thread, oldest first.
READ_THREAD = Select(
    """
SELECT c.seq, c.token, c.payload, c.checkpoint_id, c.base_seq, c.parent_seq, c.metadata, c.metadata_keys, c.created_at,
       t.version, c.seal
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND {LIVE_ROW}
 ORDER BY c.seq
""",
    WholeRow,
)


class SequencedRow(NamedTuple):
    """A row with its seq in the thread.

    Args:
        row: Its values.
        seq: Its seq.
        base_seq: The seq of the row it builds on; its own if it builds on no other row.
        created_at: Its time, as text in UTC.
    """

    row: NewRow
    seq: int
    base_seq: int
    created_at: str


#: Inserts a `NewRow` at a given seq of a locked thread, with its time; None means now.
PUT_ROW = SQL("""
INSERT INTO {checkpoints} ({ROW})
VALUES (:tenant, :thread_id, :seq, :checkpoint_id, :parent_seq, :base_seq, {VALUES},
        COALESCE(:created_at, UTC_TIMESTAMP(6)))
""")
