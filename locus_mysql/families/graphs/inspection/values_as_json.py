"""Values of a graph's checkpoint as JSON: channels, channels stored as their writes, and pending writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ....errors import CorruptCheckpoint
from ....runtime.exact_json import decode_json
from ...inspection.msgpack import TYPE, Unreadable, describe_bytes, finite, read_msgpack
from ...inspection.records import PendingWrite
from ..chains import Inline, Stored
from ..records import ChannelHistory, LoadedWrite
from ..store import CODEC as SAVER
from ..values import EncodedValue

#: The key of LangGraph's metadata with the steps since the last snapshot of each channel that is stored as its writes.
COUNTERS = "counters_since_delta_snapshot"


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
    return [found for write in ordered for found in _writes(write)]


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
