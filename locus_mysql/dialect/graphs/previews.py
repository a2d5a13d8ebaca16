"""Statements of the inspection that read what a list shows of threads' contents. They only read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ..statement import Query
from ..template import Statements, placeholders

# The newest checkpoint of each thread: that of the graph itself, or of another namespace if it has none.
NEWEST_OF_EACH = """
(SELECT t.tenant, t.thread_id, IF(root.seq IS NULL, newest.ns_key, %s) AS ns_key,
        COALESCE(root.seq, newest.seq) AS seq
   FROM {threads} t
   LEFT JOIN LATERAL (SELECT c.seq
                        FROM {checkpoints} c FORCE INDEX (PRIMARY)
                       WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.ns_key = %s AND c.hidden = 0
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
                       LIMIT 1) AS root ON TRUE
   LEFT JOIN LATERAL (SELECT c.ns_key, c.seq
                        FROM {checkpoints} c FORCE INDEX (newest)
                       WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                       LIMIT 1) AS newest ON TRUE
  WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD}
  LIMIT %s) AS k
"""

# Its row, without its parts.
HEADS = """
SELECT c.thread_id, c.ns_key, COALESCE(c.stored_seq, c.seq), c.checkpoint_key, c.parent_key, c.needs, c.payload,
       c.metadata
  FROM {newest}
  JOIN {checkpoints} c ON c.tenant = k.tenant AND c.thread_id = k.thread_id AND c.ns_key = k.ns_key AND c.seq = k.seq
"""

# The pending writes that show why it stopped, or that are several in one row.
STOPPED = """
SELECT w.thread_id, w.checkpoint_key, w.task_id, w.idx, w.channel, w.task_path, w.payload
  FROM {newest}
  JOIN {checkpoints} c ON c.tenant = k.tenant AND c.thread_id = k.thread_id AND c.ns_key = k.ns_key AND c.seq = k.seq
  JOIN LATERAL (SELECT w.*
                  FROM {writes} w
                 WHERE w.tenant = c.tenant AND w.thread_id = c.thread_id AND w.checkpoint_key = c.checkpoint_key
                   AND w.channel IN ('', '__interrupt__', '__error__') AND LENGTH(w.payload) <= {bytes}
                 LIMIT {each}) AS w
"""

# Parts of values, in the table of parts or in the row of a checkpoint.
PREVIEW_PARTS = """
SELECT n.thread_id, n.part, COALESCE(p.chunk, o.chunk)
  FROM JSON_TABLE(%s, '$[*]' COLUMNS (thread_id VARCHAR(512) COLLATE utf8mb4_0900_bin PATH '$[0]',
                                      ns_key VARCHAR(32) PATH '$[1]',
                                      part BIGINT UNSIGNED PATH '$[2]')) AS n
  LEFT JOIN {parts} p ON p.tenant = %s AND p.thread_id = n.thread_id AND p.part = n.part
  LEFT JOIN {checkpoints} o ON o.tenant = %s AND o.thread_id = n.thread_id AND o.ns_key = UNHEX(n.ns_key)
                        AND o.seq = n.part DIV {OWN_PARTS} AND o.stored_seq IS NULL
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL
"""


class HeadRow(NamedTuple):
    """The newest checkpoint of a thread, without its parts."""

    thread_id: str
    ns_key: bytes
    stored_seq: int
    checkpoint_key: bytes
    parent_key: bytes | None
    needs: int
    payload: bytes
    metadata: str | None


class StoppedRow(NamedTuple):
    """A pending write at it."""

    thread_id: str
    checkpoint_key: bytes
    task_id: str
    idx: int
    channel: str
    task_path: str
    payload: bytes


class PreviewPartRow(NamedTuple):
    """A part."""

    thread_id: str
    part: int
    chunk: bytes


class WantedPart(NamedTuple):
    """The number of a part, with the namespace of the row that may hold it."""

    thread_id: str
    ns_key: bytes
    part: int


class PreviewStatements(Statements):
    """Reading what a list shows of threads' contents."""

    def heads(self, tenant: str, root_key: bytes, thread_ids: Sequence[str]) -> Query[HeadRow]:
        """Return the newest checkpoints of these threads."""
        text = self._text(HEADS, newest=NEWEST_OF_EACH, ids=placeholders(len(thread_ids)))
        return Query(text, (root_key, root_key, tenant, *thread_ids, len(thread_ids)), row=HeadRow)

    def stopped(
        self, tenant: str, root_key: bytes, thread_ids: Sequence[str], each: int, largest: int
    ) -> Query[StoppedRow]:
        """Return writes at them that show why they stopped.

        Args:
            tenant: The tenant.
            root_key: The namespace of graphs themselves.
            thread_ids: The threads.
            each: The maximum number of writes of a thread.
            largest: Larger ones are left out.
        """
        pieces = {
            "newest": NEWEST_OF_EACH,
            "ids": placeholders(len(thread_ids)),
            "each": str(each),
            "bytes": str(largest),
        }
        text = self._text(STOPPED, **pieces)
        return Query(text, (root_key, root_key, tenant, *thread_ids, len(thread_ids)), row=StoppedRow)

    def parts(self, tenant: str, wanted: Sequence[WantedPart]) -> Query[PreviewPartRow]:
        """Return these parts."""
        listed = json.dumps([[one.thread_id, one.ns_key.hex(), one.part] for one in wanted])
        return Query(self._text(PREVIEW_PARTS), (listed, tenant, tenant), row=PreviewPartRow)
