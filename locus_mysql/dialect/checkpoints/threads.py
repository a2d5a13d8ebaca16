"""Statements about threads."""

from __future__ import annotations

from typing import NamedTuple

from ..like import like
from ..statement import Query, Statement
from ..template import Statements

# Take the next seq of a thread, and create the thread if it does not exist. An expired thread starts over: rows below
# first_seq no longer belong to it. Assignments are made from left to right, so that of expires_at must come after those
# that read it.
TAKE_SEQ = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at)
VALUES (%s, %s, LAST_INSERT_ID(1), 1, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)
ON DUPLICATE KEY UPDATE
  first_seq  = IF(expires_at <= UTC_TIMESTAMP(6), last_seq + 1, first_seq),
  created_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), created_at),
  last_seq   = LAST_INSERT_ID(last_seq + 1),
  version    = %s,
  updated_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
"""

# The same for a thread that must exist and not have expired, because the save builds on one of its states.
TAKE_SEQ_OF_LIVE = """
UPDATE {threads}
   SET last_seq   = LAST_INSERT_ID(last_seq + 1),
       version    = %s,
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s AND (expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6))
"""

# The same if no other process has written to the thread since this version.
TAKE_SEQ_IF_UNCHANGED = f"{TAKE_SEQ_OF_LIVE.rstrip()} AND version = %s\n"

# Lock a thread for a write that saves nothing. LAST_INSERT_ID() becomes 1 if the version was the known one.
LOCK = """
UPDATE {threads} SET version = IF(LAST_INSERT_ID(version = %s) >= 0, %s, version)
 WHERE tenant = %s AND thread_id = %s AND (expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6))
"""

# The same for a thread that may have expired. LAST_INSERT_ID() becomes 1 if it has not.
LOCK_ANY = """
UPDATE {threads}
   SET version = IF(LAST_INSERT_ID(expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6)) >= 0, %s, version)
 WHERE tenant = %s AND thread_id = %s
"""

# The same for a thread that has expired, or was last saved to before an age, and has no current turn.
LOCK_IDLE = """
UPDATE {threads} SET version = %s
 WHERE tenant = %s AND thread_id = %s
   AND (expires_at <= UTC_TIMESTAMP(6) OR updated_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND) AND {IDLE}
"""

# The same if no other process has written to the thread since this version.
LOCK_UNCHANGED = "UPDATE {threads} SET version = %s WHERE tenant = %s AND thread_id = %s AND version = %s"

# Undoes the batch, with error 3141, unless the statement before it locked a thread. Without the lock, another process
# may create the thread at any moment, so the batch must not touch it.
GUARD_LOCKED = "SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)"

# The same, and also undoes the batch if it was already carried out: by a first try whose answer was lost while the
# second one waited for the lock; or by the second try, if the first packet arrives late.
GUARD_LOCKED_ONCE = "SELECT CAST(IF(ROW_COUNT() > 0 AND NOT EXISTS ({outcome_query}), '1', '') AS JSON)"

# Insert the thread's row for checkpoints that have none, or that have one for a lease only. The assignments run left to
# right.
RESTORE_ROW = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at)
SELECT found.tenant, found.thread_id, found.newest, found.oldest, %s, found.created_at, UTC_TIMESTAMP(6),
       UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
  FROM (SELECT c.tenant, c.thread_id, MAX(c.seq) AS newest, MIN(c.seq) AS oldest, MIN(c.created_at) AS created_at
          FROM {checkpoints} c
         WHERE c.tenant = %s AND c.thread_id = %s
         GROUP BY c.tenant, c.thread_id) AS found
    ON DUPLICATE KEY UPDATE
       first_seq  = IF(expires_at = {LEASE_ONLY}, found.oldest, first_seq),
       expires_at = IF(expires_at = {LEASE_ONLY}, UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND, expires_at),
       last_seq   = GREATEST(last_seq, found.newest), version = %s
"""

# Threads that have checkpoints but no row. No statement here leaves such checkpoints, but damage may.
ORPHANED = """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
  LEFT JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
                       AND (t.expires_at IS NULL OR t.expires_at <> {LEASE_ONLY})
 WHERE c.tenant = %s AND t.thread_id IS NULL
 LIMIT %s
"""

# Finds a row if the thread still has this version.
UNCHANGED = """
SELECT 1 FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND t.version = %s
   AND {LIVE_THREAD}
"""

# A thread without checkpoints has no row.
DROP_IF_EMPTY = """
DELETE FROM {threads}
 WHERE tenant = %s AND thread_id = %s
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL)
"""

DROP = "DELETE FROM {threads} WHERE tenant = %s AND thread_id = %s"

# Walks backwards along the index recent, which ends with thread_id. Both columns must be sorted in the same direction;
# otherwise MySQL sorts all threads.
LIST = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD}
 ORDER BY t.updated_at DESC, t.thread_id DESC
 LIMIT %s OFFSET %s
"""

COUNT = """
SELECT COUNT(*)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND {LIVE_THREAD}
"""


class ThreadId(NamedTuple):
    """The id of a thread."""

    thread_id: str


class Number(NamedTuple):
    """A number of rows."""

    number: int


class ThreadStatements(Statements):
    """Locking, listing and counting threads."""

    def take_seq(self, tenant: str, thread_id: str, version: bytes, ttl_us: int | None) -> Statement:
        """The thread's next seq, as last insert id; makes or revives the thread."""
        return Statement(self._text(TAKE_SEQ), (tenant, thread_id, version, ttl_us, version, ttl_us))

    def take_seq_of_live(self, tenant: str, thread_id: str, version: bytes, ttl_us: int | None) -> Statement:
        """The thread's next seq, as last insert id; changes nothing if there is no live thread."""
        return Statement(self._text(TAKE_SEQ_OF_LIVE), (version, ttl_us, tenant, thread_id))

    def take_seq_if_unchanged(
        self, tenant: str, thread_id: str, version: bytes, ttl_us: int | None, known_version: bytes
    ) -> Statement:
        """Like `take_seq_of_live`, if the thread's version still is the known one."""
        return Statement(self._text(TAKE_SEQ_IF_UNCHANGED), (version, ttl_us, tenant, thread_id, known_version))

    def lock(self, tenant: str, thread_id: str, version: bytes, known_version: bytes = b"") -> Statement:
        """Lock a live thread until the transaction ends, and give it another version. A `guard` must follow.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            version: The new version.
            known_version: The expected current version. If it is current, the last insert id is 1.
        """
        return Statement(self._text(LOCK), (known_version, version, tenant, thread_id))

    def lock_any(self, tenant: str, thread_id: str, version: bytes) -> Statement:
        """Like `lock`, but also for a thread that has expired. If it has not, the last insert id is 1."""
        return Statement(self._text(LOCK_ANY), (version, tenant, thread_id))

    def lock_idle(self, tenant: str, thread_id: str, version: bytes, age_us: int) -> Statement:
        """Like `lock`, for a thread that has expired or was not saved to for longer than an age."""
        return Statement(self._text(LOCK_IDLE), (version, tenant, thread_id, age_us))

    def lock_unchanged(self, tenant: str, thread_id: str, version: bytes, known_version: bytes) -> Statement:
        """Like `lock`, for a thread whose version still is the known one."""
        return Statement(self._text(LOCK_UNCHANGED), (version, tenant, thread_id, known_version))

    def guard(self, outcome_query: Statement | None = None) -> Statement:
        """Undo the batch unless the statement before it locked a thread, and ``outcome_query`` finds nothing."""
        if outcome_query is None:
            return Statement(GUARD_LOCKED)
        return Statement(self._text(GUARD_LOCKED_ONCE, outcome_query=outcome_query.sql), outcome_query.params)

    def restore_row(self, tenant: str, thread_id: str, version: bytes, ttl_us: int | None) -> Statement:
        """Insert or extend the thread's row so that it covers all its checkpoints."""
        return Statement(self._text(RESTORE_ROW), (version, ttl_us, tenant, thread_id, ttl_us, version))

    def orphaned(self, tenant: str, limit: int) -> Query[ThreadId]:
        """Ids of threads that have checkpoints but no row of their own."""
        return Query(self._text(ORPHANED), (tenant, limit), row=ThreadId)

    def unchanged(self, tenant: str, thread_id: str, version: bytes) -> Statement:
        """Return a row if the thread is live and still has this version."""
        return Statement(self._text(UNCHANGED), (tenant, thread_id, version))

    def drop_if_empty(self, tenant: str, thread_id: str) -> Statement:
        """Remove the thread if it has no checkpoint left."""
        return Statement(self._text(DROP_IF_EMPTY), (tenant, thread_id, tenant, thread_id))

    def drop(self, tenant: str, thread_id: str) -> Statement:
        """Remove the thread's row."""
        return Statement(self._text(DROP), (tenant, thread_id))

    def list(self, tenant: str, pattern: str, limit: int, offset: int = 0) -> Query[ThreadId]:
        """Ids of threads, most recently saved first."""
        return Query(self._text(LIST), (tenant, like(pattern), limit, offset), row=ThreadId)

    def count(self, tenant: str, pattern: str) -> Query[Number]:
        """Return the number of threads that match."""
        return Query(self._text(COUNT), (tenant, like(pattern)), row=Number)
