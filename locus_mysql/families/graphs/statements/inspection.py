"""Statements of the inspection: pages of threads, histories and states. They only read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import Select
from ...inspection.item_records import ThreadMarker
from .tables import ns_key


class HistoryRow(NamedTuple):
    """A checkpoint."""

    seq: int
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int | Decimal
    metadata: str | None


class TaggedRow(NamedTuple):
    """A checkpoint with a pair of metadata; parents are not looked up."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: None
    created_at: datetime
    size_bytes: int | Decimal
    metadata: str | None


class OutlineRow(NamedTuple):
    """A checkpoint without its parts; ``stored_seq`` is the seq under which its parts are stored."""

    stored_seq: int
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    payload: bytes
    metadata: str | None
    checkpoint_key: bytes
    parent_key: bytes | None
    needs: int


#: The newest checkpoint of each thread o: the pieces of `OWNERS`. For a graph with subgraphs, that is the one of the
#: graph itself; the time is that of the newest one in any namespace.
NEWEST = (
    """, COALESCE(root.checkpoint_id, newest.checkpoint_id),
       IF(root.checkpoint_id IS NULL, newest.metadata, root.metadata), newest.created_at""",
    f"""
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.created_at
                       FROM {{checkpoints}} c FORCE INDEX (newest)
                      WHERE c.tenant = o.tenant AND c.thread_id = o.thread_id AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                      LIMIT 1) AS newest ON TRUE
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata
                       FROM {{checkpoints}} c FORCE INDEX (PRIMARY)
                      WHERE c.tenant = o.tenant AND c.thread_id = o.thread_id AND c.ns_key = X'{ns_key("").hex()}'
                        AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
                      LIMIT 1) AS root ON TRUE""",
)

#: A thread's checkpoints in all namespaces, the newest first; each with its parent, if that exists and is not hidden.
HISTORY = Select(
    """
SELECT c.seq, c.ns, c.checkpoint_id, p.checkpoint_id, c.created_at, {ROW_BYTES} + {PARTS_OF_ROW}, c.metadata
  FROM {checkpoints} c FORCE INDEX (newest)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  LEFT JOIN {checkpoints} p ON p.tenant = c.tenant AND p.thread_id = c.thread_id AND p.checkpoint_key = c.parent_key
                        AND p.hidden = 0
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0 AND {LIVE_THREAD}{conditions}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT :limit
""",
    HistoryRow,
)

#: A namespace's checkpoints without their parts, the newest first: walks the primary key backwards.
OUTLINES = Select(
    """
SELECT COALESCE(c.stored_seq, c.seq), c.checkpoint_id, IF(c.unlinked, NULL, c.parent_id), c.created_at, c.payload,
   c.metadata, c.checkpoint_key, c.parent_key, c.needs
  FROM {checkpoints} c FORCE INDEX (PRIMARY)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.ns_key = :ns_key
   AND c.hidden = 0 AND {LIVE_THREAD}{conditions}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
 LIMIT :limit
""",
    OutlineRow,
)

#: {conditions} of both, by the name of their parameter.
CONDITIONS = {
    "before_seq": " AND c.seq < :before_seq",
    "checkpoint_key": " AND c.checkpoint_key = :checkpoint_key",
    "newest_of": " AND c.ns_key = :newest_of",
    "until": " AND c.created_at <= :until",
}

#: Checkpoints whose metadata contains a pair, newest first, among the newest checkpoints of the threads saved last.
#: Graphs' metadata has no index.
BY_METADATA = Select(
    """
SELECT t.thread_id, c.ns, c.checkpoint_id, NULL, c.created_at, c.size_bytes, c.metadata
  FROM (SELECT t.tenant, t.thread_id
          FROM {threads} t
         WHERE t.tenant = :tenant AND {LIVE_THREAD}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT :threads) AS t
  JOIN LATERAL (SELECT c.ns, c.checkpoint_id, c.created_at, {ROW_BYTES} AS size_bytes, c.metadata, c.seq
                  FROM {checkpoints} c FORCE INDEX (newest)
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT :checkpoints) AS c
 WHERE c.metadata IS NOT NULL{holds}
 ORDER BY c.created_at DESC, c.seq DESC
 LIMIT :limit
""",
    TaggedRow,
)
#: JSON_VALID, like JSON_CONTAINS, fails with error 3157 if metadata is nested more than 100 deep.
HOLDS = " AND IF(JSON_VALID(c.metadata), JSON_CONTAINS(c.metadata, :pair), FALSE)"

#: A value that changes with each save, removal and write of a task. Reads two rows and an index entry of each thread.
MARKERS = Select(
    """
SELECT t.thread_id, CONCAT_WS('-', HEX(t.epoch), newest.seq,
                              (SELECT CONCAT(COUNT(*), '-', MAX(w.created_at))
                                 FROM {writes} w
                                WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id
                                  AND w.checkpoint_key = newest.checkpoint_key))
  FROM {threads} t
  LEFT JOIN LATERAL (SELECT c.seq, c.checkpoint_key
                       FROM {checkpoints} c FORCE INDEX (newest)
                      WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                      LIMIT 1) AS newest ON TRUE
 WHERE t.tenant = :tenant AND t.thread_id IN (:thread_ids) AND {LIVE_THREAD}
""",
    ThreadMarker,
)
