"""Statements that read checkpoints, and the rows that they return.

Each is one statement, so that checkpoints, their parts and their writes are from one snapshot. The first column of a
row is its kind.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.sql import Select

#: The kinds of rows.
CHECKPOINT, PART, WRITE, PARENTS_WRITE = range(4)


class LoadedRow(NamedTuple):
    """A row of a statement that loads checkpoints. By its kind it is a row of one of the three classes below."""

    kind: int
    thread_id: str | None
    seq: int | None
    number: int | None
    checkpoint_key: bytes | None
    text1: str | None
    text2: str | None
    text3: str | None
    payload: bytes
    metadata: str | None
    created_at: datetime | None
    epoch: bytes | None
    token: bytes | None
    flags: int | None
    parent_key: bytes | None


class LoadedCheckpointRow(NamedTuple):
    """A checkpoint. Its flags are what it needs of its parent, plus 4 if the parent is unlinked."""

    kind: int
    thread_id: str
    seq: int
    stored_seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    parent_id: str | None
    ns: str
    payload: bytes
    metadata: str | None
    created_at: datetime
    epoch: bytes
    token: bytes
    flags: int
    parent_key: bytes | None

    @property
    def needs(self) -> int:
        """Return which content of its parent the checkpoint needs."""
        return self.flags & 3

    @property
    def unlinked(self) -> bool:
        """Return whether the parent was deleted and none of its rows is needed."""
        return self.flags > 3


class LoadedPartRow(NamedTuple):
    """A part, by its number."""

    kind: int
    thread_id: str | None
    seq: None
    number: int
    checkpoint_key: None
    text1: None
    text2: None
    text3: None
    chunk: bytes
    metadata: None
    created_at: None
    epoch: None
    token: None
    flags: None
    parent_key: None


class LoadedWriteRow(NamedTuple):
    """A write at a checkpoint, or at the parent of one; the key is that of the checkpoint."""

    kind: int
    thread_id: str
    seq: None
    idx: int
    checkpoint_key: bytes
    task_id: str
    channel: str
    task_path: str
    payload: bytes
    metadata: None
    created_at: None
    epoch: None
    token: None
    flags: None
    parent_key: None


class CachedParts(NamedTuple):
    """The epoch of a thread, and the numbers of parts, as text, that need not be read as long as it lasts."""

    cached_epoch: bytes
    cached_parts: str


class TaskWriteRow(NamedTuple):
    """A write."""

    task_id: str
    idx: int
    channel: str
    task_path: str
    payload: bytes


class BaseRow(NamedTuple):
    """The columns of a checkpoint that a save based on it needs; ``stored_seq`` is that of its parts."""

    stored_seq: int
    payload: bytes
    epoch: bytes
    token: bytes
    parent_key: bytes | None
    needs: int
    metadata: str | None


class PartRow(NamedTuple):
    """A part, by its number."""

    number: int
    chunk: bytes


class LineRow(NamedTuple):
    """A row of a line of ancestors. By its kind it is a row of one of the two classes below."""

    kind: int
    depth: int
    number: int
    checkpoint_key: bytes
    text1: str
    text2: str | None
    text3: str | None
    payload: bytes
    parent_key: bytes | None
    needs: int | None
    metadata: str | None


class AncestorRow(NamedTuple):
    """A checkpoint of a line of ancestors, at its distance from the first."""

    kind: int
    depth: int
    stored_seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    text2: None
    text3: None
    payload: bytes
    parent_key: bytes | None
    needs: int
    metadata: str | None


class AncestorsWriteRow(NamedTuple):
    """A write at a checkpoint of the line."""

    kind: int
    depth: int
    idx: int
    checkpoint_key: bytes
    task_id: str
    channel: str
    task_path: str
    payload: bytes
    parent_key: None
    needs: None
    metadata: None


_HEADS = """
SELECT 0 AS kind, c.thread_id, CAST(c.seq AS SIGNED) AS seq, CAST(k.stored_seq AS SIGNED) AS number, c.checkpoint_key,
       c.checkpoint_id AS text1, c.parent_id AS text2, c.ns AS text3, c.payload, c.metadata, c.created_at, k.epoch,
       LEFT(c.tokens, 16), c.needs + 4 * c.unlinked, IF(c.needs = 2, c.parent_key, NULL)
  FROM k
  JOIN {checkpoints} c ON c.tenant = :tenant AND c.thread_id = k.thread_id AND c.ns_key = k.ns_key AND c.seq = k.seq
 UNION ALL
"""
_SOURCES = "JSON_TABLE(k.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s"

_READ_ONE = f"""
WITH k AS ({{chosen}}){_HEADS}SELECT 1, NULL, NULL, CAST({{PART}} AS SIGNED), NULL, NULL, NULL, NULL,
   COALESCE(p.chunk, o.chunk), NULL, NULL, NULL, NULL, NULL, NULL
  FROM k
  JOIN {_SOURCES}
  LEFT JOIN {{parts}} p ON p.tenant = :tenant AND p.thread_id = k.thread_id AND p.part = {{PART}}
  LEFT JOIN {{checkpoints}} o
    ON o.tenant = :tenant AND o.thread_id = k.thread_id AND o.ns_key = k.ns_key AND o.seq = {{ROW}}
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL{{cached}}
 UNION ALL
SELECT IF(w.checkpoint_key = k.checkpoint_key, 2, 3), w.thread_id, NULL, w.idx, k.checkpoint_key, w.task_id, w.channel,
       w.task_path, w.payload, NULL, NULL, NULL, NULL, NULL, NULL
  FROM k
  JOIN {{writes}} w ON w.tenant = :tenant AND w.thread_id = k.thread_id
             AND w.checkpoint_key IN (k.checkpoint_key, IF(k.needs = 2, k.parent_key, k.checkpoint_key))
"""

#: The {chosen} checkpoint, the parts that the reader lacks, each in the table of parts or in a row, and the writes at
#: it and at its parent, which are read at once, as that saves a tenth of the statement's time.
#:
#: OceanBase plans a statement with JSON_TABLE each time it is sent, which takes five times as long as this statement;
#: with a recursive CTE, which counts the sources of the one row, its plan is cached.
READ_ONE = Select(
    _READ_ONE,
    LoadedRow,
    oceanbase=_READ_ONE.replace(
        "WITH k AS ({chosen})",
        """WITH RECURSIVE k AS ({chosen}), positions (position) AS (
  SELECT 0 UNION ALL SELECT n.position + 1 FROM positions n JOIN k WHERE n.position + 1 < JSON_LENGTH(k.sources)
)""",
    ).replace(
        _SOURCES,
        """(SELECT CAST(JSON_EXTRACT(k.sources, CONCAT('$[', n.position, ']')) AS UNSIGNED) AS part
          FROM positions n JOIN k) s""",
    ),
)

#: The same of several checkpoints, which share most of their parts: each part once.
READ_SEVERAL = Select(
    f"""
WITH k AS ({{chosen}}){_HEADS}SELECT 1, n.thread_id, NULL, CAST(n.part AS SIGNED), NULL, NULL, NULL, NULL,
   COALESCE(p.chunk, o.chunk), NULL, NULL, NULL, NULL, NULL, NULL
  FROM (SELECT DISTINCT k.thread_id, k.ns_key, {{PART}} AS part, {{ROW}} AS seq
          FROM k JOIN {_SOURCES} WHERE 1{{cached}}) n
  LEFT JOIN {{parts}} p ON p.tenant = :tenant AND p.thread_id = n.thread_id AND p.part = n.part
  LEFT JOIN {{checkpoints}} o
    ON o.tenant = :tenant AND o.thread_id = n.thread_id AND o.ns_key = n.ns_key AND o.seq = n.seq
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL
 UNION ALL
SELECT 2, w.thread_id, NULL, w.idx, w.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {{writes}} w ON w.tenant = :tenant AND w.thread_id = k.thread_id AND w.checkpoint_key = k.checkpoint_key
 UNION ALL
SELECT 3, w.thread_id, NULL, w.idx, k.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {{writes}} w ON w.tenant = :tenant AND w.thread_id = k.thread_id AND w.checkpoint_key = k.parent_key
 WHERE k.needs = 2
""",
    LoadedRow,
)

#: {cached} leaves out the parts that the reader has, unless the thread's epoch has changed.
NOT_CACHED = "\n   AND NOT (k.epoch = :cached_epoch AND FIND_IN_SET({PART}, :cached_parts) > 0)"

_CHOSEN = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND {LIVE_THREAD}"""

#: {chosen}: the newest of a namespace, which is the last one in the primary key that is not hidden; the one of a key;
#: or several, newest first, and within a thread by seq. LIMIT keeps MySQL from merging the second one into the rest:
#: JSON_TABLE over a single row known beforehand is refused with error 1210 (9.7.4).
NEWEST = f"{_CHOSEN} AND c.ns_key = :ns_key AND c.hidden = 0\n ORDER BY c.seq DESC\n LIMIT 1"
NAMED = f"{_CHOSEN} AND c.checkpoint_key = :checkpoint_key AND c.hidden = 0\n LIMIT 1"
SEVERAL = f"{_CHOSEN} AND c.hidden = 0{{conditions}}\n ORDER BY c.seq DESC\n LIMIT :limit"

#: {conditions}, by the name of their parameter. ``before`` is the key of a checkpoint: those stored before it, none if
#: it does not exist; ``before_any`` is the id of one of any namespace. MySQL makes these joins, which report a kill:
#: see docs/design/writes.md. LangGraph compares ids, which contain the client's time, even with those of other
#: namespaces.
CONDITIONS = {
    "ns_key": "\n   AND c.ns_key = :ns_key",
    "checkpoint_id": "\n   AND c.checkpoint_id = :checkpoint_id",
    "before": """
   AND EXISTS (SELECT 1 FROM {checkpoints} b WHERE b.tenant = :tenant AND b.thread_id = :thread_id
                AND b.checkpoint_key = :before AND b.seq > c.seq)""",
    "before_any": """
   AND EXISTS (SELECT 1 FROM {checkpoints} b WHERE b.tenant = :tenant AND b.thread_id = :thread_id
                AND b.checkpoint_id = :before_any AND b.seq > c.seq)""",
    "before_id": "\n   AND c.checkpoint_id < :before_id",
    "before_seq": "\n   AND c.seq < :before_seq",
    "matching": "\n   AND c.metadata IS NOT NULL AND JSON_CONTAINS(c.metadata, :matching)",
}

#: The columns of a checkpoint that a save based on it needs. Hidden ones are included.
BASE = Select(
    """
SELECT CAST(COALESCE(c.stored_seq, c.seq) AS SIGNED), c.payload, t.epoch, LEFT(c.tokens, 16), c.parent_key, c.needs,
       c.metadata
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = :checkpoint_key
   AND {LIVE_THREAD}
""",
    BaseRow,
)

#: A number of ancestors of a checkpoint, hidden ones too, with their writes to some channels. Of checkpoints, the first
#: text is the id.
ANCESTORS = Select(
    """
WITH RECURSIVE line (depth, ns_key, seq, checkpoint_key, parent_key) AS (
  SELECT 0, c.ns_key, c.seq, c.checkpoint_key, c.parent_key
    FROM {checkpoints} c
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = :checkpoint_key
     AND {LIVE_THREAD}
  UNION ALL
  SELECT line.depth + 1, c.ns_key, c.seq, c.checkpoint_key, c.parent_key
    FROM line
    JOIN {checkpoints} c ON c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = line.parent_key
   WHERE line.depth < :depth AND line.parent_key <> line.checkpoint_key
)
SELECT 0, line.depth, CAST(COALESCE(c.stored_seq, c.seq) AS SIGNED), c.checkpoint_key, c.checkpoint_id, NULL, NULL,
   c.payload, c.parent_key, c.needs, c.metadata
  FROM line
  JOIN {checkpoints} c
    ON c.tenant = :tenant AND c.thread_id = :thread_id AND c.ns_key = line.ns_key AND c.seq = line.seq
 UNION ALL
SELECT 2, line.depth, w.idx, w.checkpoint_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL
  FROM line
  JOIN {writes} w ON w.tenant = :tenant AND w.thread_id = :thread_id AND w.checkpoint_key = line.checkpoint_key
 WHERE line.depth > 0 AND w.channel IN (:channels)
""",
    LineRow,
)

#: Parts of a namespace by their numbers: those in rows of their own, and those in the rows of checkpoints.
READ_PARTS = Select(
    """
SELECT p.part, p.chunk FROM {parts} p
 WHERE p.tenant = :tenant AND p.thread_id = :thread_id AND p.part IN (:numbers)
 UNION ALL
SELECT c.seq * {OWN_PARTS}, c.chunk FROM {checkpoints} c
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.ns_key = :ns_key AND c.seq IN (:seqs)
   AND c.chunk IS NOT NULL
""",
    PartRow,
)

#: The writes at a checkpoint; {task} for those of one task.
READ_WRITES = Select(
    """
SELECT w.task_id, w.idx, w.channel, w.task_path, w.payload
  FROM {writes} w
  LEFT JOIN {threads} t ON t.tenant = w.tenant AND t.thread_id = w.thread_id
 WHERE w.tenant = :tenant AND w.thread_id = :thread_id AND w.checkpoint_key = :checkpoint_key
   AND {LIVE_THREAD}{task}
""",
    TaskWriteRow,
)
OF_TASK = "\n   AND w.task_key = :task_key"
