"""Tokens and iterations of the newest states of a graph, without reading every state.

The lists of consecutive states have a common prefix, byte for byte, and each row has the length and the digest of its
list. So only the newest list is read, and the digests show which prefix of it each of the others is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from ....engine.operation import Operation
from ....errors import CorruptCheckpoint
from ....records.log_digests import EMPTY, HashedLog, Log, Mark
from ....runtime.server_rows import aware
from ...inspection.msgpack import Unreadable, array_header, item_ends, metadata_of, read_at
from ...inspection.records import Turn
from ...inspection.status import NEXT_NODE
from ...inspection.turns import changes_of, hash_prefixes, note_of
from ..loading import Loading
from ..payload import StoredThread, checkpoint_identity, unpack
from ..statements.inspection import OutlineRow
from ..values import Body, Divided, EncodedValue, Inline, Stored, divide
from .graph_state import fingerprint

#: The channel that contains the conversation.
MESSAGES = "messages"

#: The maximum number of conversations that are read for the turns of a thread, one for each branch with a different
#: beginning; and their most bytes in all.
LISTS, LISTS_BYTES = 4, 67_108_864

#: The token usage of a message in msgpack: a key followed by a map. A text hardly matches: in UTF-8 the first byte can
#: only end a character.
_USAGE = re.compile(rb"\xaeusage_metadata(?=[\x80-\x8f\xde\xdf])")

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Outline:
    """A checkpoint without its values.

    Args:
        checkpoint_id: Its id.
        parent_id: The id of the one that it follows.
        created_at: When it was saved.
        metadata: JSON text.
        messages: The stored form of its conversation; None if it has none.
        damaged: Whether the row cannot be read.
        values: Its values by channel: a small one as JSON, a large one as its digest.
    """

    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    metadata: str | None
    messages: Inline | Stored | None
    damaged: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


class _Conversation(NamedTuple):
    """A list that was read: its bytes, the ends of its items, and the tokens up to each item."""

    log: HashedLog
    ends: Sequence[int]
    tokens: Sequence[int | None]


def outline_of(thread: StoredThread, row: OutlineRow) -> Outline:
    """Return the outline of a checkpoint of a thread."""
    messages, damaged = None, False
    values: Mapping[str, Any] = {}
    try:
        identity = checkpoint_identity(thread, row.checkpoint_key, row.parent_key, row.needs, row.metadata)
        stored = unpack(row.payload, row.stored_seq, identity).values
        conversation = stored.get(MESSAGES)
        messages = None if conversation is None else conversation.value
        values = {name: fingerprint(one.value) for name, one in stored.items()}
    except CorruptCheckpoint:
        damaged = True
    return Outline(row.checkpoint_id, row.parent_id, aware(row.created_at), row.metadata, messages, damaged, values)


def read_lists(
    loading: Loading, tenant: str, thread_id: str, ns: str, outlines: Sequence[Outline]
) -> Operation[list[EncodedValue]]:
    """Return conversations of which those of the checkpoints are prefixes. One round trip for each."""
    waiting = {mark_of_stored(one.messages): one.messages for one in outlines if one.messages is not None}
    waiting.pop(EMPTY, None)
    lists: list[EncodedValue] = []
    size_bytes = 0
    while waiting and len(lists) < LISTS and (size_bytes := size_bytes + next(iter(waiting)).length) <= LISTS_BYTES:
        longest = waiting.pop(next(iter(waiting)))
        try:
            lists.append((yield from loading.value(tenant, thread_id, ns, longest)))
        except CorruptCheckpoint:
            continue
        longest_log = log_of(lists[-1])
        hash_prefixes(longest_log, waiting)
        waiting = {mark: value for mark, value in waiting.items() if not longest_log.begins_with(mark)}
    return lists


def mark_of_stored(value: Inline | Stored) -> Mark:
    """Return the mark of a stored list: its length, its number of items if known, and its digest."""
    if isinstance(value, Stored):
        encoded = EncodedValue(value.kind, value.front)
        length, digest = value.length, value.digest
    else:
        encoded = value.value
        body = Body(divide(encoded).body)
        length, digest = body.length, body.digest
    if encoded.kind not in {"json", "msgpack"}:
        return EMPTY
    count = array_header(encoded.data)[1] if encoded.kind == "msgpack" else 0
    return EMPTY if count is None else Mark(length, count, digest)


def log_of(encoded: EncodedValue) -> HashedLog:
    """Return the items of a list as stored, to be compared with marks."""
    return HashedLog(Log("", 0, divide(encoded).body, 0))


def turns_of(outlines: Sequence[Outline], lists: Sequence[EncodedValue]) -> list[Turn]:
    """Return the turns of checkpoints, oldest first.

    Args:
        outlines: The checkpoints, newest first.
        lists: Lists of which those of the checkpoints are prefixes.
    """
    conversations = [_conversation(encoded) for encoded in lists]
    marks = [EMPTY if one.messages is None else mark_of_stored(one.messages) for one in outlines]
    for one in conversations:
        hash_prefixes(one.log, marks)
    turns = [_turn(outline, mark, conversations) for outline, mark in zip(outlines, marks, strict=True)][::-1]
    return with_notes(outlines, turns)


def with_notes(outlines: Sequence[Outline], turns: Sequence[Turn]) -> list[Turn]:
    """Return turns with the nodes that ran before them, and what they changed."""
    by_id = {one.checkpoint_id: (one, turn) for one, turn in zip(outlines, reversed(turns), strict=True)}
    noted = []
    for turn in turns:
        outline, _ = by_id[turn.checkpoint_id]
        parent, before = by_id.get(outline.parent_id or "", (None, None))
        source = metadata_of(outline.metadata)[0].get("source")
        node = source if isinstance(source, str) and source != "loop" else ""
        if parent is not None and not node:
            node = ", ".join(name.removeprefix(NEXT_NODE) for name in parent.values if name.startswith(NEXT_NODE))
        seconds = None
        if source == "loop" and before is not None:
            node = node or "start"
            seconds = max(0.0, (turn.created_at - before.created_at).total_seconds())
        count = turn.lists.get(MESSAGES, EMPTY).item_count
        earlier = 0 if before is None else before.lists.get(MESSAGES, EMPTY).item_count
        fields = None if parent is None else _fields(parent)
        note = note_of(max(0, count - earlier), None, changes_of(fields, _fields(outline)))
        noted.append(replace(turn, node=node, note="" if outline.damaged else note, seconds=seconds))
    return noted


def _fields(outline: Outline) -> Mapping[str, Any]:
    """Return the channels of a checkpoint that users know: without its messages and its next tasks."""
    return {
        name: value
        for name, value in outline.values.items()
        if name != MESSAGES and not name.startswith((NEXT_NODE, "__"))
    }


def _turn(outline: Outline, mark: Mark, conversations: Sequence[_Conversation]) -> Turn:
    tokens = None
    whole = next((one for one in conversations if mark.length and one.log.begins_with(mark)), None)
    if whole is not None:
        count = bisect_right(whole.ends, mark.length)
        tokens = whole.tokens[count - 1] if count else None
        mark = mark._replace(item_count=count)
    step = metadata_of(outline.metadata)[0].get("step")
    return Turn(
        checkpoint_id=outline.checkpoint_id,
        created_at=outline.created_at,
        confidence=None,
        tokens=tokens,
        iterations=step if isinstance(step, int) else None,
        parent_id=outline.parent_id,
        begins=outline.parent_id is None,
        lists={} if outline.damaged else {MESSAGES: mark},
    )


def _conversation(encoded: EncodedValue) -> _Conversation:
    divided = divide(encoded)
    try:
        ends, used = _in_json(divided) if encoded.kind == "json" else _in_msgpack(divided)
    except (Unreadable, ValueError, RecursionError):
        ends, used = [], {}
    counted = accumulate((used.get(index) for index in range(len(ends))), _sum)
    return _Conversation(log_of(encoded), ends, list(counted))


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


def _in_msgpack(divided: Divided) -> tuple[list[int], dict[int, int]]:
    """Return the ends of the items, and the tokens of the items that report them."""
    body = divided.body
    count = array_header(divided.front)[1] or 0
    _, *ends = item_ends(body, 0, count)
    used: dict[int, int] = {}
    for match in _USAGE.finditer(body):
        index = bisect_right(ends, match.start())
        tokens = _tokens(read_at(body, match.end()))
        if tokens is not None and index not in used:
            used[index] = tokens
    return ends, used


def _in_json(divided: Divided) -> tuple[list[int], dict[int, int]]:
    text = divided.body.decode()
    ends: list[int] = []
    used: dict[int, int] = {}
    offset, size_bytes = 1, 1
    while text[:1] == "[" and offset < len(text):
        value, end = _DECODER.raw_decode(text, offset)
        size_bytes += len(text[offset:end].encode())
        tokens = _tokens(value.get("usage_metadata")) if isinstance(value, dict) else None
        if tokens is not None:
            used[len(ends)] = tokens
        ends.append(size_bytes)
        offset, size_bytes = end + 1, size_bytes + 1
    return ends, used


def _tokens(usage: Any) -> int | None:
    """Return the number of tokens of a message's usage; None without one."""
    count = usage.get("total_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None
