"""Statements that read checkpoints.

Each is one statement, so that checkpoints, their parts and their writes are from one snapshot. The first column of a
row is its kind; see `result_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Param, Query
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .new_rows import OWN_PARTS
from .result_rows import BaseRow, KeyRow, LineRow, LoadedRow, PartRow, TaskWriteRow

READ = """
WITH k AS ({chosen}){HEADS}
 UNION ALL{PARTS}
 UNION ALL{WRITES}
"""

# The newest checkpoint of a namespace: the last one in the primary key that is not hidden.
NEWEST = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.ns_key = %s AND c.hidden = 0 AND {LIVE_THREAD}
 ORDER BY c.seq DESC
 LIMIT 1
"""

# LIMIT keeps MySQL from merging this into the rest: JSON_TABLE over a single row known beforehand is refused with error
# 1210 (9.7.4).
NAMED = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s AND c.hidden = 0 AND {LIVE_THREAD}
 LIMIT 1
"""

# Newest first, within a thread by seq. {conditions} are the caller's conditions.
CHOSEN = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0 AND {LIVE_THREAD}{conditions}
 ORDER BY c.seq DESC
 LIMIT %s
"""

OF_NAMESPACE = "\n   AND c.ns_key = %s"
OF_ID = "\n   AND c.checkpoint_id = %s"
BEFORE_SEQ = "\n   AND c.seq < %s"

# Stored before the checkpoint of a key; none if that does not exist. MySQL makes this a join, which reports a kill: see
# docs/design/writes.md.
BEFORE = """
   AND EXISTS (SELECT 1 FROM {checkpoints} b
                WHERE b.tenant = %s AND b.thread_id = %s AND b.checkpoint_key = %s AND b.seq > c.seq)"""
# LangGraph compares ids, which contain the client's time, even with those of other namespaces.
BEFORE_ID = "\n   AND c.checkpoint_id < %s"
MATCHING = "\n   AND c.metadata IS NOT NULL AND JSON_CONTAINS(c.metadata, %s)"

HEADS = """
SELECT 0 AS kind, c.thread_id, CAST(c.seq AS SIGNED) AS seq, CAST(k.stored_seq AS SIGNED) AS number, c.checkpoint_key,
       c.checkpoint_id AS text1, c.parent_id AS text2, c.ns AS text3, c.payload, c.metadata, c.created_at, k.epoch,
       LEFT(c.tokens, 16), c.needs + 4 * c.unlinked, IF(c.needs = 2, c.parent_key, NULL)
  FROM k
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = k.thread_id AND c.ns_key = k.ns_key AND c.seq = k.seq
"""

# The parts that the reader lacks, each in the table of parts or in a row. {known} leaves out those that it has, unless
# the thread's epoch has changed.
PARTS_OF_ONE = """
SELECT 1, NULL, NULL, CAST({PART} AS SIGNED), NULL, NULL, NULL, NULL, COALESCE(p.chunk, o.chunk), NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {SOURCES}
  LEFT JOIN {parts} p ON p.tenant = %s AND p.thread_id = k.thread_id AND p.part = {PART}
  LEFT JOIN {checkpoints} o ON o.tenant = %s AND o.thread_id = k.thread_id AND o.ns_key = k.ns_key AND o.seq = {ROW}
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL{known}
"""
NOT_KNOWN = "\n   AND NOT (k.epoch = %s AND FIND_IN_SET({PART}, %s) > 0)"

# The sources of the one row k, without JSON_TABLE.
COUNTED_SOURCES = """(SELECT CAST(JSON_EXTRACT(k.sources, CONCAT('$[', n.position, ']')) AS UNSIGNED) AS part
          FROM positions n JOIN k) s"""

# The same for several checkpoints, which share most of their parts: each once.
PARTS_OF_SEVERAL = """
SELECT 1, n.thread_id, NULL, CAST(n.part AS SIGNED), NULL, NULL, NULL, NULL, COALESCE(p.chunk, o.chunk),
       NULL, NULL, NULL, NULL, NULL, NULL
  FROM (SELECT DISTINCT k.thread_id, k.ns_key, {PART} AS part, {ROW} AS seq
          FROM k JOIN {SOURCES} WHERE 1{known}) n
  LEFT JOIN {parts} p ON p.tenant = %s AND p.thread_id = n.thread_id AND p.part = n.part
  LEFT JOIN {checkpoints} o ON o.tenant = %s AND o.thread_id = n.thread_id AND o.ns_key = n.ns_key AND o.seq = n.seq
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL
"""

# For one checkpoint, both kinds of writes are read at once, which saves a tenth of the statement's time.
WRITES_OF_ONE = """
SELECT IF(w.checkpoint_key = k.checkpoint_key, 2, 3), w.thread_id, NULL, w.idx, k.checkpoint_key, w.task_id, w.channel,
       w.task_path, w.payload, NULL, NULL, NULL, NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id
                 AND w.checkpoint_key IN (k.checkpoint_key, IF(k.needs = 2, k.parent_key, k.checkpoint_key))
"""

WRITES_OF_SEVERAL = """
SELECT 2, w.thread_id, NULL, w.idx, w.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id AND w.checkpoint_key = k.checkpoint_key
 UNION ALL
SELECT 3, w.thread_id, NULL, w.idx, k.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id AND w.checkpoint_key = k.parent_key
 WHERE k.needs = 2
"""

# A statement with JSON_TABLE is planned each time it is sent there, which takes five times as long as this statement;
# with a recursive CTE, which counts the sources, its plan is cached.
OCEANBASE.instead_of(
    READ,
    """
WITH RECURSIVE k AS ({chosen}), positions (position) AS (
  SELECT 0 UNION ALL SELECT n.position + 1 FROM positions n JOIN k WHERE n.position + 1 < JSON_LENGTH(k.sources)
){HEADS}
 UNION ALL{PARTS}
 UNION ALL{WRITES}
""",
    {PARTS_OF_ONE: PARTS_OF_ONE.replace("{SOURCES}", COUNTED_SOURCES)},
)

OF_ONE = {"HEADS": HEADS, "PARTS": PARTS_OF_ONE, "WRITES": WRITES_OF_ONE}
OF_SEVERAL = {"HEADS": HEADS, "PARTS": PARTS_OF_SEVERAL, "WRITES": WRITES_OF_SEVERAL}

# The columns of a checkpoint that a save based on it needs. Hidden ones are included.
BASE = """
SELECT CAST(COALESCE(c.stored_seq, c.seq) AS SIGNED), c.payload, t.epoch, LEFT(c.tokens, 16), c.parent_key, c.needs,
       CRC32(c.metadata)
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s
   AND {LIVE_THREAD}
"""

# A number of ancestors of a checkpoint, hidden ones too, with their writes to some channels.
ANCESTORS = """
WITH RECURSIVE line (depth, ns_key, seq, checkpoint_key, parent_key) AS (
  SELECT 0, c.ns_key, c.seq, c.checkpoint_key, c.parent_key
    FROM {checkpoints} c
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s
     AND {LIVE_THREAD}
  UNION ALL
  SELECT line.depth + 1, c.ns_key, c.seq, c.checkpoint_key, c.parent_key
    FROM line
    JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = line.parent_key
   WHERE line.depth < %s AND line.parent_key <> line.checkpoint_key
)
SELECT 0, line.depth, CAST(COALESCE(c.stored_seq, c.seq) AS SIGNED), c.checkpoint_key, c.checkpoint_id, NULL, NULL,
       c.payload, c.parent_key, c.needs, CRC32(c.metadata)
  FROM line
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.ns_key = line.ns_key AND c.seq = line.seq
 UNION ALL
SELECT 2, line.depth, w.idx, w.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL
  FROM line
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = %s AND w.checkpoint_key = line.checkpoint_key
 WHERE line.depth > 0 AND w.channel IN ({channels})
"""

KEYS = "SELECT c.checkpoint_key FROM {checkpoints} c WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0"

READ_PARTS = """
SELECT p.part, p.chunk FROM {parts} p
 WHERE p.tenant = %s AND p.thread_id = %s AND p.part IN ({numbers})
 UNION ALL
SELECT c.seq * {OWN_PARTS}, c.chunk FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.ns_key = %s AND c.seq IN ({rows}) AND c.chunk IS NOT NULL
"""

READ_WRITES = """
SELECT w.task_id, w.idx, w.channel, w.task_path, w.payload
  FROM {writes} w
  LEFT JOIN {threads} t ON t.tenant = w.tenant AND t.thread_id = w.thread_id
 WHERE w.tenant = %s AND w.thread_id = %s AND w.checkpoint_key = %s
   AND {LIVE_THREAD}{task}
"""
OF_TASK = "\n   AND w.task_key = %s"


class LoadingStatements(Statements):
    """Reading checkpoints and writes."""

    def load(
        self,
        tenant: str,
        thread_id: str,
        ns_key: bytes,
        checkpoint_key: bytes | None,
        known: tuple[bytes, Sequence[int]] | None,
    ) -> Query[LoadedRow]:
        """A checkpoint, or the newest of a namespace, with its parts and writes.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            ns_key: The namespace.
            checkpoint_key: The checkpoint; None for the newest.
            known: An epoch, and parts that need not be sent if it lasts.
        """
        key: Param = ns_key if checkpoint_key is None else checkpoint_key
        leave_out, known_params = _left_out(known)
        text = self._text(READ, chosen=NEWEST if checkpoint_key is None else NAMED, known=leave_out, **OF_ONE)
        return Query(text, (tenant, thread_id, key, tenant, tenant, tenant, *known_params, tenant), row=LoadedRow)

    def list(
        self,
        tenant: str,
        thread_id: str,
        limit: int,
        *,
        ns_key: bytes | None = None,
        checkpoint_id: str | None = None,
        before: bytes | None = None,
        before_id: str | None = None,
        before_seq: int | None = None,
        matching: str | None = None,
        known: tuple[bytes, Sequence[int]] | None = None,
    ) -> Query[LoadedRow]:
        """Checkpoints of a thread with their parts and writes, newest first.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            limit: The maximum number of results.
            ns_key: Only of this namespace.
            checkpoint_id: Only of this id.
            before: Only those stored before the checkpoint of this key; none if that does not exist.
            before_id: Only those whose id is less than this one.
            before_seq: Only those with a seq below.
            matching: Only those whose metadata contains this JSON.
            known: An epoch, and parts that need not be sent if it lasts.
        """
        conditions = ""
        params: list[Param] = [tenant, thread_id]
        if ns_key is not None:
            conditions += OF_NAMESPACE
            params.append(ns_key)
        if checkpoint_id is not None:
            conditions += OF_ID
            params.append(checkpoint_id)
        if before is not None:
            conditions += BEFORE
            params += [tenant, thread_id, before]
        if before_id is not None:
            conditions += BEFORE_ID
            params.append(before_id)
        if before_seq is not None:
            conditions += BEFORE_SEQ
            params.append(before_seq)
        if matching is not None:
            conditions += MATCHING
            params.append(matching)
        leave_out, known_params = _left_out(known)
        text = self._text(READ, chosen=CHOSEN, conditions=conditions, known=leave_out, **OF_SEVERAL)
        return Query(text, (*params, limit, tenant, *known_params, tenant, tenant, tenant, tenant), row=LoadedRow)

    def base(self, tenant: str, thread_id: str, checkpoint_key: bytes) -> Query[BaseRow]:
        """Return a checkpoint to build on.

        Seq of its parts, payload, epoch of the thread, token, parent's key, needs, checksum of the metadata.
        """
        return Query(self._text(BASE), (tenant, thread_id, checkpoint_key), row=BaseRow)

    def ancestors(
        self, tenant: str, thread_id: str, checkpoint_key: bytes, depth: int, channels: Sequence[str]
    ) -> Query[LineRow]:
        """A checkpoint and its ancestors.

        Kind, depth, number, key, three texts and payload; of checkpoints, the first text is the id, and behind the
        payload are the parent's key, needs and the checksum of the metadata.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            checkpoint_key: The checkpoint.
            depth: Ancestors at most.
            channels: Writes to these are read; at least one.
        """
        key = (tenant, thread_id)
        text = self._text(ANCESTORS, channels=placeholders(len(channels)))
        return Query(text, (*key, checkpoint_key, *key, depth, *key, *key, *channels), row=LineRow)

    def keys(self, tenant: str, thread_id: str) -> Query[KeyRow]:
        """The keys of a thread's checkpoints."""
        return Query(self._text(KEYS), (tenant, thread_id), row=KeyRow)

    def parts(self, tenant: str, thread_id: str, ns_key: bytes, parts: Sequence[int]) -> Query[PartRow]:
        """Number and bytes of parts of a namespace."""
        rows = [part // OWN_PARTS for part in parts if part % OWN_PARTS == 0]
        text = self._text(READ_PARTS, numbers=placeholders(len(parts)), rows=placeholders(len(rows)) or "NULL")
        return Query(text, (tenant, thread_id, *parts, tenant, thread_id, ns_key, *rows), row=PartRow)

    def writes(self, tenant: str, thread_id: str, checkpoint_key: bytes, task_key: bytes | None) -> Query[TaskWriteRow]:
        """A checkpoint's writes, or those of one task: task, index, channel, path, payload."""
        text = self._text(READ_WRITES, task="" if task_key is None else OF_TASK)
        params: tuple[Param, ...] = (tenant, thread_id, checkpoint_key)
        return Query(text, params if task_key is None else (*params, task_key), row=TaskWriteRow)


def _left_out(known: tuple[bytes, Sequence[int]] | None) -> tuple[str, tuple[Param, ...]]:
    """The condition that leaves out known parts, and its parameters."""
    if known is None or not known[1]:
        return "", ()
    return NOT_KNOWN, (known[0], ",".join(map(str, known[1])))
