"""Statements about threads."""

from __future__ import annotations

from ..ledger import RETENTION_S
from ..like import like
from ..statement import Query, Statement
from ..template import Statements
from .new_rows import BaseKey
from .result_rows import CountRow, EpochRow, ThreadPageRow, ThreadRow, UsedIdRow

# Take the next number of a thread, unless its epoch has changed. The statement after it reads ROW_COUNT().
TAKE_SEQ_IN_EPOCH = """
UPDATE {threads}
   SET last_seq   = LAST_INSERT_ID(last_seq + 1),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s AND epoch = %s AND (expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6)){base}
"""

# Lock a thread, whether it exists or not. Under READ COMMITTED, a statement that finds no row locks nothing, and the
# statements after it would see whatever another process commits meanwhile. So a thread that does not exist gets a row,
# which counts as expired: a process that creates the thread waits for this row's lock.
LOCK = """
INSERT INTO {threads} (tenant, thread_id, last_seq, epoch, created_at, updated_at, expires_at)
VALUES (%s, %s, 0, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), {ONLY_LOCKED})
    ON DUPLICATE KEY UPDATE {set}
"""
AS_IT_IS = "last_seq = {threads}.last_seq"

# Give a thread another epoch, before some of its rows are removed. The row with the time of its last save may be
# removed too. Affects two rows if the thread exists, and one if not.
NEW_EPOCH = """
       epoch      = %s,
       updated_at = GREATEST({threads}.updated_at, COALESCE((SELECT c.created_at
                                                               FROM {checkpoints} c
                                                              WHERE c.tenant = %s AND c.thread_id = %s
                                                              ORDER BY c.seq DESC LIMIT 1), {threads}.updated_at))"""

# Remove the row of a thread that was inserted only to lock it.
UNLOCK = "DELETE FROM {threads} WHERE tenant = %s AND thread_id = %s AND expires_at = {ONLY_LOCKED}"

# Take the next number of a thread that is locked. An expired thread starts again. The assignments run left to right;
# expires_at must come after those that read it.
TAKE_SEQ = """
UPDATE {threads}
   SET epoch      = IF(expires_at <= UTC_TIMESTAMP(6), %s, epoch),
       created_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), created_at),
       last_seq   = LAST_INSERT_ID(last_seq + 1),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s
"""

EPOCH = "SELECT epoch FROM {threads} WHERE tenant = %s AND thread_id = %s"

# Remove the rows of an expired thread, and rows under the id of a thread that does not exist, which only damage leaves.
# Writes are removed only if they are older than the expiry, as later ones may belong to the new thread. Each statement
# reads the thread's row first, by its key, and no other row if the thread is live.
CLEAR_EXPIRED = (
    """
DELETE x FROM {checkpoints} x
  JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = %s AND x.thread_id = %s AND t.expires_at <= UTC_TIMESTAMP(6)
""",
    """
DELETE x FROM {parts} x
  JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = %s AND x.thread_id = %s AND t.expires_at <= UTC_TIMESTAMP(6)
""",
    """
DELETE x FROM {writes} x
  JOIN {threads} t ON t.tenant = x.tenant AND t.thread_id = x.thread_id
 WHERE x.tenant = %s AND x.thread_id = %s AND t.expires_at <= UTC_TIMESTAMP(6) AND x.created_at <= t.expires_at
""",
)

DELETE_ALL = (
    "DELETE FROM {checkpoints} WHERE tenant = %s AND thread_id = %s",
    "DELETE FROM {parts} WHERE tenant = %s AND thread_id = %s",
    "DELETE FROM {writes} WHERE tenant = %s AND thread_id = %s",
    "DELETE FROM {threads} WHERE tenant = %s AND thread_id = %s",
)

# A page of threads, the most recently saved first. `updated_at` may be up to LAG_S older than a thread's newest
# checkpoint. So of the rows in the order of `updated_at`, the page can only have those that precede its last row, and
# those at most LAG_S older than that row; only these are examined and sorted. Walks the index recent backwards.
LIST = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD}
   AND t.updated_at >= COALESCE((SELECT b.updated_at
                                   FROM {threads} b
                                  WHERE b.tenant = %s AND b.thread_id LIKE %s
                                    AND (b.expires_at IS NULL OR b.expires_at > UTC_TIMESTAMP(6))
                                  ORDER BY b.updated_at DESC
                                  LIMIT 1 OFFSET %s), '1970-01-02') - INTERVAL {LAG_S} SECOND
 ORDER BY {SAVED_AT} DESC, t.thread_id DESC
 LIMIT %s OFFSET %s
"""

# The threads after a time and an id in that order. The second line decides for most threads without reading their
# newest checkpoint.
_AFTER = """
   AND t.updated_at <= CAST(%s AS DATETIME(6))
   AND (t.updated_at < CAST(%s AS DATETIME(6)) - INTERVAL {LAG_S} SECOND
        OR {ORDERED_AT} < CAST(%s AS DATETIME(6))
        OR ({ORDERED_AT} = CAST(%s AS DATETIME(6)) AND t.thread_id < %s))"""

# A page of threads after a given one, in the order of LIST. A thread's position in this order changes only when it is
# saved to. So pages that each begin after the last thread of the one before neither repeat nor skip other threads,
# even if some are deleted, saved to or created meanwhile. The inner SELECT finds the oldest `updated_at` of the page.
PAGE = """
SELECT page.thread_id, CAST(page.ordered_at AS CHAR)
  FROM (SELECT t.thread_id, {ORDERED_AT} AS ordered_at
          FROM {threads} t
         WHERE t.tenant = %s AND {LIVE_THREAD}{after}
           AND t.updated_at >= COALESCE((SELECT t.updated_at
                                           FROM {threads} t
                                          WHERE t.tenant = %s
                                            AND {LIVE_THREAD}{after}
                                          ORDER BY t.updated_at DESC
                                          LIMIT %s, 1), '1970-01-02') - INTERVAL {LAG_S} SECOND) AS page
 ORDER BY page.ordered_at DESC, page.thread_id DESC
 LIMIT %s
"""

COUNT = """
SELECT COUNT(*)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD}
"""

# Threads to vacuum: expired, or not saved to since an age. Relies on the indexes expiry and recent.
STALE = """
(SELECT t.thread_id FROM {threads} t WHERE t.tenant = %s AND t.expires_at <= UTC_TIMESTAMP(6) LIMIT %s)
UNION
(SELECT t.thread_id FROM {threads} t
  WHERE t.tenant = %s AND t.updated_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
    AND {SAVED_AT} < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND LIMIT %s)
"""

# Lock a thread if it still is stale.
LOCK_STALE = """
UPDATE {threads} t SET t.epoch = %s
 WHERE t.tenant = %s AND t.thread_id = %s
   AND (t.expires_at <= UTC_TIMESTAMP(6) OR {SAVED_AT} < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND)
"""

# Undo the batch, with error 3141, if the statement before locked no thread.
GUARD_LOCKED = "SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)"

# The visible checkpoints of a thread, deleted first where they are to be counted.
DELETE_VISIBLE = "DELETE FROM {checkpoints} WHERE tenant = %s AND thread_id = %s AND hidden = 0"

# A page of ids, and for each whether the thread does not exist. Relies on the tables' keys that begin with thread ids.
IDS_IN = """
SELECT x.thread_id, t.thread_id IS NULL
  FROM (SELECT DISTINCT thread_id FROM {table}
         WHERE tenant = %s AND thread_id > %s
         ORDER BY thread_id
         LIMIT %s) AS x
  LEFT JOIN {threads} t ON t.tenant = %s AND t.thread_id = x.thread_id
 ORDER BY x.thread_id
"""


class ThreadStatements(Statements):
    """Locking, listing and deleting threads."""

    def take_seq_in_epoch(
        self, tenant: str, thread_id: str, epoch: bytes, ttl_us: int | None, base: BaseKey | None
    ) -> Statement:
        """The thread's next number as last insert id; changes nothing if its epoch differs, or its base is missing."""
        text = self._text(TAKE_SEQ_IN_EPOCH, base="" if base is None else "{BASE_IS_THERE}")
        return Statement(
            text, (ttl_us, tenant, thread_id, epoch, *(() if base is None else (tenant, thread_id, *base)))
        )

    def take_seq(
        self, tenant: str, thread_id: str, epoch: bytes, ttl_us: int | None, record: Statement
    ) -> tuple[Statement, ...]:
        """The thread's next number as last insert id; creates the thread, or an expired one again, under this epoch.

        Rows under the thread's id are removed if the thread does not exist or has expired.

        The statement that takes it is the last one.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            epoch: Of the thread, if it is made.
            ttl_us: After how many microseconds without a save it expires; None for never.
            record: Records the tokens of an expired thread's saves, which are removed.
        """
        key = (tenant, thread_id)
        return (
            Statement(self._text(LOCK, set=AS_IT_IS), (*key, epoch)),
            *((record,) if ttl_us is not None and ttl_us < RETENTION_S * 1_000_000 else ()),
            *self.clear_expired(tenant, thread_id),
            Statement(self._text(TAKE_SEQ), (epoch, ttl_us, *key)),
        )

    def clear_expired(self, tenant: str, thread_id: str) -> tuple[Statement, ...]:
        """Remove the rows under the id of a locked thread, if it has expired or does not exist."""
        return tuple(Statement(self._text(text), (tenant, thread_id)) for text in CLEAR_EXPIRED)

    def epoch(self, tenant: str, thread_id: str) -> Query[EpochRow]:
        """The thread's epoch."""
        return Query(self._text(EPOCH), (tenant, thread_id), row=EpochRow)

    def begin_epoch(self, tenant: str, thread_id: str, epoch: bytes) -> Statement:
        """Lock a thread, and give it another epoch; affects two rows if it exists.

        If it does not, it has a row until the batch ends: end the batch with `unlock`, or with what removes the row.
        """
        key = (tenant, thread_id)
        return Statement(self._text(LOCK, set=NEW_EPOCH), (*key, epoch, epoch, *key))

    def unlock(self, tenant: str, thread_id: str) -> Statement:
        """Remove the row of a thread that does not exist, and was locked."""
        return Statement(self._text(UNLOCK), (tenant, thread_id))

    def delete_all(self, tenant: str, thread_id: str) -> tuple[Statement, ...]:
        """Remove a thread with everything in it."""
        return tuple(Statement(self._text(text), (tenant, thread_id)) for text in DELETE_ALL)

    def list(self, tenant: str, pattern: str, limit: int, offset: int) -> Query[ThreadRow]:
        """Ids of threads, most recently saved first."""
        key = (tenant, like(pattern))
        return Query(self._text(LIST), (*key, *key, max(offset + limit - 1, 0), limit, offset), row=ThreadRow)

    def page(self, tenant: str, limit: int, after: tuple[str, str] | None = None) -> Query[ThreadPageRow]:
        """Id and position of threads, most recently saved first.

        Args:
            tenant: The tenant of the threads.
            limit: The maximum number of results.
            after: Place and id of the last thread of the previous page; None for the first page.
        """
        condition = "" if after is None else _AFTER
        params = () if after is None else (*[after[0]] * 4, after[1])
        text = self._text(PAGE, after=condition)
        return Query(text, (tenant, *params, tenant, *params, max(limit - 1, 0), limit), row=ThreadPageRow)

    def count(self, tenant: str, pattern: str) -> Query[CountRow]:
        """Return the number of threads that match."""
        return Query(self._text(COUNT), (tenant, like(pattern)), row=CountRow)

    def stale(self, tenant: str, age_us: int, limit: int) -> Query[ThreadRow]:
        """Return ids of threads that have expired, or whose last save is older than an age."""
        return Query(self._text(STALE), (tenant, limit, tenant, age_us, age_us, limit), row=ThreadRow)

    def lock_stale(self, tenant: str, thread_id: str, epoch: bytes, age_us: int) -> tuple[Statement, Statement]:
        """Lock a thread if it still is stale; else undo the batch."""
        return (
            Statement(self._text(LOCK_STALE), (epoch, tenant, thread_id, age_us)),
            Statement(GUARD_LOCKED),
        )

    def delete_visible(self, tenant: str, thread_id: str) -> Statement:
        """Remove the checkpoints of a thread that is locked; those that were deleted, and are needed, stay."""
        return Statement(self._text(DELETE_VISIBLE), (tenant, thread_id))

    def ids_in_checkpoints(self, tenant: str, after: str, limit: int) -> Query[UsedIdRow]:
        """A page of the ids of threads that have checkpoints, and for each whether the thread does not exist."""
        return Query(self._text(IDS_IN, table="{checkpoints}"), (tenant, after, limit, tenant), row=UsedIdRow)

    def ids_in_parts(self, tenant: str, after: str, limit: int) -> Query[UsedIdRow]:
        """The same of threads that have parts."""
        return Query(self._text(IDS_IN, table="{parts}"), (tenant, after, limit, tenant), row=UsedIdRow)
