"""Statements that remove, copy and rewrite in bulk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..seals import shifted
from ..statement import Query, Statement
from ..template import Statements
from ..variants import OCEANBASE
from .ledger import CheckpointLedger
from .saving import NewRow
from .threads import ThreadId

# Threads to clean up, page by page along the primary key. Those idle for longer than the cut-off are deleted whole;
# others lose their old checkpoints.
THREADS_BEFORE = """
SELECT t.thread_id, t.updated_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id > %s AND t.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
 ORDER BY t.thread_id
 LIMIT %s
"""

EXPIRED = """
SELECT t.tenant, t.thread_id FROM {threads} t
 WHERE t.expires_at <= UTC_TIMESTAMP(6) AND {IDLE}
 ORDER BY t.expires_at
 LIMIT %s
"""

EXPIRED_OF_TENANT = """
SELECT t.tenant, t.thread_id FROM {threads} t
 WHERE t.tenant = %s AND t.expires_at <= UTC_TIMESTAMP(6) AND {IDLE}
 ORDER BY t.expires_at
 LIMIT %s
"""

# Remove the ids from old checkpoints of an active thread, but never from its newest one.
CLEAR_IDS_BEFORE = """
UPDATE {checkpoints} c
  JOIN (SELECT MAX(seq) AS seq FROM {checkpoints}
         WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL) AS newest ON c.seq < newest.seq
   SET {UNNAMED.c}
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
"""

# Delete the unnamed rows that no named state has among its parents or bases. Bases are parents too, unless parents are
# damaged. In this statement and the next two, DISTINCT ends the recursion even if damaged rows form a cycle.
SWEEP_LEAVES = """
DELETE c FROM {checkpoints} c
  LEFT JOIN (WITH RECURSIVE followed (seq, parent_seq, base_seq) AS (
               SELECT seq, parent_seq, base_seq FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
               UNION DISTINCT
               SELECT p.seq, p.parent_seq, p.base_seq
                 FROM followed
                 JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
               UNION DISTINCT
               SELECT b.seq, b.parent_seq, b.base_seq
                 FROM followed
                 JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = followed.base_seq
             ) SELECT seq FROM followed) AS followed ON followed.seq = c.seq
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND followed.seq IS NULL
"""

# OceanBase has no recursive UNION DISTINCT (error 1235). UNION ALL visits a row once for each path to it, and following
# parents and bases together gives exponentially many paths. So two recursions follow one edge each: `followed` goes
# from a named row along its parents up to the next named row, `needed` along its bases, of which there are few. Both
# end even if damaged rows form a cycle, as they only go to rows with a lower seq.
OCEANBASE.instead_of(
    SWEEP_LEAVES,
    """
DELETE c FROM {checkpoints} c
  LEFT JOIN (WITH RECURSIVE named (seq, parent_seq, base_seq) AS (
               SELECT seq, parent_seq, base_seq FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
             ), followed (seq, parent_seq) AS (
               SELECT seq, parent_seq FROM named
               UNION ALL
               SELECT p.seq, p.parent_seq
                 FROM followed
                 JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
                                     AND p.seq < followed.seq
                WHERE p.checkpoint_id IS NULL
             ), needed (seq, base_seq) AS (
               SELECT seq, base_seq FROM named
               UNION ALL
               SELECT b.seq, b.base_seq
                 FROM needed
                 JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = needed.base_seq
                                     AND b.seq < needed.seq
             ) SELECT seq FROM followed UNION SELECT seq FROM needed) AS followed ON followed.seq = c.seq
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND followed.seq IS NULL
""",
)

# Empty the payloads of unnamed rows that no named state builds on. Relies on the index bases: rows already empty have
# no base_seq.
SWEEP_PAYLOADS = """
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE needed (seq, base_seq) AS (
               SELECT seq, base_seq FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
               UNION DISTINCT
               SELECT b.seq, b.base_seq
                 FROM needed
                 JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = needed.base_seq
             ) SELECT seq FROM needed) AS needed ON needed.seq = c.seq
   SET c.payload = '', c.base_seq = NULL
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND c.base_seq IS NOT NULL AND needed.seq IS NULL
"""

# As for `SWEEP_LEAVES`.
OCEANBASE.instead_of(
    SWEEP_PAYLOADS,
    """
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE needed (seq, base_seq) AS (
               SELECT seq, base_seq FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
               UNION ALL
               SELECT b.seq, b.base_seq
                 FROM needed
                 JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = needed.base_seq
                                     AND b.seq < needed.seq
             ) SELECT DISTINCT seq FROM needed) AS needed ON needed.seq = c.seq
   SET c.payload = '', c.base_seq = NULL
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND c.base_seq IS NOT NULL AND needed.seq IS NULL
""",
)

# Remove the search texts of unnamed rows that no named state continues.
SWEEP_TEXTS = """
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE held (seq, parent_seq, continues) AS (
               SELECT seq, parent_seq, continues FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
               UNION DISTINCT
               SELECT p.seq, p.parent_seq, p.continues
                 FROM held
                 JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = held.parent_seq
                WHERE held.continues = 1
             ) SELECT seq FROM held) AS held ON held.seq = c.seq
   SET c.search_text = NULL, c.pending_text = NULL, c.continues = 0
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND held.seq IS NULL
   AND (c.search_text IS NOT NULL OR c.pending_text IS NOT NULL)
"""

# As for `SWEEP_LEAVES`.
OCEANBASE.instead_of(
    SWEEP_TEXTS,
    """
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE held (seq, parent_seq, continues) AS (
               SELECT seq, parent_seq, continues FROM {checkpoints}
                WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL
               UNION ALL
               SELECT p.seq, p.parent_seq, p.continues
                 FROM held
                 JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = held.parent_seq
                                     AND p.seq < held.seq
                WHERE held.continues = 1 AND p.checkpoint_id IS NULL
             ) SELECT DISTINCT seq FROM held) AS held ON held.seq = c.seq
   SET c.search_text = NULL, c.pending_text = NULL, c.continues = 0
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NULL AND held.seq IS NULL
   AND (c.search_text IS NOT NULL OR c.pending_text IS NOT NULL)
""",
)

# Rows that are needed only as a link to their parents. The rows that follow them get the nearest parent that is needed
# for its content; then the links can be deleted.
SWEEP_BYPASS = """
UPDATE {checkpoints} c
  JOIN (WITH RECURSIVE up (seq, hollow_seq, parent_seq, continues) AS (
          SELECT k.seq, x.seq, x.parent_seq, IF(k.continues = 1 AND x.continues <> 1, 0, k.continues)
            FROM {checkpoints} k
            JOIN {checkpoints} x ON x.tenant = %s AND x.thread_id = %s AND x.seq = k.parent_seq AND x.seq < k.seq
                                AND {HOLLOW.x}
           WHERE k.tenant = %s AND k.thread_id = %s
             AND NOT ({HOLLOW.k})
          UNION ALL
          SELECT up.seq, x.seq, x.parent_seq, IF(up.continues = 1 AND x.continues <> 1, 0, up.continues)
            FROM up
            JOIN {checkpoints} x ON x.tenant = %s AND x.thread_id = %s AND x.seq = up.parent_seq
                                AND x.seq < up.hollow_seq AND {HOLLOW.x}
        )
        SELECT up.seq, up.parent_seq, up.continues
          FROM up
          LEFT JOIN {checkpoints} x ON x.tenant = %s AND x.thread_id = %s AND x.seq = up.parent_seq AND {HOLLOW.x}
         WHERE x.seq IS NULL) AS bypass ON bypass.seq = c.seq
   SET c.parent_seq = bypass.parent_seq, c.continues = bypass.continues
 WHERE c.tenant = %s AND c.thread_id = %s
"""

SWEEP_HOLLOW = "DELETE x FROM {checkpoints} x WHERE x.tenant = %s AND x.thread_id = %s AND {HOLLOW.x}"

TENANT_THREADS = """
SELECT t.thread_id FROM {threads} t WHERE t.tenant = %s ORDER BY t.thread_id LIMIT %s
"""

# Copying a thread. First, rows of an expired destination are removed.
DELETE_EXPIRED = """
DELETE c FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND t.expires_at <= UTC_TIMESTAMP(6)
"""

DROP_EXPIRED = """
DELETE FROM {threads} WHERE tenant = %s AND thread_id = %s AND expires_at <= UTC_TIMESTAMP(6) AND {IDLE}
"""

LOCK_BOTH = """
SELECT t.thread_id FROM {threads} t WHERE t.tenant = %s AND t.thread_id IN (%s, %s) ORDER BY t.thread_id FOR UPDATE
"""

# Copying takes two statements, so the source must exist and be locked, and the copy must not have been made yet:
# otherwise error 3141 undoes the batch. MAX: see docs/design/writes.md.
SOURCE_HELD = """
SELECT CAST(IF(MAX(NOT EXISTS ({outcome_query})), '1', '') AS JSON) FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND {LIVE_THREAD}
   FOR UPDATE
"""

# An expired destination with a lease still has a row, which becomes the copy's row.
COPY_INTO_LEASED = """
UPDATE {threads} d
  JOIN {threads} t ON t.tenant = d.tenant AND t.thread_id = %s
   SET d.last_seq = t.last_seq, d.first_seq = t.first_seq, d.version = UUID_TO_BIN(UUID()), d.created_at = t.created_at,
       d.updated_at = UTC_TIMESTAMP(6), d.expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE d.tenant = %s AND d.thread_id = %s AND d.expires_at <= UTC_TIMESTAMP(6)
"""

COPY_THREAD = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at)
SELECT t.tenant, %s, t.last_seq, t.first_seq, UUID_TO_BIN(UUID()), t.created_at, UTC_TIMESTAMP(6),
       UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND {AFFECTED} = 0
"""

# Seals cover the thread, so those of a copy are other ones: see `Sealing.shift`.
COPY_ROWS = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
SELECT c.tenant, %s, c.seq, c.checkpoint_id, c.parent_seq, c.base_seq, c.continues, c.token, {payload},
       c.metadata, c.metadata_keys, COALESCE(c.search_text, c.pending_text),
       IF(COALESCE(c.search_text, c.pending_text) IS NULL, NULL, 1), c.oldest_at,
       c.seal ^ %s, c.created_at
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq >= t.first_seq
"""

# Rewriting the states of a thread: read them as stored, and insert rows with the same seqs.
THREADS_WITH_OLD_MESSAGES = """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id > %s AND c.oldest_at < %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
 ORDER BY c.thread_id
 LIMIT %s
"""

READ_THREAD = """
SELECT c.seq, c.token, c.payload, c.checkpoint_id, c.base_seq, c.parent_seq, c.metadata, c.metadata_keys, c.created_at,
       t.version, c.seal
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND {LIVE_ROW}
 ORDER BY c.seq
"""

PUT_ROW = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True)
class SequencedRow:
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


class OldThread(NamedTuple):
    """A thread that has old checkpoints; ``idle``: whether all of them are old."""

    thread_id: str
    idle: int


class ExpiredThread(NamedTuple):
    """A thread that has expired."""

    tenant: str
    thread_id: str


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


class MaintenanceStatements(Statements):
    """Removing, copying and rewriting in bulk.

    Args:
        pieces: See `Statements`.
        ledger: The ledger.
    """

    def __init__(self, pieces: Mapping[str, str], ledger: CheckpointLedger) -> None:
        super().__init__(pieces)
        self._ledger = ledger

    def threads_before(self, tenant: str, age_us: int, after: str, limit: int) -> Query[OldThread]:
        """Threads begun before a time."""
        return Query(self._text(THREADS_BEFORE), (age_us, tenant, after, age_us, limit), row=OldThread)

    def expired(self, tenant: str | None, limit: int) -> Query[ExpiredThread]:
        """Threads that have expired, longest expired first."""
        if tenant is None:
            return Query(self._text(EXPIRED), (limit,), row=ExpiredThread)
        return Query(self._text(EXPIRED_OF_TENANT), (tenant, limit), row=ExpiredThread)

    def clear_ids_before(self, tenant: str, thread_id: str, age_us: int) -> Statement:
        """Clear the ids of checkpoints older than this, except the newest."""
        return Statement(self._text(CLEAR_IDS_BEFORE), (tenant, thread_id) * 2 + (age_us,))

    def sweep(self, tenant: str, thread_id: str) -> tuple[Statement, ...]:
        """Remove all rows of a thread that no named checkpoint needs."""
        key = (tenant, thread_id)
        return (
            Statement(self._text(SWEEP_LEAVES), key * 4),
            Statement(self._text(SWEEP_PAYLOADS), key * 3),
            Statement(self._text(SWEEP_TEXTS), key * 3),
            Statement(self._text(SWEEP_BYPASS), key * 5),
            Statement(self._text(SWEEP_HOLLOW), key),
        )

    def tenant_threads(self, tenant: str, limit: int) -> Query[ThreadId]:
        """Ids of a tenant's threads, expired ones too."""
        return Query(self._text(TENANT_THREADS), (tenant, limit), row=ThreadId)

    def copy_thread(
        self,
        tenant: str,
        source: str,
        destination: str,
        ttl_us: int | None,
        outcome_query: Statement,
        *,
        shift: int,
    ) -> tuple[Statement, ...]:
        """Copy a thread; undo the batch if the source does not exist, or `outcome_query` finds a row.

        Fails with error 1062 if the destination exists and has not expired.

        Args:
            tenant: The tenant of both threads.
            source: The thread.
            destination: The copy.
            ttl_us: The time to live of the copy.
            outcome_query: Finds whether the copy was made.
            shift: See `Sealing.shift`.
        """
        held = self._text(SOURCE_HELD, outcome_query=outcome_query.sql)
        return (
            Statement(self._text(LOCK_BOTH), (tenant, source, destination)),
            Statement(held, (*outcome_query.params, tenant, source)),
            self._ledger.record_expired(tenant, destination),
            Statement(self._text(DELETE_EXPIRED), (tenant, destination)),
            Statement(self._text(DROP_EXPIRED), (tenant, destination)),
            Statement(self._text(COPY_INTO_LEASED), (source, ttl_us, tenant, destination)),
            Statement(self._text(COPY_THREAD), (destination, ttl_us, tenant, source)),
            Statement(self._text(COPY_ROWS, payload=shifted("c.payload")), (destination, shift, shift, tenant, source)),
        )

    def threads_with_old_messages(self, tenant: str, before: str, after: str, limit: int) -> Query[ThreadId]:
        """Ids of threads with a checkpoint whose oldest message is from before a time."""
        return Query(self._text(THREADS_WITH_OLD_MESSAGES), (tenant, after, before, limit), row=ThreadId)

    def read_thread(self, tenant: str, thread_id: str) -> Query[WholeRow]:
        """Every row of a thread, oldest first."""
        return Query(self._text(READ_THREAD), (tenant, thread_id), row=WholeRow)

    def put_row(self, tenant: str, thread_id: str, sequenced: SequencedRow) -> Statement:
        """Insert a row with a given seq into a thread that is locked and has been emptied."""
        checkpoint_id, parent_seq, *rest = sequenced.row.params
        values = (sequenced.seq, checkpoint_id, parent_seq, sequenced.base_seq, *rest, sequenced.created_at)
        return Statement(self._text(PUT_ROW), (tenant, thread_id, *values))
