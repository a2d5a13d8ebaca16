"""Statements of the inspection: read histories, states and metadata without loading threads. They only read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import Select

# Checkpoints of a thread, newest first, each with the nearest named one that it follows.
_CHOSEN = """WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, c.checkpoint_id, c.parent_seq, c.created_at, {SIZE} AS size_bytes, c.metadata,
         c.token, c.seal
    FROM {checkpoints} c{hint}
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{which}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT :limit
),
{FOLLOWED}"""


class Which(NamedTuple):
    """The checkpoints of a thread that `HISTORY`, `STATE` or `BEGINNINGS` returns, if not all.

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
        return {"which": before + named + by, "hint": "" if named else " FORCE INDEX (PRIMARY)"}


class HistoryRow(NamedTuple):
    """A checkpoint in the history of its thread."""

    seq: int
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: str | None
    token: bytes
    seal: int


#: A thread's checkpoints, newest first; the pieces are those of `Which`.
HISTORY = Select(
    f"""{_CHOSEN}
SELECT chosen.seq, chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.token, chosen.seal
  FROM chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
 ORDER BY chosen.seq DESC
""",
    HistoryRow,
)


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


_STATE = """
SELECT chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.seal, c.seq, c.token, c.payload
  FROM lineage
  JOIN chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
  JOIN {checkpoints} c ON {KEY.c} AND c.seq = lineage.seq
 ORDER BY c.seq DESC
"""

#: A checkpoint with the rows that it builds on, newest first; the pieces are those of `Which`. One statement, so that
#: all rows are from one snapshot. OceanBase has no LIMIT in a recursion (error 3575).
STATE = Select(
    f"""{_CHOSEN},
lineage (seq, base_seq) AS (
  SELECT chosen.seq, chosen.base_seq FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq
    FROM lineage
    JOIN {{checkpoints}} b ON {{KEY.b}} AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   LIMIT 500
){_STATE}""",
    StateRow,
    oceanbase=f"""{_CHOSEN},
lineage (seq, base_seq, hops) AS (
  SELECT chosen.seq, chosen.base_seq, 1 FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {{checkpoints}} b ON {{KEY.b}} AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
){_STATE}""",
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

#: The same for frequent keys, without the last row: among the newest checkpoints of the threads of a step; the pieces
#: are those of a `thread_pages.Step`.
TAGGED_LATELY = Select(
    """
WITH {step}
SELECT step.thread_id, newest.checkpoint_id, newest.created_at, newest.size_bytes, newest.metadata, newest.token,
       newest.seal
  FROM step
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
