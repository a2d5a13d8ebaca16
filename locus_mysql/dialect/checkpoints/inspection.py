"""Statements of the inspection: read histories, states and metadata without loading threads. They only read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..inspection import ThreadMarker
from ..statement import Param, Query
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .thread_pages import Step

# The first row of each thread, and its newest checkpoint with the one before it. Rows are chosen by their sizes before
# their payloads are read: InnoDB reads the whole payload of a row even if only its beginning is selected.
PREVIEWS = """
SELECT r.thread_id, r.is_first, r.seq, r.parent_seq, c.token, b.token, LEFT(c.payload, {bytes}),
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
         WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD} AND chosen.payload_bytes <= %s
         LIMIT %s) AS r
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = r.thread_id AND c.seq = r.seq
  LEFT JOIN {checkpoints} b ON b.tenant = c.tenant AND b.thread_id = c.thread_id
                           AND b.seq = c.base_seq AND b.seq < c.seq
"""

# Checkpoints of a thread, newest first, each with the nearest named one that it follows.
CHOSEN = """WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, c.checkpoint_id, c.parent_seq, c.created_at, {SIZE} AS size_bytes, c.metadata,
         c.token, c.seal
    FROM {checkpoints} c{hint}
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{which}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT %s
),
{FOLLOWED}
"""

# The numbers of the newest checkpoints, which are at the beginning of their payloads.
BEGINNINGS = """
SELECT c.seq, c.base_seq, c.parent_seq, c.checkpoint_id, c.created_at, LEFT(c.payload, {bytes})
  FROM {checkpoints} c FORCE INDEX (PRIMARY)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{which}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT %s
"""

# Only checkpoints saved at or before a time.
BY = " AND c.created_at <= %s"

# Checkpoints with one of some metadata keys, of the first ones in the index metadata_pairs, newest first; and a
# row with the number of these.
TAGGED = """
WITH candidates AS (
  SELECT c.thread_id, c.seq
    FROM {checkpoints} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT %s
)
(SELECT c.thread_id, c.checkpoint_id, c.created_at, {SIZE}, c.metadata, c.token, c.seal
   FROM candidates
   STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                 ON c.tenant = %s AND c.thread_id = candidates.thread_id AND c.seq = candidates.seq
   STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  WHERE c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
  ORDER BY c.created_at DESC, c.seq DESC
  LIMIT %s)
UNION ALL
(SELECT NULL, NULL, NULL, COUNT(*), NULL, NULL, NULL FROM candidates)
"""

# The same for frequent keys: among the newest checkpoints of the threads saved last.
TAGGED_LATELY = """
WITH {step}
SELECT step.thread_id, newest.checkpoint_id, newest.created_at, newest.size_bytes, newest.metadata, newest.token,
       newest.seal
  FROM step
  STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = %s AND t.thread_id = step.thread_id
  JOIN LATERAL (SELECT c.checkpoint_id, c.created_at, c.metadata, c.metadata_keys, c.seq, {SIZE} AS size_bytes,
                       c.token, c.seal
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= t.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT {newest}) AS newest
 WHERE {LIVE_THREAD} AND JSON_OVERLAPS(newest.metadata_keys, CAST(%s AS JSON))
 ORDER BY newest.created_at DESC, newest.seq DESC
 LIMIT %s
"""

HISTORY = """{chosen}
SELECT chosen.seq, chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.token, chosen.seal
  FROM chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
 ORDER BY chosen.seq DESC
"""

# A checkpoint with the rows that it builds on, newest first. One statement, so that all rows are from one snapshot.
STATE = """{chosen},
lineage (seq, base_seq) AS (
  SELECT chosen.seq, chosen.base_seq FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   LIMIT 500
)
SELECT chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.seal, c.seq, c.token, c.payload
  FROM lineage
  JOIN chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = lineage.seq
 ORDER BY c.seq DESC
"""

MARKERS = """
SELECT t.thread_id, t.version
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD}
"""


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


class PreviewStatements(Statements):
    """Reading what a list shows of threads' contents."""

    def previews(self, tenant: str, thread_ids: Sequence[str], size: int, largest: int) -> Query[PreviewRow]:
        """Return the first rows and the two newest checkpoints of these threads.

        Args:
            tenant: The tenant.
            thread_ids: The threads.
            size: The number of bytes of each payload to return.
            largest: Rows with a larger payload are left out.
        """
        text = self._text(PREVIEWS, bytes=str(size), ids=placeholders(len(thread_ids)))
        return Query(text, (tenant, *thread_ids, largest, 3 * len(thread_ids), tenant), row=PreviewRow)


# There is no LIMIT in a recursion (error 3575).
OCEANBASE.instead_of(
    STATE,
    """{chosen},
lineage (seq, base_seq, hops) AS (
  SELECT chosen.seq, chosen.base_seq, 1 FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.seal, c.seq, c.token, c.payload
  FROM lineage
  JOIN chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = lineage.seq
 ORDER BY c.seq DESC
""",
)


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


class BeginningRow(NamedTuple):
    """A checkpoint, and the first bytes of its payload."""

    seq: int
    base_seq: int | None
    parent_seq: int | None
    checkpoint_id: str
    created_at: datetime
    beginning: bytes


class InspectionStatements(Statements):
    """Inspection of checkpoints: histories, earlier states, metadata, text that is not indexed yet."""

    def history(
        self, tenant: str, thread_id: str, before_seq: int | None, at: str | None, limit: int
    ) -> Query[HistoryRow]:
        """Return a thread's checkpoints, newest first.

        Args:
            tenant: The tenant.
            thread_id: The thread.
            before_seq: Only those with a smaller seq.
            at: Only those that were saved at this time or before.
            limit: The maximum number of checkpoints to return.
        """
        key = (tenant, thread_id)
        which, params = "", list[Param]()
        if before_seq is not None:
            which += " AND c.seq < %s"
            params.append(before_seq)
        if at is not None:
            which += BY
            params.append(at)
        return Query(self._chosen(HISTORY, which), (*key, *params, limit, *key, *key), row=HistoryRow)

    def state(self, tenant: str, thread_id: str, checkpoint_id: str | None, at: str | None) -> Query[StateRow]:
        """Return a checkpoint with the rows that it builds on, newest first.

        Args:
            tenant: The tenant.
            thread_id: The thread.
            checkpoint_id: The checkpoint; if None, the newest.
            at: Only one that was saved at this time or before.
        """
        key = (tenant, thread_id)
        which, params = "", list[Param]()
        if checkpoint_id is not None:
            which += " AND c.checkpoint_id = %s"
            params.append(checkpoint_id)
        if at is not None:
            which += BY
            params.append(at)
        named = checkpoint_id is not None
        text = self._chosen(STATE, which, named=named)
        return Query(text, (*key, *params, 1, *key, *key, *key, *key), row=StateRow)

    def beginnings(self, tenant: str, thread_id: str, size: int, at: str | None, limit: int) -> Query[BeginningRow]:
        """Return the newest checkpoints with the first bytes of their payloads, newest first."""
        which, params = ("", ()) if at is None else (BY, (at,))
        text = self._text(BEGINNINGS, bytes=str(size), which=which)
        return Query(text, (tenant, thread_id, *params, limit), row=BeginningRow)

    def tagged(self, tenant: str, keys: str, candidates: int, limit: int) -> Query[TaggedRow]:
        """Return checkpoints with one of these metadata keys, newest first, and a row with the number of candidates."""
        return Query(self._text(TAGGED), (tenant, keys, candidates, tenant, limit), row=TaggedRow)

    def tagged_lately(self, tenant: str, keys: str, step: Step, newest: int, limit: int) -> Query[TaggedRow]:
        """Search only the newest checkpoints of each thread of a step, like `tagged`, but without the last row."""
        text = self._text(TAGGED_LATELY, **step.pieces, newest=str(newest))
        return Query(text, (*step.params, tenant, keys, limit), row=TaggedRow)

    def markers(self, tenant: str, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return those of these threads that exist; the marker is the version."""
        return Query(self._text(MARKERS, ids=placeholders(len(thread_ids))), (tenant, *thread_ids), row=ThreadMarker)

    def _chosen(self, template: str, which: str, *, named: bool = False) -> str:
        hint = "" if named else " FORCE INDEX (PRIMARY)"
        return self._text(template, chosen=CHOSEN, which=which, hint=hint)
