"""Statements that read threads whole, and write checkpoints as they were elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..like import like
from ..statement import Statement
from ..template import Statements
from .saving import NewRow

# A thread, also one that has expired, and its rows without what they hold; one row without a seq if there are none.
THREAD = """
SELECT t.version, t.last_seq, t.first_seq, t.created_at, t.updated_at,
       COALESCE(t.expires_at <= UTC_TIMESTAMP(6), FALSE),
       c.seq, c.checkpoint_id, c.parent_seq, c.created_at, c.continues = 2
  FROM {threads} t
  LEFT JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
 WHERE t.tenant = %s AND t.thread_id = %s
 ORDER BY c.seq
"""

# The next checkpoints of a thread along the primary key, and the rows that these build on, each row once. The page ends
# where its payloads are large enough; it has at least one checkpoint.
PAGE = """
WITH RECURSIVE page AS (
  SELECT sized.seq, sized.base_seq
    FROM (SELECT near.seq, near.base_seq, SUM(near.size_bytes) OVER (ORDER BY near.seq) - near.size_bytes AS before_it
            FROM (SELECT c.seq, c.base_seq, c.payload_bytes AS size_bytes
                    FROM {checkpoints} c
                    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
                   WHERE c.tenant = %s AND c.thread_id = %s AND c.seq > %s AND c.checkpoint_id IS NOT NULL AND {LIVE}
                     AND (%s IS NULL OR c.created_at >= %s)
                   ORDER BY c.seq
                   LIMIT %s) AS near) AS sized
   WHERE sized.before_it < %s
),
needed (seq, base_seq) AS (
  SELECT seq, base_seq FROM page
  UNION DISTINCT
  SELECT b.seq, b.base_seq
    FROM needed
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = needed.base_seq AND b.seq < needed.seq
)
SELECT c.seq, c.token, c.payload, IF(page.seq IS NULL, NULL, c.checkpoint_id), c.base_seq, c.metadata, c.created_at,
       c.continues = 2, c.parent_seq
  FROM needed
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = needed.seq
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  LEFT JOIN page ON page.seq = c.seq
 ORDER BY c.seq
"""

# A thread in which there may be a checkpoint that was saved since a time. A save takes the time of the thread's row
# when it begins to wait for the thread's lock, and that of the checkpoint's when it has it.
SAVED_SINCE = "(%s IS NULL OR t.updated_at >= CAST(%s AS DATETIME(6)) - INTERVAL 1 HOUR)"

# The ids of threads along the primary key.
THREADS_AFTER = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id > %s AND t.thread_id LIKE %s
   AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6)) AND {SAVED_SINCE}
 ORDER BY t.thread_id
 LIMIT %s
""".replace("{SAVED_SINCE}", SAVED_SINCE)

COUNT_CHECKPOINTS = """
SELECT COUNT(*)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = %s AND t.thread_id LIKE %s AND c.checkpoint_id IS NOT NULL AND {LIVE}
   AND {SAVED_SINCE} AND (%s IS NULL OR c.created_at >= %s)
""".replace("{SAVED_SINCE}", SAVED_SINCE)

COUNT_THREADS = """
SELECT COUNT(*)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id LIKE %s
   AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))
"""

# A thread that is not there yet. If another process was faster, this is error 1062.
MAKE = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at)
VALUES (%s, %s, %s, 1, %s, COALESCE(%s, UTC_TIMESTAMP(6)), COALESCE(%s, UTC_TIMESTAMP(6)),
        UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)
"""

# One that is there, if nobody has written to it since its version was this. With another first_seq an expired one
# begins anew.
GROW = """
UPDATE {threads}
   SET last_seq = %s, first_seq = %s, version = %s, created_at = COALESCE(%s, UTC_TIMESTAMP(6)),
       updated_at = COALESCE(%s, UTC_TIMESTAMP(6)), expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s AND version = %s
"""

PUT = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
                           metadata, metadata_keys, pending_text, unindexed, oldest_at, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, COALESCE(%s, UTC_TIMESTAMP(6)))
"""

UNNAME_ALL = """
UPDATE {checkpoints} c
   SET {UNNAMED[c]}
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IN ({ids})
"""


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """When a thread was first and last saved, as text in UTC; None means now."""

    created_at: str | None
    updated_at: str | None


class MovingStatements(Statements):
    """Reading threads whole, and writing checkpoints as they were elsewhere."""

    def thread(self, tenant: str, thread_id: str) -> Statement:
        """A thread and its rows without what they hold, oldest first."""
        return Statement(self._text(THREAD), (tenant, thread_id))

    def page(
        self, tenant: str, thread_id: str, after: int, limit: int, limit_bytes: int, since: str | None
    ) -> Statement:
        """The checkpoints behind a seq with their states, and what these build on.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            after: The seq.
            limit: At most so many checkpoints.
            limit_bytes: None once the payloads of those before are as large as this.
            since: Only those saved since.
        """
        key = (tenant, thread_id)
        return Statement(self._text(PAGE), (*key, after, since, since, limit, limit_bytes, *key, *key))

    def threads_after(self, tenant: str, after: str, glob: str, since: str | None, limit: int) -> Statement:
        """Ids of threads behind one that match a glob, all that were saved to since a time among them."""
        return Statement(self._text(THREADS_AFTER), (tenant, after, like(glob), since, since, limit))

    def count_threads(self, tenant: str, glob: str) -> Statement:
        """How many threads match a glob."""
        return Statement(self._text(COUNT_THREADS), (tenant, like(glob)))

    def count_checkpoints(self, tenant: str, glob: str, since: str | None) -> Statement:
        """How many checkpoints, saved since a time, the threads that match a glob have."""
        return Statement(self._text(COUNT_CHECKPOINTS), (tenant, like(glob), since, since, since, since))

    def make(
        self, tenant: str, thread_id: str, last_seq: int, version: bytes, times: ThreadTimes, ttl_us: int | None
    ) -> Statement:
        """Make a thread that is not there."""
        values = (tenant, thread_id, last_seq, version, times.created_at, times.updated_at, ttl_us)
        return Statement(self._text(MAKE), values)

    def grow(
        self,
        tenant: str,
        thread_id: str,
        seqs: tuple[int, int],
        version: bytes,
        known_version: bytes,
        times: ThreadTimes,
        ttl_us: int | None,
    ) -> Statement:
        """Take seqs in a thread whose version still is the known one. A guard must follow.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            seqs: The last seq, and the first one that counts, that it then has.
            version: The version that it then has.
            known_version: The version that it must have.
            times: What its times become.
            ttl_us: For how long it then lives.
        """
        values = (*seqs, version, times.created_at, times.updated_at, ttl_us, tenant, thread_id, known_version)
        return Statement(self._text(GROW), values)

    def put(
        self, tenant: str, thread_id: str, seq: int, base_seq: int, row: NewRow, created_at: str | None
    ) -> Statement:
        """Insert a row at a given place of a thread that is locked, with its time; None means now."""
        checkpoint_id, parent_seq, *rest = row.params
        values = (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, *rest, created_at)
        return Statement(self._text(PUT), values)

    def unname_all(self, tenant: str, thread_id: str, checkpoint_ids: Sequence[str]) -> Statement:
        """Take the names from checkpoints. A sweep must follow."""
        text = self._text(UNNAME_ALL.replace("{ids}", ", ".join(["%s"] * len(checkpoint_ids))))
        return Statement(text, (tenant, thread_id, *checkpoint_ids))
