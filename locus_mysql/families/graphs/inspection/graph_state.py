"""A graph's checkpoint as read, its view, and its values as JSON: of channels, also those stored as writes, and writes.

Pure functions. Large states take seconds, so run `view_of` in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ....errors import CorruptCheckpoint
from ....runtime.exact_json import decode_json
from ...inspection.msgpack import (
    TYPE,
    Items,
    Unreadable,
    array_header,
    describe_bytes,
    finite,
    read_items,
    read_msgpack,
)
from ...inspection.records import CheckpointRow, PendingWrite, StateView, StoredList
from ..records import ChannelHistory, LoadedWrite
from ..store import CODEC as SAVER
from ..values import EncodedValue, Inline, Stored, divide

#: Lists with at least this many items are read in part, if a part is enough.
LONG = 1_000

#: The key of LangGraph's metadata with the steps since the last snapshot of each channel that is stored as its writes.
COUNTERS = "counters_since_delta_snapshot"


@dataclass(frozen=True, slots=True)
class GraphState:
    """A checkpoint as read.

    Args:
        thread_id: Its thread.
        checkpoint: Its row.
        values: The bytes of each channel, or a message about its damage.
        writes: The pending writes of its tasks.
        apart: Channels that are stored as their writes.
        damage: Why the rest could not be read.
        partly: Whether long lists may be given as `Items`.
    """

    thread_id: str
    checkpoint: CheckpointRow
    values: Mapping[str, EncodedValue | str] = field(default_factory=dict)
    writes: Sequence[LoadedWrite] = ()
    apart: Mapping[str, ChannelHistory] = field(default_factory=dict)
    damage: str | None = None
    partly: bool = False

    @property
    def size_bytes(self) -> int:
        """The size of its channels."""
        return sum(len(value.data) for value in self.values.values() if isinstance(value, EncodedValue))


def view_of(read: GraphState) -> StateView:
    """Return the view of a checkpoint."""
    state: dict[str, Any] = {}
    writes: Sequence[PendingWrite] = ()
    damage = read.damage
    try:
        writes = pending(read.writes)
        for name, value in read.values.items():
            if isinstance(value, str):
                state[name], damage = f"<damaged: {value}>", f"Channel {name!r:.100}: {value}"
            else:
                state[name] = (_items(value) if read.partly else None) or to_json(value)
        state.update({name: rebuilt(history) for name, history in read.apart.items()})
    except CorruptCheckpoint as error:
        damage = str(error)
    if damage is not None:
        damage = f"{damage} Delete the checkpoint if no other continues it."
    lists = {name: _stored(value) for name, value in read.values.items() if isinstance(state.get(name), list | Items)}
    stored = {name: one for name, one in lists.items() if one is not None}
    return StateView("graphs", read.thread_id, read.checkpoint, (), state, writes, damage, stored=stored)


def _items(value: EncodedValue) -> Items | None:
    try:
        return read_items(value.data, LONG) if value.kind == "msgpack" else None
    except Unreadable:
        return None  # `to_json` shows the damage


def _stored(value: EncodedValue | str) -> StoredList | None:
    """Return the items of a list as stored; None if their bytes cannot be compared."""
    if isinstance(value, str):
        return None
    if value.kind == "json":
        return StoredList(divide(value).body, 0)
    count = array_header(value.data)[1] if value.kind == "msgpack" else None
    return None if count is None else StoredList(divide(value).body, count)


def rebuilt(history: ChannelHistory) -> Any:
    """Return the value of a channel that is stored as a snapshot and the writes since.

    The graph's reducer combines them, but the inspector does not have the graph's code. Lists are concatenated, as
    nearly all reducers do, and a message replaces the one with its id. Other values are shown as snapshot and writes.
    """
    value = None if history.seed is None else to_json(history.seed)
    ordered = [sorted(group, key=lambda one: (one.task_path, one.task_id, one.idx)) for group in history.writes]
    writes = [to_json(write.value) for group in ordered for write in group]
    if not isinstance(value, list | None) or not all(isinstance(write, list) for write in writes):
        return {TYPE: "DeltaChannel", "value": value, "writes": writes}
    joined: dict[Any, Any] = {}
    for index, item in enumerate(chain(value or [], *writes)):
        key = item.get("id") if isinstance(item, dict) and isinstance(item.get("id"), str) else None
        if key is not None and item.get("type") == "remove":
            joined.pop(key, None)
        else:
            joined[index if key is None else key] = item
    return list(joined.values())


def stored_as_writes(metadata: Mapping[str, Any]) -> list[str]:
    """Return the channels that are stored as their writes, by a checkpoint's metadata."""
    counters = metadata.get(COUNTERS)
    return [name for name in counters if isinstance(name, str)] if isinstance(counters, dict) else []


def pending(writes: Sequence[LoadedWrite]) -> list[PendingWrite]:
    """Return the pending writes of a checkpoint, ordered by path and id of the task and by the task's order."""
    ordered = sorted(writes, key=lambda write: (write.task_path, write.task_id, write.idx))
    return [one for write in ordered for one in _writes(write)]


def _writes(write: LoadedWrite) -> list[PendingWrite]:
    value = to_json(write.value._replace(kind="json")) if write.value.kind == SAVER else to_json(write.value)
    if write.value.kind == SAVER and not write.channel and isinstance(value, list):  # all writes of a task in one row
        pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
        return [PendingWrite(write.task_id, str(channel), written) for channel, written in pairs]
    return [PendingWrite(write.task_id, write.channel, value)]


def fingerprint(value: Inline | Stored) -> Any:
    """Return a small value as JSON; of a large one an object that is equal for equal values."""
    return to_json(value.value) if isinstance(value, Inline) else {"digest": value.digest.hex()}


def to_json(encoded: EncodedValue) -> Any:
    """Return a value of a graph's checkpoint as JSON; a value that JSON lacks becomes a text with its type and size.

    Pickles and encrypted values are never read. Damaged bytes are reported as damaged.
    """
    kind, data = encoded
    if kind == "null":
        return None
    try:
        if kind == "json":
            return finite(decode_json(data))
        if kind == "msgpack":
            return read_msgpack(data)
    except (CorruptCheckpoint, Unreadable, RecursionError):
        return describe_bytes(f"damaged {kind}", len(data))
    return describe_bytes(kind[:60], len(data))
