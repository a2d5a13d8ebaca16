"""Statements of the inspection: pages of threads, histories and states. They only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..inspection import ThreadMarker
from ..like import like
from ..statement import Param, Query
from ..template import Statements, placeholders
from ..variants import OCEANBASE

# A page of threads in the order of the time in their rows, which is up to a minute older than their last save. So a
# cursor stays valid while other processes save, and the caller sorts the page by the time of the newest checkpoint.
# Walks the index recent backwards. For a graph with subgraphs, the newest checkpoint is that of the graph itself.
THREADS = """
SELECT t.thread_id, t.created_at, t.updated_at, newest.created_at,
       COALESCE(root.checkpoint_id, newest.checkpoint_id),
       IF(root.checkpoint_id IS NULL, newest.metadata, root.metadata),
       {sizes}
  FROM (SELECT t.tenant, t.thread_id, t.created_at, t.updated_at
          FROM {threads} t
         WHERE t.tenant = %s AND {LIVE_THREAD}{conditions}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS t
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.created_at
                       FROM {checkpoints} c FORCE INDEX (newest)
                      WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                      LIMIT 1) AS newest ON TRUE
  LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata
                       FROM {checkpoints} c FORCE INDEX (PRIMARY)
                      WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.ns_key = %s AND c.hidden = 0
                      ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
                      LIMIT 1) AS root ON TRUE{sized}
 ORDER BY t.updated_at DESC, t.thread_id DESC
"""
SIZES = "held.checkpoints, held.size_bytes + apart.size_bytes + written.size_bytes"
SIZED = """
  JOIN LATERAL (SELECT COALESCE(SUM(c.hidden = 0), 0) AS checkpoints, COALESCE(SUM({ROW_BYTES}), 0) AS size_bytes
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id) AS held
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0) AS size_bytes
                  FROM {parts} p
                 WHERE p.tenant = t.tenant AND p.thread_id = t.thread_id) AS apart
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(w.payload)), 0) AS size_bytes
                  FROM {writes} w
                 WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id) AS written"""

# There, a LATERAL table without rows to add up loses its thread, silently.
OCEANBASE.instead_of(
    SIZES,
    """(SELECT COALESCE(SUM(c.hidden = 0), 0)
          FROM {checkpoints} c WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id),
       (SELECT COALESCE(SUM({ROW_BYTES}), 0)
          FROM {checkpoints} c WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id)
       + (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0)
            FROM {parts} p WHERE p.tenant = t.tenant AND p.thread_id = t.thread_id)
       + (SELECT COALESCE(SUM(LENGTH(w.payload)), 0)
            FROM {writes} w WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id)""",
)
OCEANBASE.instead_of(SIZED, "")
_SIZES = {"sizes": SIZES, "sized": SIZED}

LIKE = "\n           AND t.thread_id LIKE %s"

# The last thread that a page examines, whether its id matches or not.
END = """
SELECT t.updated_at, t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND {LIVE_THREAD}{conditions}
 ORDER BY t.updated_at DESC, t.thread_id DESC
 LIMIT 1 OFFSET %s
"""
NOT_AFTER = "\n           AND t.updated_at >= %s AND (t.updated_at > %s OR t.thread_id >= %s)"
NAMED = "\n           AND t.thread_id = %s"
AFTER = "\n           AND t.updated_at <= %s AND (t.updated_at < %s OR t.thread_id < %s)"

# A thread's checkpoints in all namespaces, the newest first; each with its parent, if that exists and is not hidden.
HISTORY = """
SELECT c.seq, c.ns, c.checkpoint_id, p.checkpoint_id, c.created_at, {ROW_BYTES} + {PARTS_OF_ROW}, c.metadata
  FROM {checkpoints} c FORCE INDEX (newest)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  LEFT JOIN {checkpoints} p ON p.tenant = c.tenant AND p.thread_id = c.thread_id AND p.checkpoint_key = c.parent_key
                        AND p.hidden = 0
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0 AND {LIVE_THREAD}{conditions}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT %s
"""
BEFORE = " AND c.seq < %s"
THIS = " AND c.checkpoint_key = %s"
NEWEST_OF = " AND c.ns_key = %s"
BY = " AND c.created_at <= %s"

# A namespace's checkpoints without their parts, the newest first: walks the primary key backwards.
OUTLINES = """
SELECT COALESCE(c.stored_seq, c.seq), c.checkpoint_id, IF(c.unlinked, NULL, c.parent_id), c.created_at, c.payload,
       c.metadata, c.checkpoint_key, c.parent_key, c.needs
  FROM {checkpoints} c FORCE INDEX (PRIMARY)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.ns_key = %s AND c.hidden = 0 AND {LIVE_THREAD}{conditions}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
 LIMIT %s
"""

# Checkpoints whose metadata contains a pair, newest first, among the newest checkpoints of the threads saved last.
# Graphs' metadata has no index.
BY_METADATA = """
SELECT t.thread_id, c.ns, c.checkpoint_id, NULL, c.created_at, c.size_bytes, c.metadata
  FROM (SELECT t.tenant, t.thread_id
          FROM {threads} t
         WHERE t.tenant = %s AND {LIVE_THREAD}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS t
  JOIN LATERAL (SELECT c.ns, c.checkpoint_id, c.created_at, {ROW_BYTES} AS size_bytes, c.metadata, c.seq
                  FROM {checkpoints} c FORCE INDEX (newest)
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT %s) AS c
 WHERE c.metadata IS NOT NULL{holds}
 ORDER BY c.created_at DESC, c.seq DESC
 LIMIT %s
"""
# JSON_VALID, like JSON_CONTAINS, fails with error 3157 if metadata is nested more than 100 deep.
HOLDS = " AND IF(JSON_VALID(c.metadata), JSON_CONTAINS(c.metadata, %s), FALSE)"

# A value that changes with each save, removal and write of a task. Reads two rows and an index entry of each thread.
MARKERS = """
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
 WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD}
"""


class ThreadPosition(NamedTuple):
    """The time in a thread's row as text, and its id: pages of threads are in this order."""

    updated_at: str
    thread_id: str


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

    @property
    def position(self) -> ThreadPosition:
        """Where it stands in the order of threads."""
        return ThreadPosition(str(self.updated_at), self.thread_id)


class EndRow(NamedTuple):
    """The last thread that a page examines."""

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


@dataclass(frozen=True, slots=True)
class PageFilter:
    """A filter of threads.

    Args:
        pattern: A glob of their ids.
        after: The last thread of the previous page.
        since: The earliest time of their rows.
        until: A time later than those of their rows.
    """

    pattern: str = "*"
    after: ThreadPosition | None = None
    since: str | None = None
    until: str | None = None

    def conditions(self, *, matching: bool) -> tuple[str, list[Param]]:
        """Return the conditions on the alias t, and their parameters.

        Args:
            matching: Whether the ids must match.
        """
        text = ""
        params: list[Param] = []
        if matching and self.pattern != "*":
            text += LIKE
            params.append(like(self.pattern))
        if self.after is not None:
            text += AFTER
            params += [self.after[0], *self.after]
        if self.since is not None:
            text += "\n           AND t.updated_at >= %s"
            params.append(self.since)
        if self.until is not None:
            text += "\n           AND t.updated_at < %s"
            params.append(self.until)
        return text, params


class InspectionStatements(Statements):
    """Inspection of threads of graphs."""

    def threads(
        self, tenant: str, root_key: bytes, limit: int, asked: PageFilter, end: ThreadPosition | None
    ) -> Query[ThreadSummary]:
        """Return a page of threads.

        Args:
            tenant: The tenant.
            root_key: The namespace of graphs themselves.
            limit: The maximum number of threads to return.
            asked: The filter.
            end: The last thread to examine.
        """
        conditions, params = asked.conditions(matching=True)
        if end is not None:
            conditions += NOT_AFTER
            params += [end[0], *end]
        return Query(
            self._text(THREADS, conditions=conditions, **_SIZES),
            (tenant, *params, limit, root_key),
            row=ThreadSummary,
        )

    def end(self, tenant: str, asked: PageFilter, count: int) -> Query[EndRow]:
        """Return the last thread that a page examines, whatever their ids; no row if there are fewer."""
        conditions, params = asked.conditions(matching=False)
        return Query(self._text(END, conditions=conditions), (tenant, *params, count - 1), row=EndRow)

    def thread(self, tenant: str, root_key: bytes, thread_id: str) -> Query[ThreadSummary]:
        """Return one thread."""
        return Query(
            self._text(THREADS, conditions=NAMED, **_SIZES),
            (tenant, thread_id, 1, root_key),
            row=ThreadSummary,
        )

    def history(
        self, tenant: str, thread_id: str, limit: int, before_seq: int | None = None, until: str | None = None
    ) -> Query[HistoryRow]:
        """Return a thread's checkpoints in all namespaces, the newest first."""
        conditions, params = "", list[Param]()
        if before_seq is not None:
            conditions += BEFORE
            params.append(before_seq)
        if until is not None:
            conditions += BY
            params.append(until)
        return Query(self._text(HISTORY, conditions=conditions), (tenant, thread_id, *params, limit), row=HistoryRow)

    def checkpoint(
        self, tenant: str, thread_id: str, ns_key: bytes, checkpoint_key: bytes | None, until: str | None
    ) -> Query[HistoryRow]:
        """Return one checkpoint, or the newest of a namespace; saved by a time, if given."""
        conditions, params = (NEWEST_OF, [ns_key]) if checkpoint_key is None else (THIS, [checkpoint_key])
        known: list[Param] = [tenant, thread_id, *params]
        if until is not None:
            conditions += BY
            known.append(until)
        return Query(self._text(HISTORY, conditions=conditions), (*known, 1), row=HistoryRow)

    def outlines(self, tenant: str, thread_id: str, ns_key: bytes, limit: int, until: str | None) -> Query[OutlineRow]:
        """Return a namespace's newest checkpoints, the newest first."""
        conditions, saved_by = ("", ()) if until is None else (BY, (until,))
        params: tuple[Param, ...] = (tenant, thread_id, ns_key, *saved_by, limit)
        return Query(self._text(OUTLINES, conditions=conditions), params, row=OutlineRow)

    def by_metadata(self, tenant: str, threads: int, newest: int, pair: str | None, limit: int) -> Query[TaggedRow]:
        """Return checkpoints that have a pair of metadata, the newest first.

        Args:
            tenant: The tenant.
            threads: The number of threads to search.
            newest: The number of newest checkpoints to search in each.
            pair: The pair, as a JSON object; None for checkpoints with any metadata.
            limit: The maximum number of checkpoints to return.
        """
        text = self._text(BY_METADATA, holds="" if pair is None else HOLDS)
        return Query(text, (tenant, threads, newest, *(() if pair is None else (pair,)), limit), row=TaggedRow)

    def markers(self, tenant: str, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return those of these threads that exist."""
        params: tuple[Param, ...] = (tenant, *thread_ids)
        text = self._text(MARKERS, ids=placeholders(len(thread_ids)))
        return Query(text, params, row=ThreadMarker)
