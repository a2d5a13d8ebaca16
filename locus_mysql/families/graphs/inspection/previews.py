"""What a list shows of a graph's threads: status, first and last message, from the ends of their lists. Pure functions.

A list is stored as a chain of parts, of which each holds the bytes added to an earlier value. So its first part begins
with the first messages, and its last one ends with the last messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from ....dialect.graphs.previews import HeadRow, PreviewPartRow, StoppedRow, WantedPart
from ....errors import CorruptCheckpoint, EncryptionError
from ....runtime.sealing import Sealing
from ...inspection.conversation import messages_of
from ...inspection.msgpack import Unreadable, finite, metadata_of, read_at, value_end
from ...inspection.records import PendingWrite, ThreadPreview
from ...inspection.status import preview_of
from ..chains import Inline, Link, Stored
from ..decoding import decode_writes
from ..payload import unpack
from ..sealed_rows import StoredThread, checkpoint_identity, part_identity, stored_thread, unseal
from .token_usage import MESSAGES
from .values_as_json import pending, to_json

#: Bytes of the largest part and of the largest pending write that are read; and pending writes of a thread.
LARGEST_PART, LARGEST_WRITE, WRITES = 65_536, 65_536, 5

#: Messages at the beginning and at the end of a list that are recognised.
DECODED = 20

_DECODER = json.JSONDecoder()


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

    def wanted_parts(self) -> Iterator[WantedPart]:
        """Yield the parts with the first and the last messages, unless they are too large."""
        if self.messages is not None:
            for link in {self.messages.chain[0], self.messages.chain[-1]}:
                if link.length - link.start <= LARGEST_PART:
                    yield WantedPart(self.row.thread_id, self.row.ns_key, link.part)


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
            made = pending(decode_writes(thread, row.checkpoint_key, writes.get(row.thread_id, ())))
        except (CorruptCheckpoint, EncryptionError):
            continue
        state = {
            name: to_json(held.value.value) if isinstance(held.value, Inline) else None for name, held in values.items()
        }
        held = values.get(MESSAGES)
        stored = held.value if held is not None and isinstance(held.value, Stored) else None
        heads.append(GraphHead(thread, row, state, stored, made))
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
