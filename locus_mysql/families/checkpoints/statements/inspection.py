"""Statements of the inspection: they read pages of threads, histories, states and metadata, and load no thread."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import Select
from .queries import CHOSEN
from .threads import ThreadId

# Pages of threads: pieces of `OWNERS` for an owner o

#: The newest checkpoint of each thread, as a `SealedRow`: the first row of a walk backwards along the primary key.
#: ORDER BY must name all columns of that key: with seq alone, MySQL sorts the rows.
NEWEST = (
    ", newest.checkpoint_id, newest.token, newest.metadata, newest.seal",
    """
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.token, c.metadata, c.seal
                       FROM {checkpoints} c
                      WHERE c.tenant = o.tenant AND c.thread_id = o.thread_id AND c.checkpoint_id IS NOT NULL
                        AND c.seq >= o.first_seq
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                      LIMIT 1) AS newest ON TRUE""",
)

#: The condition for threads whose newest checkpoint has one of some metadata keys.
NEWEST_HAS = """
           AND (SELECT JSON_OVERLAPS(c.metadata_keys, CAST(:pairs AS JSON))
                  FROM {checkpoints} c
                 WHERE c.tenant = o.tenant AND c.thread_id = o.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= o.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT 1)"""

#: Threads that have a checkpoint with one of some metadata keys: by the multi-valued index metadata_pairs.
CANDIDATES = Select(
    """
SELECT c.thread_id
  FROM {checkpoints} c FORCE INDEX (metadata_pairs)
 WHERE c.tenant = :tenant AND JSON_OVERLAPS(c.metadata_keys, CAST(:pairs AS JSON)) AND c.checkpoint_id IS NOT NULL
 LIMIT :limit
""",
    ThreadId,
)

# Single threads


class Which(NamedTuple):
    """The checkpoints of a thread that `queries.HISTORY`, `STATE` or `BEGINNINGS` returns, if not all.

    Args:
        before_seq: Only those with a smaller seq.
        checkpoint_id: Only the one with this id.
        saved_by: Only those that were saved at this time or before, as text.
    """

    before_seq: int | None = None
    checkpoint_id: str | None = None
    saved_by: str | None = None

    @property
    def pieces(self) -> dict[str, str]:
        """Return the pieces of the statements."""
        before = "" if self.before_seq is None else " AND c.seq < :before_seq"
        named = "" if self.checkpoint_id is None else " AND c.checkpoint_id = :checkpoint_id"
        by = "" if self.saved_by is None else " AND c.created_at <= :saved_by"
        return {
            "which": before + named + by,
            "hint": "" if named else " FORCE INDEX (PRIMARY)",
            "size": "{SIZE}",
        }


class StateRow(NamedTuple):
    """A checkpoint, and one of the rows that it builds on."""

    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: str | None
    seal: int
    seq: int
    token: bytes
    payload: bytes


#: A checkpoint with the rows that it builds on, newest first; the pieces are those of `Which`. One statement, so that
#: all rows are from one snapshot. OceanBase has no LIMIT in a recursion (error 3575).
STATE = Select(
    f"""{CHOSEN},
lineage (seq, base_seq, hops) AS (
  SELECT chosen.seq, chosen.base_seq, 1 FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {{checkpoints}} b ON {{KEY.b}} AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.seal, c.seq, c.token, c.payload
  FROM lineage
  JOIN chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
  JOIN {{checkpoints}} c ON {{KEY.c}} AND c.seq = lineage.seq
 ORDER BY c.seq DESC
""",
    StateRow,
)


class BeginningRow(NamedTuple):
    """A checkpoint, and the first bytes of its payload."""

    seq: int
    base_seq: int | None
    parent_seq: int | None
    checkpoint_id: str
    created_at: datetime
    beginning: bytes


#: The newest checkpoints with the first bytes of their payloads, newest first; the pieces are those of `Which`.
BEGINNINGS = Select(
    """
SELECT c.seq, c.base_seq, c.parent_seq, c.checkpoint_id, c.created_at, LEFT(c.payload, :bytes)
  FROM {checkpoints} c{hint}
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{which}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT :limit
""",
    BeginningRow,
)


class TaggedRow(NamedTuple):
    """A checkpoint with one of some metadata keys; or, without a thread, the number of candidates as its bytes."""

    thread_id: str | None
    checkpoint_id: str | None
    created_at: datetime | None
    size_bytes: int | Decimal
    metadata: str | None
    token: bytes | None
    seal: int | None

    @property
    def parent_id(self) -> None:
        """Parents are not looked up here."""


#: Checkpoints with one of some metadata keys, of the first ones in the index metadata_pairs, newest first; and a
#: row with the number of these.
TAGGED = Select(
    """
WITH candidates AS (
  SELECT c.thread_id, c.seq
    FROM {checkpoints} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = :tenant AND JSON_OVERLAPS(c.metadata_keys, CAST(:keys AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT :candidates
)
(SELECT c.thread_id, c.checkpoint_id, c.created_at, {SIZE}, c.metadata, c.token, c.seal
   FROM candidates
   STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                 ON c.tenant = :tenant AND c.thread_id = candidates.thread_id AND c.seq = candidates.seq
   STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  WHERE c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
  ORDER BY c.created_at DESC, c.seq DESC
  LIMIT :limit)
UNION ALL
(SELECT NULL, NULL, NULL, COUNT(*), NULL, NULL, NULL FROM candidates)
""",
    TaggedRow,
)

#: The same for frequent keys, without the last row: among the newest checkpoints of the threads saved last.
TAGGED_LATELY = Select(
    """
SELECT step.thread_id, newest.checkpoint_id, newest.created_at, newest.size_bytes, newest.metadata, newest.token,
       newest.seal
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = :tenant
         ORDER BY r.updated_at DESC, r.thread_id DESC
         LIMIT :threads) AS step
  STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = :tenant AND t.thread_id = step.thread_id
  JOIN LATERAL (SELECT c.checkpoint_id, c.created_at, c.metadata, c.metadata_keys, c.seq, {SIZE} AS size_bytes,
                       c.token, c.seal
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= t.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT :newest) AS newest
 WHERE {LIVE_THREAD} AND JSON_OVERLAPS(newest.metadata_keys, CAST(:keys AS JSON))
 ORDER BY newest.created_at DESC, newest.seq DESC
 LIMIT :limit
""",
    TaggedRow,
)


class PreviewRow(NamedTuple):
    """The first row of a thread, or one of its two newest checkpoints: the first bytes of its payload, and their total.

    Both may be the same row, which is then returned twice.
    """

    thread_id: str
    is_first: int
    seq: int
    parent_seq: int | None
    token: bytes
    base_token: bytes | None
    payload: bytes
    payload_bytes: int


#: The first row of each thread, and its newest checkpoint with the one before it. Rows are chosen by their sizes before
#: their payloads are read: InnoDB reads the whole payload of a row even if only its beginning is selected. Rows with
#: a larger payload than `largest` are left out.
PREVIEWS = Select(
    """
SELECT r.thread_id, r.is_first, r.seq, r.parent_seq, c.token, b.token, LEFT(c.payload, :bytes),
       c.payload_bytes
  FROM (SELECT t.thread_id, chosen.is_first, chosen.seq, chosen.parent_seq
          FROM {threads} t
          JOIN LATERAL ((SELECT 1 AS is_first, c.seq, c.parent_seq, c.payload_bytes
                           FROM {checkpoints} c FORCE INDEX (PRIMARY)
                          WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
                          ORDER BY c.tenant, c.thread_id, c.seq
                          LIMIT 1)
                        UNION ALL
                        (SELECT 0, c.seq, c.parent_seq, c.payload_bytes
                           FROM {checkpoints} c FORCE INDEX (PRIMARY)
                          WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
                            AND c.checkpoint_id IS NOT NULL
                          ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                          LIMIT 2)) AS chosen
         WHERE t.tenant = :tenant AND t.thread_id IN (:thread_ids) AND {LIVE_THREAD}
           AND chosen.payload_bytes <= :largest
         LIMIT :limit) AS r
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = :tenant AND c.thread_id = r.thread_id AND c.seq = r.seq
  LEFT JOIN {checkpoints} b ON b.tenant = c.tenant AND b.thread_id = c.thread_id
                           AND b.seq = c.base_seq AND b.seq < c.seq
""",
    PreviewRow,
)


class OutlineRow(NamedTuple):
    """A row that a chosen checkpoint builds on, with the first bytes of its payload."""

    thread_id: str
    chosen_seq: int
    seq: int
    base_seq: int | None
    beginning: bytes


#: A sample of the checkpoints of some threads, by a hash of their ids, which the index named has; each with the rows
#: that it builds on, newest first: the beginnings of their payloads. The bound is for damaged rows.
OUTLINES = Select(
    """
WITH RECURSIVE chosen AS (
  SELECT c.thread_id, c.seq
    FROM {threads} t
    STRAIGHT_JOIN {checkpoints} c FORCE INDEX (named) ON c.tenant = t.tenant AND c.thread_id = t.thread_id
   WHERE (t.tenant, t.thread_id) IN (:keys) AND c.checkpoint_id IS NOT NULL AND c.seq >= t.first_seq
     AND MOD(CRC32(CONCAT(c.checkpoint_id, '/', c.thread_id)), :one_in) = 0
   LIMIT :limit
),
lineage (thread_id, chosen_seq, seq, base_seq, hops) AS (
  SELECT c.thread_id, c.seq, c.seq, c.base_seq, 0
    FROM chosen
    JOIN {checkpoints} c ON c.tenant = :tenant AND c.thread_id = chosen.thread_id AND c.seq = chosen.seq
  UNION ALL
  SELECT lineage.thread_id, lineage.chosen_seq, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = :tenant AND b.thread_id = lineage.thread_id
                        AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT lineage.thread_id, lineage.chosen_seq, c.seq, c.base_seq, LEFT(c.payload, :bytes)
  FROM lineage
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = :tenant AND c.thread_id = lineage.thread_id AND c.seq = lineage.seq
 ORDER BY lineage.thread_id, lineage.chosen_seq, c.seq DESC
""",
    OutlineRow,
)
