"""What a list shows of a graph's threads: status, first and last message, from the ends of their lists.

A list is stored as a chain of parts, of which each holds the bytes added to an earlier value. So its first part begins
with the first messages, and its last one ends with the last messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from ....dialect.sql import Dialect, Select
from ....engine.operation import Batch, Operation, fetch
from ....errors import CorruptCheckpoint, EncryptionError
from ....runtime.sealing import Sealing
from ...inspection.conversation import messages_of
from ...inspection.msgpack import Unreadable, finite, metadata_of, read_at, value_end
from ...inspection.records import PendingWrite, ThreadPreview
from ...inspection.sources import Deferred
from ...inspection.status import preview_of
from ..decoding import decode_writes
from ..payload import StoredThread, checkpoint_identity, part_identity, stored_thread, unpack, unseal
from ..statements.tables import ns_key
from ..values import Inline, Link, Stored
from .graph_state import pending, to_json
from .turns import MESSAGES

#: Bytes of the largest part and of the largest pending write that are read; and pending writes of a thread.
LARGEST_PART, LARGEST_WRITE, WRITES = 65_536, 65_536, 5

#: Messages at the beginning and at the end of a list that are recognised.
DECODED = 20

_DECODER = json.JSONDecoder()


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


# The newest checkpoint c of each thread: that of the graph itself, or of another namespace if it has none.
_NEWEST_OF_EACH = """(SELECT t.tenant, t.thread_id, IF(root.seq IS NULL, newest.ns_key, :root_key) AS ns_key,
        COALESCE(root.seq, newest.seq) AS seq
   FROM {threads} t
   LEFT JOIN LATERAL (SELECT c.seq
                        FROM {checkpoints} c FORCE INDEX (PRIMARY)
                       WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.ns_key = :root_key AND c.hidden = 0
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.ns_key DESC, c.seq DESC
                       LIMIT 1) AS root ON TRUE
   LEFT JOIN LATERAL (SELECT c.ns_key, c.seq
                        FROM {checkpoints} c FORCE INDEX (newest)
                       WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.hidden = 0
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                       LIMIT 1) AS newest ON TRUE
  WHERE t.tenant = :tenant AND t.thread_id IN (:thread_ids) AND {LIVE_THREAD}
  LIMIT :count) AS k
  JOIN {checkpoints} c
    ON c.tenant = k.tenant AND c.thread_id = k.thread_id AND c.ns_key = k.ns_key AND c.seq = k.seq"""

#: Its row, without its parts.
HEADS = Select(
    f"""
SELECT c.thread_id, c.ns_key, COALESCE(c.stored_seq, c.seq), c.checkpoint_key, c.parent_key, c.needs, c.payload,
   c.metadata
  FROM {_NEWEST_OF_EACH}
""",  # noqa: S608 - constants
    HeadRow,
)

#: The pending writes at it that show why it stopped, or that are several in one row.
STOPPED = Select(
    f"""
SELECT w.thread_id, w.checkpoint_key, w.task_id, w.idx, w.channel, w.task_path, w.payload
  FROM {_NEWEST_OF_EACH}
  JOIN LATERAL (SELECT w.*
                  FROM {{writes}} w
                 WHERE w.tenant = c.tenant AND w.thread_id = c.thread_id AND w.checkpoint_key = c.checkpoint_key
                   AND w.channel IN ('', '__interrupt__', '__error__') AND LENGTH(w.payload) <= :largest
                 LIMIT :each) AS w
""",  # noqa: S608 - constants
    StoppedRow,
)

#: Parts of values, in the table of parts or in the row of a checkpoint.
PREVIEW_PARTS = Select(
    """
SELECT n.thread_id, n.part, COALESCE(p.chunk, o.chunk)
  FROM JSON_TABLE(:listed, '$[*]' COLUMNS (thread_id VARCHAR(512) COLLATE utf8mb4_0900_bin PATH '$[0]',
                                      ns_key VARCHAR(32) PATH '$[1]',
                                      part BIGINT UNSIGNED PATH '$[2]')) AS n
  LEFT JOIN {parts} p ON p.tenant = :tenant AND p.thread_id = n.thread_id AND p.part = n.part
  LEFT JOIN {checkpoints} o ON o.tenant = :tenant AND o.thread_id = n.thread_id AND o.ns_key = UNHEX(n.ns_key)
                        AND o.seq = n.part DIV {OWN_PARTS} AND o.stored_seq IS NULL
 WHERE COALESCE(p.chunk, o.chunk) IS NOT NULL
""",
    PreviewPartRow,
)


@dataclass(frozen=True, slots=True)
class GraphHead:
    """The newest checkpoint of a thread, without its parts.

    Args:
        thread: Its thread.
        row: Its row.
        state: Its small values as JSON; of a value that is stored in parts, the name with None.
        messages: Its conversation, if that is stored in parts.
        writes: The pending writes that show why it stopped.
    """

    thread: StoredThread
    row: HeadRow
    state: Mapping[str, Any]
    messages: Stored | None
    writes: Sequence[PendingWrite]

    def end_parts(self) -> Iterator[tuple[str, str, int]]:
        """Yield thread, namespace and number of the parts with the first and the last messages, if not too large."""
        if self.messages is not None:
            for link in {self.messages.chain[0], self.messages.chain[-1]}:
                if link.length - link.start <= LARGEST_PART:
                    yield self.row.thread_id, self.row.ns_key.hex(), link.part


def read_previews(
    sql: Dialect, tenant: str, thread_ids: Sequence[str], sealing: Sealing
) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
    """Return the previews of threads by their ids. Two round trips: the second reads the ends of long conversations."""
    which: dict[str, Any] = {
        "tenant": tenant,
        "root_key": ns_key(""),
        "thread_ids": list(thread_ids),
        "count": len(thread_ids),
    }
    heads, stopped = HEADS(sql, **which), STOPPED(sql, each=WRITES, largest=LARGEST_WRITE, **which)
    results = yield Batch((heads, stopped), atomic=False)
    read = heads_of(tenant, results.rows(heads), results.rows(stopped), sealing)
    listed = [part for head in read for part in head.end_parts()]
    rows = (yield from fetch(PREVIEW_PARTS(sql, tenant=tenant, listed=json.dumps(listed)))) if listed else []
    return partial(previews_of, read, rows)


def heads_of(tenant: str, rows: Iterable[HeadRow], stopped: Iterable[StoppedRow], sealing: Sealing) -> list[GraphHead]:
    """Return the newest checkpoints. Those that are damaged, or whose key is missing, are left out."""
    writes: dict[str, list[StoppedRow]] = {}
    for write in stopped:
        writes.setdefault(write.thread_id, []).append(write)
    heads = []
    for row in rows:
        thread = stored_thread(tenant, row.thread_id, sealing)
        identity = checkpoint_identity(thread, row.checkpoint_key, row.parent_key, row.needs, row.metadata)
        try:
            values = unpack(row.payload, row.stored_seq, identity).values
            waiting = pending(decode_writes(thread, row.checkpoint_key, writes.get(row.thread_id, ())))
        except (CorruptCheckpoint, EncryptionError):
            continue
        state = {
            name: to_json(labelled.value.value) if isinstance(labelled.value, Inline) else None
            for name, labelled in values.items()
        }
        messages = values.get(MESSAGES)
        stored = messages.value if messages is not None and isinstance(messages.value, Stored) else None
        heads.append(GraphHead(thread, row, state, stored, waiting))
    return heads


def previews_of(heads: Sequence[GraphHead], rows: Iterable[PreviewPartRow]) -> Mapping[str, ThreadPreview]:
    """Return the previews of threads by their ids."""
    parts = {(row.thread_id, int(row.part)): row.chunk for row in rows}
    return {head.row.thread_id: _preview(head, parts) for head in heads}


def _preview(head: GraphHead, parts: Mapping[tuple[str, int], bytes]) -> ThreadPreview:
    first = last = messages_of(head.state)
    if head.messages is not None:
        kind, thread_id = head.messages.kind, head.row.thread_id
        begins, ends = head.messages.chain[0], head.messages.chain[-1]
        beginning = _chunk(head.thread, begins, parts.get((thread_id, begins.part)))
        end = _chunk(head.thread, ends, parts.get((thread_id, ends.part)))
        first = messages_of({MESSAGES: _items(kind, beginning)[:DECODED]})
        last = messages_of({MESSAGES: _items(kind, end)[-DECODED:]})
    return preview_of(first, last, head.state, head.writes, metadata_of(head.row.metadata)[0])


def _chunk(thread: StoredThread, link: Link, sealed: bytes | None) -> bytes:
    """Return the bytes of a part; none if it was not read, is damaged, or its key is missing."""
    if sealed is None:
        return b""
    try:
        chunk = unseal(sealed, part_identity(thread))
    except (CorruptCheckpoint, EncryptionError):
        return b""
    return chunk if crc32(chunk) == link.checksum else b""


def _items(kind: str, chunk: bytes) -> list[Any]:
    """Return the items in a part of a list; none if the part does not begin with an item."""
    try:
        return list(_json_items(chunk) if kind == "json" else _msgpack_items(chunk))
    except (Unreadable, ValueError, RecursionError):
        return []


def _json_items(chunk: bytes) -> Iterator[Any]:
    text = chunk.decode().lstrip("[,")
    at = 0
    while at < len(text):
        item, at = _DECODER.raw_decode(text, at)
        yield finite(item)
        at += 1  # the comma


def _msgpack_items(chunk: bytes) -> Iterator[Any]:
    at = 0
    while at < len(chunk):
        yield read_at(chunk, at)
        at = value_end(chunk, at)
