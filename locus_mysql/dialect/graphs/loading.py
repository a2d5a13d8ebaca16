"""Statements that read checkpoints.

Each is one statement, so that checkpoints, their parts and their writes are of one moment. What its rows are is told by
the first column: 0 a checkpoint, 1 a part, 2 a write at a checkpoint, 3 a write at a checkpoint's parent. The columns
are kind, thread_id, seq, number, version_key, three texts, payload, metadata, time, epoch, token, needs (and 4 if the
parent is unlinked), parent_key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..statement import Param, Statement
from ..template import Statements
from .rows import OWN_PARTS

#: What stands for pieces that several statements share.
_SHARED = {
    "<keys>": "v.thread_id, v.ns_key, v.seq, v.version_key, v.parent_key, COALESCE(v.stored_seq, v.seq) AS stored_seq, "
    "IF(v.unlinked, 0, v.needs) AS needs, v.sources, t.epoch",
    "<live>": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # The number of a part that a row's sources name.
    "<part>": f"IF(s.part < {OWN_PARTS}, k.stored_seq * {OWN_PARTS} + s.part, s.part)",
    # The seq of the row that holds it, if it stands in one.
    "<row>": f"IF(s.part < {OWN_PARTS}, k.stored_seq, s.part DIV {OWN_PARTS})",
    "<sources>": "JSON_TABLE(k.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s",
}


def _complete(text: str) -> str:
    """A statement's text with the shared pieces in it."""
    for name, piece in _SHARED.items():
        text = text.replace(name, piece)
    return text


# The newest checkpoint of a namespace: the last one in the primary key that is not hidden.
NEWEST = """
SELECT <keys>
  FROM {versions} v
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
 WHERE v.tenant = %s AND v.thread_id = %s AND v.ns_key = %s AND v.hidden = 0 AND <live>
 ORDER BY v.seq DESC
 LIMIT 1
"""

# LIMIT keeps MySQL from merging this into the rest: JSON_TABLE over a single row known beforehand is refused with error
# 1210 (9.7.4).
NAMED = """
SELECT <keys>
  FROM {versions} v
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
 WHERE v.tenant = %s AND v.thread_id = %s AND v.version_key = %s AND v.hidden = 0 AND <live>
 LIMIT 1
"""

# Newest first, within a thread by seq. <conditions> are those that the caller chose.
CHOSEN = """
SELECT <keys>
  FROM {versions} v
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND <live><conditions>
 ORDER BY v.seq DESC
 LIMIT %s
"""

OF_NAMESPACE = "\n   AND v.ns_key = %s"
OF_ID = "\n   AND v.checkpoint_id = %s"
BEFORE_SEQ = "\n   AND v.seq < %s"

# Stored before the checkpoint of a key; none if that does not exist.
BEFORE = """
   AND v.seq < (SELECT b.seq FROM {versions} b WHERE b.tenant = %s AND b.thread_id = %s AND b.version_key = %s)"""
# LangGraph compares ids, which carry the time of the client, also with those of other namespaces.
BEFORE_ID = "\n   AND v.checkpoint_id < %s"
MATCHING = "\n   AND v.metadata IS NOT NULL AND JSON_CONTAINS(v.metadata, %s)"

_HEADS = """
SELECT 0 AS kind, v.thread_id, CAST(v.seq AS SIGNED) AS seq, CAST(k.stored_seq AS SIGNED) AS number, v.version_key,
       v.checkpoint_id AS text1, v.parent_id AS text2, v.ns AS text3, v.payload, v.metadata, v.created_at, k.epoch,
       LEFT(v.tokens, 16), v.needs + 4 * v.unlinked, IF(v.needs = 2, v.parent_key, NULL)
  FROM k
  JOIN {versions} v ON v.tenant = %s AND v.thread_id = k.thread_id AND v.ns_key = k.ns_key AND v.seq = k.seq
"""

# The parts that the reader lacks, each in the table of parts or in a row. <known> leaves out those that it has, if its
# epoch still lasts.
_PARTS_OF_ONE = """
SELECT 1, NULL, NULL, CAST(<part> AS SIGNED), NULL, NULL, NULL, NULL, COALESCE(p.chunk, o.chunk), NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN <sources>
  LEFT JOIN {parts} p ON p.tenant = %s AND p.thread_id = k.thread_id AND p.part = <part>
  LEFT JOIN {versions} o ON o.tenant = %s AND o.thread_id = k.thread_id AND o.ns_key = k.ns_key AND o.seq = <row>
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL<known>
"""
_KNOWN = "\n   AND NOT (k.epoch = %s AND FIND_IN_SET(<part>, %s) > 0)"

# The same for several checkpoints, which share most of their parts: each once.
_PARTS_OF_SEVERAL = """
SELECT 1, n.thread_id, NULL, CAST(n.part AS SIGNED), NULL, NULL, NULL, NULL, COALESCE(p.chunk, o.chunk),
       NULL, NULL, NULL, NULL, NULL, NULL
  FROM (SELECT DISTINCT k.thread_id, k.ns_key, <part> AS part, <row> AS seq
          FROM k JOIN <sources> WHERE 1<known>) n
  LEFT JOIN {parts} p ON p.tenant = %s AND p.thread_id = n.thread_id AND p.part = n.part
  LEFT JOIN {versions} o ON o.tenant = %s AND o.thread_id = n.thread_id AND o.ns_key = n.ns_key AND o.seq = n.seq
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL
"""

# Of one checkpoint both kinds of writes are found at once: that is a tenth of the statement's time.
_WRITES_OF_ONE = """
SELECT IF(w.version_key = k.version_key, 2, 3), w.thread_id, NULL, w.idx, k.version_key, w.task_id, w.channel,
       w.task_path, w.payload, NULL, NULL, NULL, NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id
                 AND w.version_key IN (k.version_key, IF(k.needs = 2, k.parent_key, k.version_key))
"""

_WRITES = """
SELECT 2, w.thread_id, NULL, w.idx, w.version_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id AND w.version_key = k.version_key
"""

_PARENTS_WRITES = """
SELECT 3, w.thread_id, NULL, w.idx, k.version_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL,
       NULL, NULL, NULL
  FROM k
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = k.thread_id AND w.version_key = k.parent_key
 WHERE k.needs = 2
"""

# What a save that goes on from a checkpoint has to know of it. Hidden ones serve as well.
BASE = """
SELECT CAST(COALESCE(v.stored_seq, v.seq) AS SIGNED), v.payload, t.epoch, LEFT(v.tokens, 16), v.parent_key, v.needs,
       CRC32(v.metadata)
  FROM {versions} v
  JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
 WHERE v.tenant = %s AND v.thread_id = %s AND v.version_key = %s
   AND <live>
"""

# The ancestors of a checkpoint up to a number, hidden ones too, with those of their writes that go to some channels.
ANCESTORS = """
WITH RECURSIVE line (depth, ns_key, seq, version_key, parent_key) AS (
  SELECT 0, v.ns_key, v.seq, v.version_key, v.parent_key
    FROM {versions} v
    JOIN {threads} t ON t.tenant = v.tenant AND t.thread_id = v.thread_id
   WHERE v.tenant = %s AND v.thread_id = %s AND v.version_key = %s
     AND <live>
  UNION ALL
  SELECT line.depth + 1, v.ns_key, v.seq, v.version_key, v.parent_key
    FROM line
    JOIN {versions} v ON v.tenant = %s AND v.thread_id = %s AND v.version_key = line.parent_key
   WHERE line.depth < %s AND line.parent_key <> line.version_key
)
SELECT 0, line.depth, CAST(COALESCE(v.stored_seq, v.seq) AS SIGNED), v.version_key, v.checkpoint_id, NULL, NULL,
       v.payload, v.parent_key, v.needs, CRC32(v.metadata)
  FROM line
  JOIN {versions} v ON v.tenant = %s AND v.thread_id = %s AND v.ns_key = line.ns_key AND v.seq = line.seq
 UNION ALL
SELECT 2, line.depth, w.idx, w.version_key, w.task_id, w.channel, w.task_path, w.payload, NULL, NULL, NULL
  FROM line
  JOIN {writes} w ON w.tenant = %s AND w.thread_id = %s AND w.version_key = line.version_key
 WHERE line.depth > 0 AND w.channel IN (<channels>)
"""

KEYS = "SELECT v.version_key FROM {versions} v WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0"

READ_PARTS = """
SELECT p.part, p.chunk FROM {parts} p
 WHERE p.tenant = %s AND p.thread_id = %s AND p.part IN (<parts>)
 UNION ALL
SELECT v.seq * <own>, v.chunk FROM {versions} v
 WHERE v.tenant = %s AND v.thread_id = %s AND v.ns_key = %s AND v.seq IN (<rows>) AND v.chunk IS NOT NULL
""".replace("<own>", str(OWN_PARTS))

READ_WRITES = """
SELECT w.task_id, w.idx, w.channel, w.task_path, w.payload
  FROM {writes} w
  LEFT JOIN {threads} t ON t.tenant = w.tenant AND t.thread_id = w.thread_id
 WHERE w.tenant = %s AND w.thread_id = %s AND w.version_key = %s
   AND <live><task>
"""
OF_TASK = "\n   AND w.task_key = %s"


class LoadingStatements(Statements):
    """Reading checkpoints and writes.

    Args:
        tables: The quoted names, by their role.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        super().__init__(tables)
        self._reads: dict[tuple[str, str, str], str] = {}

    def load(
        self,
        tenant: str,
        thread_id: str,
        ns_key: bytes,
        version_key: bytes | None,
        known: tuple[bytes, Sequence[int]] | None,
    ) -> Statement:
        """A checkpoint, or the newest of a namespace, with its parts and writes.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            ns_key: The namespace.
            version_key: The checkpoint; None for the newest.
            known: An epoch, and parts that need not be sent if it lasts.
        """
        chosen = NEWEST if version_key is None else NAMED
        key: Param = ns_key if version_key is None else version_key
        return self._read(chosen, (tenant, thread_id, key), tenant, _PARTS_OF_ONE, known)

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
    ) -> Statement:
        """Checkpoints of a thread with their parts and writes, newest first.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            limit: At most this many.
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
        chosen = CHOSEN.replace("<conditions>", conditions)
        return self._read(chosen, (*params, limit), tenant, _PARTS_OF_SEVERAL, known)

    def _read(
        self,
        chosen: str,
        params: tuple[Param, ...],
        tenant: str,
        parts: str,
        known: tuple[bytes, Sequence[int]] | None,
    ) -> Statement:
        of_one = parts is _PARTS_OF_ONE
        parts_params: list[Param] = [tenant, tenant]
        condition = ""
        if known is not None and known[1]:
            condition = _KNOWN
            what: list[Param] = [known[0], ",".join(map(str, known[1]))]
            parts_params = [tenant, tenant, *what] if of_one else [*what, tenant, tenant]
        key = (chosen, parts, condition)
        text = self._reads.get(key)
        if text is None:
            writes = (_WRITES_OF_ONE,) if of_one else (_WRITES, _PARENTS_WRITES)
            texts = (_HEADS, parts.replace("<known>", condition), *writes)
            text = self._text(_complete("WITH k AS (" + chosen + ")" + " UNION ALL ".join(texts)))
            self._reads[key] = text
        return Statement(text, (*params, tenant, *parts_params, *([tenant] if of_one else [tenant, tenant])))

    def base(self, tenant: str, thread_id: str, version_key: bytes) -> Statement:
        """A checkpoint to go on from.

        Seq of its parts, payload, epoch of the thread, token, parent's key, needs, checksum of the metadata.
        """
        return Statement(self._text(_complete(BASE)), (tenant, thread_id, version_key))

    def ancestors(
        self, tenant: str, thread_id: str, version_key: bytes, depth: int, channels: Sequence[str]
    ) -> Statement:
        """A checkpoint and its ancestors.

        Kind, depth, number, key, three texts and payload; of checkpoints, the first text is the id, and behind the
        payload are the parent's key, needs and the checksum of the metadata.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            version_key: The checkpoint.
            depth: Ancestors at most.
            channels: Writes to these are read; at least one.
        """
        key = (tenant, thread_id)
        text = self._text(_complete(ANCESTORS)).replace("<channels>", ", ".join(["%s"] * len(channels)))
        return Statement(text, (*key, version_key, *key, depth, *key, *key, *channels))

    def keys(self, tenant: str, thread_id: str) -> Statement:
        """The keys of a thread's checkpoints."""
        return Statement(self._text(KEYS), (tenant, thread_id))

    def parts(self, tenant: str, thread_id: str, ns_key: bytes, parts: Sequence[int]) -> Statement:
        """Number and bytes of parts of a namespace."""
        rows = [part // OWN_PARTS for part in parts if part % OWN_PARTS == 0]
        text = self._text(READ_PARTS).replace("<parts>", _digits(parts)).replace("<rows>", _digits(rows) or "NULL")
        return Statement(text, (tenant, thread_id, tenant, thread_id, ns_key))

    def writes(self, tenant: str, thread_id: str, version_key: bytes, task_key: bytes | None) -> Statement:
        """A checkpoint's writes, or those of one task: task, index, channel, path, payload."""
        text = self._text(_complete(READ_WRITES)).replace("<task>", "" if task_key is None else OF_TASK)
        params: tuple[Param, ...] = (tenant, thread_id, version_key)
        return Statement(text, params if task_key is None else (*params, task_key))


def _digits(numbers: Sequence[int]) -> str:
    """Numbers as SQL text; `int` lets nothing but digits through."""
    return ", ".join(str(int(number)) for number in numbers)
