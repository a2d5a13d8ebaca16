"""What a list shows of a thread of states: status, first and last message, from the beginnings of its rows. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import CorruptCheckpoint, EncryptionError
from ...runtime.exact_json import decode_json
from ...runtime.sealing import Opened, Sealing, sealed_by
from ..inspection.conversation import messages_of
from ..inspection.msgpack import finite
from ..inspection.records import ThreadPreview
from ..inspection.status import preview_of
from .coding.delta import PAYLOAD
from .coding.payload import Added, added_items, beginning_of, outline
from .statements.inspection import PreviewRow

#: Bytes of each payload that are read. Rows with a larger payload than the second number are not read at all.
BEGINNING_BYTES, LARGEST_BYTES = 16_384, 262_144

_DECODER = json.JSONDecoder()


def previews_of(rows: Sequence[PreviewRow], sealing: Sealing, tenant: str) -> Mapping[str, ThreadPreview]:
    """Return the previews of threads by their ids."""
    by_thread: dict[str, list[PreviewRow]] = {}
    for row in rows:
        by_thread.setdefault(row.thread_id, []).append(row)
    return {thread_id: _preview(found, sealing.of(tenant, thread_id)) for thread_id, found in by_thread.items()}


def _preview(rows: Sequence[PreviewRow], sealing: Sealing) -> ThreadPreview:
    first = next((row for row in rows if row.is_first), None)
    newest_first = sorted((row for row in rows if not row.is_first), key=lambda row: -row.seq)
    newest = newest_first[0] if newest_first else None
    began = None if first is None else partial_state(_opened(first, sealing), beginning=True)
    state = None if newest is None else partial_state(_opened(newest, sealing))
    if state is None:
        return preview_of(messages_of(began or {}), (), {})
    last = messages_of(state)
    if not last and newest is not None and len(newest_first) > 1 and newest_first[1].seq == newest.parent_seq:
        last = messages_of(partial_state(_opened(newest_first[1], sealing)) or {})
    return preview_of(messages_of(began or {}), last, state)


def _opened(row: PreviewRow, sealing: Sealing) -> Opened | None:
    """Return the beginning of a row's payload, decrypted; None if it cannot be."""
    try:
        if sealing.reads_clear and sealed_by(row.payload) is None:
            return beginning_of(row.payload)
        if row.payload_bytes > len(row.payload):
            return None  # only a whole payload can be decrypted
        tokens = (row.token,) if row.base_token is None else (row.token, row.base_token)
        return sealing.open(row.payload, f"Checkpoint row {row.seq}", PAYLOAD, *tokens)
    except (CorruptCheckpoint, EncryptionError):
        return None


def partial_state(payload: Opened | None, *, beginning: bool = False) -> Mapping[str, Any] | None:
    """Return a state whose lists have only the items that its row adds; None if the row cannot be read.

    Args:
        payload: The beginning of its payload.
        beginning: Whether lists have items only if the row has their beginning; else only if it has their end.
    """
    if payload is None:
        return None
    try:
        head, added = outline(payload).head, added_items(payload)
        state = None if head is None else finite(decode_json(head))
    except CorruptCheckpoint:
        return None
    if not isinstance(state, dict):
        return None
    for name, items in added.items():
        if name in state and (not items.start if beginning else items.whole):
            state[name] = _items(items)
    return state


def _items(added: Added) -> list[Any]:
    """Return the items in a text that may be cut off; none if a complete text begins within an item."""
    text = added.text.decode("utf-8", "ignore").lstrip(",")
    items = []
    at = 0
    while at < len(text):
        try:
            item, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        items.append(finite(item))
        at += 1  # the comma
    return [] if added.whole and at < len(text) else items
