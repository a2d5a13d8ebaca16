"""Statements about threads: locking, listing and clearing them."""

from __future__ import annotations

from typing import NamedTuple

from ....dialect.sql import SQL, Select
from ....records.ledger import record_each


class ThreadRow(NamedTuple):
    """The id of a thread."""

    thread_id: str


class ThreadPosition(NamedTuple):
    """A thread, and its position in the order of pages."""

    thread_id: str
    ordered_at: str


class UsedIdRow(NamedTuple):
    """An id of a thread that rows of a table have, and whether the thread does not exist."""

    thread_id: str
    missing: int


class CountRow(NamedTuple):
    """A number of rows."""

    total: int


_LOCK = """
INSERT INTO {threads} (tenant, thread_id, last_seq, epoch, created_at, updated_at, expires_at)
VALUES (:tenant, :thread_id, 0, :epoch, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), {ONLY_LOCKED})
    ON DUPLICATE KEY UPDATE """

#: Lock a thread, whether it exists or not. Under READ COMMITTED, a statement that finds no row locks nothing, and the
#: statements after it would see whatever another process commits meanwhile. So a thread that does not exist gets a row,
#: which counts as expired: a process that creates the thread waits for this row's lock.
LOCK = SQL(_LOCK + "last_seq = {threads}.last_seq")

#: Lock a thread, and give it another epoch, before some of its rows are removed. The row with the time of its last save
#: may be removed too. Affects two rows if the thread exists, and one if not: then end the batch with UNLOCK, or with
#: what removes the row.
BEGIN_EPOCH = SQL(
    _LOCK
    + """
       epoch      = :epoch,
       updated_at = GREATEST({threads}.updated_at, COALESCE((SELECT c.created_at
                                                       FROM {checkpoints} c
                                                      WHERE c.tenant = :tenant AND c.thread_id = :thread_id
                                                      ORDER BY c.seq DESC LIMIT 1), {threads}.updated_at))"""
)

#: Remove the row of a thread that was inserted only to lock it.
UNLOCK = SQL("DELETE FROM {threads} WHERE tenant = :tenant AND thread_id = :thread_id AND expires_at = {ONLY_LOCKED}")

#: Remove the rows of a locked thread that has expired, and rows under the id of a thread that does not exist, which
#: only damage leaves. Writes are removed only if they are older than the expiry, as later ones may belong to the new
#: thread. Each statement reads the thread's row first, by its key, and no other row if the thread is live.
CLEAR_EXPIRED = (
    SQL("""
DELETE x FROM {checkpoints} x
  JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND t.expires_at <= UTC_TIMESTAMP(6)
"""),
    SQL("""
DELETE x FROM {parts} x
  JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND t.expires_at <= UTC_TIMESTAMP(6)
"""),
    SQL("""
DELETE x FROM {writes} x JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = :tenant AND x.thread_id = :thread_id
   AND t.expires_at <= UTC_TIMESTAMP(6) AND x.created_at <= t.expires_at
"""),
)

#: Remove a thread with everything in it.
DELETE_ALL = tuple(
    SQL(f"DELETE FROM {{{table}}} WHERE tenant = :tenant AND thread_id = :thread_id")
    for table in ("checkpoints", "parts", "writes", "threads")
)

# A repeated save is detected by its token in the row that it wrote. So a removal records the tokens of the saves that
# wrote the rows which are about to be removed, if these saves may still be repeated. A row that was replaced has
# several tokens but not the time of each, so all of them are recorded.
_TOKENS_OF_ROWS = """SELECT c.tenant, SUBSTRING(c.tokens, 16 * slot.number + 1, 16), UTC_TIMESTAMP(6)
  FROM {checkpoints} c
  JOIN (SELECT 0 AS number UNION ALL SELECT 1) slot
    ON 16 * slot.number + 16 <= LENGTH(c.tokens)
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id
   AND (c.created_at > UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND OR LENGTH(c.tokens) >= 32)"""

#: Record the tokens of a thread's saves: of all; of those whose rows are marked to be removed; or of all if the thread
#: has expired.
RECORD_ALL = record_each(_TOKENS_OF_ROWS)
RECORD_MARKED = record_each(f"{_TOKENS_OF_ROWS}\n   AND c.hidden = 2")
RECORD_EXPIRED = record_each(f"""{_TOKENS_OF_ROWS}
   AND EXISTS (SELECT 1 FROM {{threads}} t
                WHERE t.tenant = c.tenant AND t.thread_id = c.thread_id AND t.expires_at <= UTC_TIMESTAMP(6))""")

#: A page of threads, the most recently saved first. `updated_at` may be up to LAG_S older than a thread's newest
#: checkpoint. So of the rows in the order of `updated_at`, the page can only have those that precede its last row, and
#: those at most LAG_S older than that row; only these are examined and sorted. Walks the index recent backwards. The
#: inner SELECT finds the oldest `updated_at` of the page. The piece chooses the threads: those of `MATCHING`, or those
#: of `AFTER`. A thread's position changes only when it is saved to. So pages that each begin after the last thread of
#: the one before neither repeat nor skip other threads, even if some are deleted, saved to or created meanwhile.
PAGE = Select(
    """
SELECT page.thread_id, CAST(page.ordered_at AS CHAR)
  FROM (SELECT t.thread_id, {ORDERED_AT} AS ordered_at
          FROM {threads} t
         WHERE t.tenant = :tenant AND {LIVE_THREAD}{which}
           AND t.updated_at >= COALESCE((SELECT t.updated_at
                                           FROM {threads} t
                                          WHERE t.tenant = :tenant
                                            AND {LIVE_THREAD}{which}
                                          ORDER BY t.updated_at DESC
                                          LIMIT :others, 1), '1970-01-02') - INTERVAL {LAG_S} SECOND) AS page
 ORDER BY page.ordered_at DESC, page.thread_id DESC
 LIMIT :limit OFFSET :offset
""",
    ThreadPosition,
)
MATCHING = " AND t.thread_id LIKE :pattern"

#: The threads after a position. The second line decides for most threads without reading their newest
#: checkpoint.
AFTER = """
   AND t.updated_at <= CAST(:ordered_at AS DATETIME(6))
   AND (t.updated_at < CAST(:ordered_at AS DATETIME(6)) - INTERVAL {LAG_S} SECOND
        OR {ORDERED_AT} < CAST(:ordered_at AS DATETIME(6))
        OR ({ORDERED_AT} = CAST(:ordered_at AS DATETIME(6)) AND t.thread_id < :thread_id))"""

COUNT = Select(
    """
SELECT COUNT(*)
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern
   AND {LIVE_THREAD}
""",
    CountRow,
)

#: A page of the ids of threads that have rows in {table}. Relies on the tables' keys that begin with thread ids.
IDS_IN = Select(
    """
SELECT x.thread_id, t.thread_id IS NULL
  FROM (SELECT DISTINCT thread_id FROM {table}
         WHERE tenant = :tenant AND thread_id > :after
         ORDER BY thread_id
         LIMIT :limit) AS x
  LEFT JOIN {threads} t ON t.tenant = :tenant AND t.thread_id = x.thread_id
 ORDER BY x.thread_id
""",
    UsedIdRow,
)
