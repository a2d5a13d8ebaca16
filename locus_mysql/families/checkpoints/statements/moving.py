"""Statements that read whole threads, write checkpoints with their original times, and copy and rewrite threads."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.resealing import shifted
from ....dialect.sql import SQL, Select
from ....records.ledger import FIND
from .saving import NewRow
from .threads import Number, ThreadId

# Exports and imports


class ThreadRow(NamedTuple):
    """A thread, and one of its rows without the payload; the row's columns are None if it has no rows."""

    version: bytes
    last_seq: int
    first_seq: int
    created_at: datetime
    updated_at: datetime
    expired: int
    seq: int | None
    checkpoint_id: str | None
    parent_seq: int | None
    saved_at: datetime | None
    provisional: int | None


#: A thread, even if expired, and its rows without payloads, oldest first; one row without a seq if the thread has none.
READ_STANDING = Select(
    """
SELECT t.version, t.last_seq, t.first_seq, t.created_at, t.updated_at,
       COALESCE(t.expires_at <= UTC_TIMESTAMP(6), FALSE),
       c.seq, c.checkpoint_id, c.parent_seq, c.created_at, c.continues = 2
  FROM {threads} t
  LEFT JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
 WHERE {KEY.t}
 ORDER BY c.seq
""",
    ThreadRow,
)


class PageRow(NamedTuple):
    """A checkpoint, or, if the id is None, a row that a checkpoint builds on."""

    seq: int
    token: bytes
    payload: bytes
    checkpoint_id: str | None
    base_seq: int | None
    metadata: str | None
    created_at: datetime
    provisional: int
    parent_seq: int | None
    seal: int


_PAGE = """
WITH RECURSIVE page AS (
  SELECT sized.seq, sized.base_seq
    FROM (SELECT near.seq, near.base_seq, SUM(near.size_bytes) OVER (ORDER BY near.seq) - near.size_bytes AS before_it
            FROM (SELECT c.seq, c.base_seq, c.payload_bytes AS size_bytes
                    FROM {checkpoints} c
                    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
                   WHERE {KEY.c} AND c.seq > :after AND c.checkpoint_id IS NOT NULL
                     AND {LIVE_ROW} AND (:since IS NULL OR c.created_at >= :since)
                   ORDER BY c.seq
                   LIMIT :limit) AS near) AS sized
   WHERE sized.before_it < :limit_bytes
),
needed (seq, base_seq) AS (
  SELECT seq, base_seq FROM page
  UNION DISTINCT
  SELECT b.seq, b.base_seq
    FROM needed
    JOIN {checkpoints} b ON {KEY.b} AND b.seq = needed.base_seq AND b.seq < needed.seq
)
SELECT c.seq, c.token, c.payload, IF(page.seq IS NULL, NULL, c.checkpoint_id), c.base_seq, c.metadata, c.created_at,
       c.continues = 2, c.parent_seq, c.seal
  FROM needed
  JOIN {checkpoints} c ON {KEY.c} AND c.seq = needed.seq
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  LEFT JOIN page ON page.seq = c.seq
 ORDER BY c.seq
"""

#: The next checkpoints of a thread along the primary key, and the rows that these build on, each row once. The page
#: ends when its payloads reach the limit; it has at least one checkpoint. In OceanBase, there is no recursive UNION
#: DISTINCT (error 1235). A row builds on few others, so paths that meet are few.
READ_PAGE = Select(
    _PAGE,
    PageRow,
    oceanbase=_PAGE.replace("UNION DISTINCT", "UNION ALL").replace(
        "FROM needed\n  JOIN {checkpoints} c",
        "FROM (SELECT DISTINCT seq FROM needed) AS needed\n  JOIN {checkpoints} c",
    ),
)

#: The ids of threads along the primary key, including all with a save since a time.
THREADS_AFTER = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id > :after AND t.thread_id LIKE :pattern
   AND {LIVE_THREAD} AND {SAVED_SINCE}
 ORDER BY t.thread_id
 LIMIT :limit
""",
    ThreadId,
)

#: The number of checkpoints, saved since a time.
COUNT_CHECKPOINTS = Select(
    """
SELECT COUNT(*)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
   AND {SAVED_SINCE} AND (:since IS NULL OR c.created_at >= :since)
""",
    Number,
)


class ThreadTimes(NamedTuple):
    """Times of a thread's first and last save, as text in UTC; None means now."""

    created_at: str | None
    updated_at: str | None


#: Inserts a new thread. Error 1062 if another process has created it meanwhile.
MAKE_THREAD = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
VALUES (:tenant, :thread_id, :last_seq, 1, :version, COALESCE(:created_at, UTC_TIMESTAMP(6)),
        COALESCE(:updated_at, UTC_TIMESTAMP(6)), {EXPIRY})
""")

#: Reserves seqs in an existing thread, unless another process has written to it since this version. Another first_seq
#: restarts an expired thread. A guard must follow.
GROW_THREAD = SQL("""
UPDATE {threads}
   SET last_seq = :last_seq, first_seq = :first_seq, version = :version,
       created_at = COALESCE(:created_at, UTC_TIMESTAMP(6)), updated_at = COALESCE(:updated_at, UTC_TIMESTAMP(6)),
       expires_at = {EXPIRY}
 WHERE {KEY} AND version = :known_version
""")

#: Inserts a `NewRow` at a given seq of a locked thread, with its time; None means now.
PUT_ROW = SQL("""
INSERT INTO {checkpoints} ({ROW})
VALUES (:tenant, :thread_id, :seq, :checkpoint_id, :parent_seq, :base_seq, {VALUES},
        COALESCE(:created_at, UTC_TIMESTAMP(6)))
""")

#: Clears the ids of some checkpoints. A sweep must follow.
CLEAR_IDS = SQL("UPDATE {checkpoints} c SET {UNNAMED.c} WHERE {KEY.c} AND c.checkpoint_id IN (:checkpoint_ids)")

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

DROP_EXPIRED = SQL("DELETE FROM {threads} WHERE {KEY} AND expires_at <= UTC_TIMESTAMP(6) AND {IDLE}")

#: An expired destination with a lease still has a row, which becomes the copy's row.
COPY_INTO_LEASED = SQL("""
UPDATE {threads} d
  JOIN {threads} t ON t.tenant = d.tenant AND t.thread_id = :source
   SET d.last_seq = t.last_seq, d.first_seq = t.first_seq, d.version = UUID_TO_BIN(UUID()), d.created_at = t.created_at,
       d.updated_at = UTC_TIMESTAMP(6), d.expires_at = {EXPIRY}
 WHERE d.tenant = :tenant AND d.thread_id = :destination AND d.expires_at <= UTC_TIMESTAMP(6)
""")

#: Fails with error 1062 if the destination exists and has not expired.
COPY_THREAD = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
SELECT t.tenant, :destination, t.last_seq, t.first_seq, UUID_TO_BIN(UUID()), t.created_at, UTC_TIMESTAMP(6), {EXPIRY}
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id = :source AND {AFFECTED} = 0
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
