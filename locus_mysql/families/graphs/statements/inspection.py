"""Statements of the inspection: pages of threads, histories and states. They only read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import Select
from ...inspection.item_records import ThreadMarker
from .tables import conditions


class ThreadSummary(NamedTuple):
    """A thread; ``updated_at`` is the time in its row, and ``saved_at`` that of its newest checkpoint."""

    thread_id: str
    created_at: datetime
    updated_at: datetime
    saved_at: datetime | None
    checkpoint_id: str | None
    metadata: str | None
    checkpoints: int | Decimal
    size_bytes: int | Decimal


class EndRow(NamedTuple):
    """The last thread that a page examines, and the time in its row."""

    updated_at: datetime
    thread_id: str


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


class PageFilter(NamedTuple):
    """A filter of threads.

    Args:
        pattern: A pattern of their ids; None for all.
        after_time: The time in the row of the last thread of the previous page.
        after_id: The id of that thread.
        end_time: The time in the row of the last thread to examine.
        end_id: The id of that thread.
        since: The earliest time of their rows.
        until: A time later than those of their rows.
    """

    pattern: str | None = None
    after_time: str | None = None
    after_id: str | None = None
    end_time: str | None = None
    end_id: str | None = None
    since: str | None = None
    until: str | None = None

    @property
    def conditions(self) -> str:
        """The conditions on the alias t."""
        return conditions(OF_THREADS, self._asdict())

    def following(self, time: datetime, thread_id: str) -> PageFilter:
        """Return the filter of the threads after one."""
        return self._replace(after_time=str(time), after_id=thread_id)


#: {conditions} of threads, by the name of their parameter.
OF_THREADS = {
    "pattern": "\n           AND t.thread_id LIKE :pattern",
    "after_id": """
           AND t.updated_at <= :after_time AND (t.updated_at < :after_time OR t.thread_id < :after_id)""",
    "end_id": "\n           AND t.updated_at >= :end_time AND (t.updated_at > :end_time OR t.thread_id >= :end_id)",
    "since": "\n           AND t.updated_at >= :since",
    "until": "\n           AND t.updated_at < :until",
}

_SIZES = "held.checkpoints, held.size_bytes + apart.size_bytes + written.size_bytes"
_SIZED = """
  JOIN LATERAL (SELECT COALESCE(SUM(c.hidden = 0), 0) AS checkpoints, COALESCE(SUM({ROW_BYTES}), 0) AS size_bytes
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id) AS held
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0) AS size_bytes
                  FROM {parts} p
                 WHERE p.tenant = t.tenant AND p.thread_id = t.thread_id) AS apart
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(w.payload)), 0) AS size_bytes
                  FROM {writes} w
                 WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id) AS written"""
_THREADS = f"""
SELECT t.thread_id, t.created_at, t.updated_at, newest.created_at,
       COALESCE(root.checkpoint_id, newest.checkpoint_id),
       IF(root.checkpoint_id IS NULL, newest.metadata, root.metadata),
       {_SIZES}
  FROM (SELECT t.tenant, t.thread_id, t.created_at, t.updated_at
          FROM {{threads}} t
         WHERE t.tenant = :tenant AND {{LIVE_THREAD}}{{conditions}}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT :limit) AS t
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.created_at
                       FROM {{checkpoints}} c FORCE INDEX (newest)
                      WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                      LIMIT 1) AS newest ON TRUE
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata
                       FROM {{checkpoints}} c FORCE INDEX (PRIMARY)
                      WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.ns_key = :root_key AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
                      LIMIT 1) AS root ON TRUE{_SIZED}
 ORDER BY t.updated_at DESC, t.thread_id DESC
"""

#: A page of threads in the order of the time in their rows, which is up to a minute older than their last save. So a
#: cursor stays valid while other processes save, and the caller sorts the page by the time of the newest checkpoint.
#: Walks the index recent backwards. For a graph with subgraphs, the newest checkpoint is that of the graph itself.
#: In OceanBase, a LATERAL table without rows to add up loses its thread, silently.
THREADS = Select(
    _THREADS,
    ThreadSummary,
    oceanbase=_THREADS.replace(_SIZED, "").replace(
        _SIZES,
        """(SELECT COALESCE(SUM(c.hidden = 0), 0)
          FROM {checkpoints} c WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id),
       (SELECT COALESCE(SUM({ROW_BYTES}), 0)
          FROM {checkpoints} c WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id)
       + (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0)
            FROM {parts} p WHERE p.tenant = t.tenant AND p.thread_id = t.thread_id)
       + (SELECT COALESCE(SUM(LENGTH(w.payload)), 0)
            FROM {writes} w WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id)""",
    ),
)
NAMED = "\n           AND t.thread_id = :thread_id"

#: The last thread that a page examines, whether its id matches or not; no row if there are fewer.
END = Select(
    """
SELECT t.updated_at, t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND {LIVE_THREAD}{conditions}
 ORDER BY t.updated_at DESC, t.thread_id DESC
 LIMIT 1 OFFSET :others
""",
    EndRow,
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
