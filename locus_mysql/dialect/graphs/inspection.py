"""Statements for looking inside: pages of threads, histories, and what takes how much. All of them only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..like import like
from ..statement import Param, Statement
from ..template import Statements
from .rows import OWN_PARTS

# What a checkpoint's row takes, for the alias v, and with the parts that it wrote and that stand apart.
_ROW_BYTES = "LENGTH(v.payload) + COALESCE(LENGTH(v.chunk), 0) + COALESCE(LENGTH(v.metadata), 0)"
_PARTS_OF_ROW = """IF(v.stored_seq IS NULL, 0,
                  COALESCE((SELECT SUM(LENGTH(p.chunk))
                              FROM {parts} p
                             WHERE p.tenant = v.tenant AND p.thread_id = v.thread_id
                               AND p.part >= v.stored_seq * <own> AND p.part < (v.stored_seq + 1) * <own>), 0))"""
_CHOSEN = "MOD(CRC32(t.thread_id), %s) = 0 AND <live>"
_LIVE = "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))"

# A page of threads by the time in their rows, which is up to a minute older than their last save: so a cursor stands
# still while others save, and the caller sorts the page by the time that the newest checkpoint tells. Walks the index
# recent backwards. Of a graph with subgraphs, the newest checkpoint is that of the graph itself.
THREADS = """
SELECT t.thread_id, t.created_at, t.updated_at, newest.created_at,
       COALESCE(root.checkpoint_id, newest.checkpoint_id),
       IF(root.checkpoint_id IS NULL, newest.metadata, root.metadata),
       held.checkpoints, held.size_bytes + apart.size_bytes + written.size_bytes
  FROM (SELECT t.tenant, t.thread_id, t.created_at, t.updated_at
          FROM {threads} t
         WHERE t.tenant = %s AND <live><conditions>
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS t
  LEFT JOIN LATERAL (SELECT v.checkpoint_id, v.metadata, v.created_at
                       FROM {versions} v FORCE INDEX (newest)
                      WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id AND v.hidden = 0
                      ORDER BY v.tenant DESC, v.thread_id DESC, v.seq DESC
                      LIMIT 1) AS newest ON TRUE
  LEFT JOIN LATERAL (SELECT v.checkpoint_id, v.metadata
                       FROM {versions} v FORCE INDEX (PRIMARY)
                      WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id AND v.ns_key = %s AND v.hidden = 0
                      ORDER BY v.tenant DESC, v.thread_id DESC, v.ns_key DESC, v.seq DESC
                      LIMIT 1) AS root ON TRUE
  JOIN LATERAL (SELECT COALESCE(SUM(v.hidden = 0), 0) AS checkpoints, COALESCE(SUM(<row_bytes>), 0) AS size_bytes
                  FROM {versions} v
                 WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id) AS held
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0) AS size_bytes
                  FROM {parts} p
                 WHERE p.tenant = t.tenant AND p.thread_id = t.thread_id) AS apart
  JOIN LATERAL (SELECT COALESCE(SUM(LENGTH(w.payload)), 0) AS size_bytes
                  FROM {writes} w
                 WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id) AS written
 ORDER BY t.updated_at DESC, t.thread_id DESC
"""
LIKE = "\n           AND t.thread_id LIKE %s"

# Where a page of threads ends of which so many are looked at, whatever their ids.
END = """
SELECT t.updated_at, t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND <live><conditions>
 ORDER BY t.updated_at DESC, t.thread_id DESC
 LIMIT 1 OFFSET %s
"""
NOT_BEHIND = "\n           AND t.updated_at >= %s AND (t.updated_at > %s OR t.thread_id >= %s)"
NAMED = "\n           AND t.thread_id = %s"
BEHIND = "\n           AND t.updated_at <= %s AND (t.updated_at < %s OR t.thread_id < %s)"

# A thread's checkpoints, the last one first, in all namespaces; each with its parent, if that is there and not hidden.
HISTORY = """
SELECT v.seq, v.ns, v.checkpoint_id, p.checkpoint_id, v.created_at, <row_bytes> + <parts_of_row>, v.metadata
  FROM {versions} v FORCE INDEX (newest)
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
  LEFT JOIN {versions} p ON p.tenant = v.tenant AND p.thread_id = v.thread_id AND p.version_key = v.parent_key
                        AND p.hidden = 0
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND <live><conditions>
 ORDER BY v.tenant DESC, v.thread_id DESC, v.seq DESC
 LIMIT %s
"""
BEFORE = " AND v.seq < %s"
THIS = " AND v.version_key = %s"
NEWEST_OF = " AND v.ns_key = %s"
BY = " AND v.created_at <= %s"

# A namespace's checkpoints without their parts, the last one first: walks the primary key backwards.
OUTLINES = """
SELECT COALESCE(v.stored_seq, v.seq), v.checkpoint_id, IF(v.unlinked, NULL, v.parent_id), v.created_at, v.payload,
       v.metadata, v.version_key, v.parent_key, v.needs
  FROM {versions} v FORCE INDEX (PRIMARY)
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
 WHERE v.tenant = %s AND v.thread_id = %s AND v.ns_key = %s AND v.hidden = 0 AND <live><conditions>
 ORDER BY v.tenant DESC, v.thread_id DESC, v.ns_key DESC, v.seq DESC
 LIMIT %s
"""

# Checkpoints whose metadata contains a pair, newest first, of the newest ones of the threads saved to last. There is no
# index of metadata here.
BY_METADATA = """
SELECT t.thread_id, v.ns, v.checkpoint_id, NULL, v.created_at, v.size_bytes, v.metadata
  FROM (SELECT t.tenant, t.thread_id
          FROM {threads} t
         WHERE t.tenant = %s AND <live>
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS t
  JOIN LATERAL (SELECT v.ns, v.checkpoint_id, v.created_at, <row_bytes> AS size_bytes, v.metadata, v.seq
                  FROM {versions} v FORCE INDEX (newest)
                 WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id AND v.hidden = 0
                 ORDER BY v.tenant DESC, v.thread_id DESC, v.seq DESC
                 LIMIT %s) AS v
 WHERE v.metadata IS NOT NULL<holds>
 ORDER BY v.created_at DESC, v.seq DESC
 LIMIT %s
"""
# JSON_VALID fails as JSON_CONTAINS does, with error 3157, where metadata is nested more than 100 deep.
HOLDS = " AND IF(JSON_VALID(v.metadata), JSON_CONTAINS(v.metadata, %s), FALSE)"

# Relies on the index recent, of which all of the tenant's part is read.
COUNT = "SELECT COUNT(*) FROM {threads} t WHERE t.tenant = %s"

# Of one in so many threads, told by their ids. Parts of rows that are gone, and writes, are of no day.
DAYS = """
SELECT saved.day, SUM(saved.hidden = 0), SUM(saved.size_bytes), SUM(saved.parts_bytes)
  FROM (SELECT CAST(DATE(v.created_at) AS CHAR) AS day, v.hidden, <row_bytes> AS size_bytes,
               <parts_of_row> AS parts_bytes
          FROM {threads} t
          STRAIGHT_JOIN {versions} v ON v.tenant = t.tenant AND v.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>) AS saved
 GROUP BY saved.day
 ORDER BY saved.day
"""
BEGUN = """
SELECT begun.day, COUNT(*)
  FROM (SELECT CAST(DATE(t.created_at) AS CHAR) AS day FROM {threads} t WHERE t.tenant = %s AND <chosen>) AS begun
 GROUP BY begun.day
"""
BESIDE = """
SELECT (SELECT COALESCE(SUM(LENGTH(p.chunk)), 0)
          FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>),
       (SELECT COALESCE(SUM(LENGTH(w.payload)), 0)
          FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>)
"""
LARGEST = """
SELECT taken.thread_id
  FROM (SELECT t.thread_id, <row_bytes> AS size_bytes
          FROM {threads} t STRAIGHT_JOIN {versions} v ON v.tenant = t.tenant AND v.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>
         UNION ALL
        SELECT t.thread_id, LENGTH(p.chunk)
          FROM {threads} t STRAIGHT_JOIN {parts} p ON p.tenant = t.tenant AND p.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>
         UNION ALL
        SELECT t.thread_id, LENGTH(w.payload)
          FROM {threads} t STRAIGHT_JOIN {writes} w ON w.tenant = t.tenant AND w.thread_id = t.thread_id
         WHERE t.tenant = %s AND <chosen>) AS taken
 GROUP BY taken.thread_id
 ORDER BY SUM(taken.size_bytes) DESC, taken.thread_id
 LIMIT %s
"""

# Threads that were begun or saved to in most turns. Reads each thread's row.
BUSIEST = """
SELECT t.thread_id FROM {threads} t
 WHERE t.tenant = %s AND <live>
 ORDER BY t.last_seq DESC, t.thread_id
 LIMIT %s
"""

# What is another one after each save, removal and write of a task. Reads two rows and an index entry of each thread.
MARKERS = """
SELECT t.thread_id, CONCAT_WS('-', HEX(t.epoch), newest.seq,
                              (SELECT CONCAT(COUNT(*), '-', MAX(w.created_at))
                                 FROM {writes} w
                                WHERE w.tenant = t.tenant AND w.thread_id = t.thread_id
                                  AND w.version_key = newest.version_key))
  FROM {threads} t
  LEFT JOIN LATERAL (SELECT v.seq, v.version_key
                       FROM {versions} v FORCE INDEX (newest)
                      WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id
                      ORDER BY v.tenant DESC, v.thread_id DESC, v.seq DESC
                      LIMIT 1) AS newest ON TRUE
 WHERE t.tenant = %s AND t.thread_id IN (<threads>) AND <live>
"""


#: The time in a thread's row, and its id.
Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which threads are asked for.

    Args:
        pattern: A glob of their ids.
        behind: The last one of the page before.
        since: Their rows have this time or a later one.
        until: Their rows have an earlier time.
    """

    pattern: str = "*"
    behind: Place | None = None
    since: str | None = None
    until: str | None = None

    def conditions(self, *, matching: bool) -> tuple[str, list[Param]]:
        """Conditions on the alias t, and their parameters.

        Args:
            matching: Whether the ids must match.
        """
        text = ""
        params: list[Param] = []
        if matching and self.pattern != "*":
            text += LIKE
            params.append(like(self.pattern))
        if self.behind is not None:
            text += BEHIND
            params += [self.behind[0], *self.behind]
        if self.since is not None:
            text += "\n           AND t.updated_at >= %s"
            params.append(self.since)
        if self.until is not None:
            text += "\n           AND t.updated_at < %s"
            params.append(self.until)
        return text, params


class InspectionStatements(Statements):
    """Looking inside."""

    def threads(self, tenant: str, root_key: bytes, limit: int, asked: Asked, end: Place | None) -> Statement:
        """A page of threads.

        Id, when it began, the time in its row, when the newest checkpoint was saved, that checkpoint's id and
        metadata, how many checkpoints there are, bytes.

        Args:
            tenant: Whose.
            root_key: The namespace of graphs themselves.
            limit: At most this many.
            asked: Which.
            end: Look no further than this thread.
        """
        conditions, params = asked.conditions(matching=True)
        if end is not None:
            conditions += NOT_BEHIND
            params += [end[0], *end]
        return Statement(self._complete(THREADS, conditions), (tenant, *params, limit, root_key))

    def end(self, tenant: str, asked: Asked, count: int) -> Statement:
        """Time and id of the last of so many threads, whatever their ids; nothing if there are fewer."""
        conditions, params = asked.conditions(matching=False)
        return Statement(self._complete(END, conditions), (tenant, *params, count - 1))

    def thread(self, tenant: str, root_key: bytes, thread_id: str) -> Statement:
        """The same of one thread."""
        return Statement(self._complete(THREADS, NAMED), (tenant, thread_id, 1, root_key))

    def history(
        self, tenant: str, thread_id: str, limit: int, before_seq: int | None = None, until: str | None = None
    ) -> Statement:
        """Seq, namespace, id, parent's id, time, bytes and metadata of checkpoints, the last one first."""
        conditions, params = "", list[Param]()
        if before_seq is not None:
            conditions += BEFORE
            params.append(before_seq)
        if until is not None:
            conditions += BY
            params.append(until)
        return Statement(self._complete(HISTORY, conditions), (tenant, thread_id, *params, limit))

    def checkpoint(
        self, tenant: str, thread_id: str, ns_key: bytes, version_key: bytes | None, until: str | None
    ) -> Statement:
        """The same of one checkpoint, or of the newest of a namespace; of those saved by a time, if one is given."""
        conditions, params = (NEWEST_OF, [ns_key]) if version_key is None else (THIS, [version_key])
        known: list[Param] = [tenant, thread_id, *params]
        if until is not None:
            conditions += BY
            known.append(until)
        return Statement(self._complete(HISTORY, conditions), (*known, 1))

    def outlines(self, tenant: str, thread_id: str, ns_key: bytes, limit: int, until: str | None) -> Statement:
        """The last checkpoints of a namespace: seq of parts, id, parent's id, time, payload, metadata, keys, needs."""
        params: tuple[Param, ...] = (tenant, thread_id, ns_key)
        if until is None:
            return Statement(self._complete(OUTLINES), (*params, limit))
        return Statement(self._complete(OUTLINES, BY), (*params, until, limit))

    def by_metadata(self, tenant: str, threads: int, newest: int, pair: str | None, limit: int) -> Statement:
        """Thread, namespace, id, NULL, time, bytes and metadata of checkpoints that have a pair.

        Args:
            tenant: Whose.
            threads: Of how many threads.
            newest: Of how many newest checkpoints of each.
            pair: The pair, as a JSON object; None for checkpoints with any metadata.
            limit: How many.
        """
        text = self._complete(BY_METADATA).replace("<holds>", "" if pair is None else HOLDS)
        return Statement(text, (tenant, threads, newest, *(() if pair is None else (pair,)), limit))

    def count(self, tenant: str) -> Statement:
        """How many threads there are, those that have just expired among them."""
        return Statement(self._text(COUNT), (tenant,))

    def measure(self, tenant: str, one_in: int, limit: int) -> tuple[Statement, ...]:
        """What one in so many threads takes.

        By day, oldest first: checkpoints saved, bytes of their rows and of their parts; by day, threads begun; bytes of
        all parts that stand apart, and of all writes; ids of the largest threads.

        Args:
            tenant: Whose.
            one_in: One in so many; 1 for all.
            limit: So many large threads.
        """
        one = (tenant, one_in)
        return (
            Statement(self._complete(DAYS), one),
            Statement(self._complete(BEGUN), one),
            Statement(self._complete(BESIDE), (*one, *one)),
            Statement(self._complete(LARGEST), (*one, *one, *one, limit)),
        )

    def busiest(self, tenant: str, limit: int) -> Statement:
        """Ids of the threads that were saved to in most turns."""
        return Statement(self._complete(BUSIEST), (tenant, limit))

    def markers(self, tenant: str, thread_ids: Sequence[str]) -> Statement:
        """Id and marker of threads that are there."""
        params: tuple[Param, ...] = (tenant, *thread_ids)
        text = self._complete(MARKERS).replace("<threads>", ", ".join(["%s"] * len(thread_ids)))
        return Statement(text, params)

    def _complete(self, template: str, conditions: str = "") -> str:
        """A statement's text with the pieces that several share."""
        pieces = {
            "<conditions>": conditions,
            "<chosen>": _CHOSEN,
            "<live>": _LIVE,
            "<row_bytes>": _ROW_BYTES,
            "<parts_of_row>": _PARTS_OF_ROW.replace("<own>", str(OWN_PARTS)),
        }
        for name, piece in pieces.items():
            template = template.replace(name, piece)
        return self._text(template)
