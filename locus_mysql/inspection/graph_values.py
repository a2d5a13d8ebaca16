"""What a graph's checkpoint holds beside plain values: channels stored as their writes, and pending writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ..families.graphs.records import ChannelHistory, LoadedWrite
from ..families.graphs.saver import SURFACE as SAVER
from .msgpack import TYPE
from .records import PendingWrite
from .to_json import to_json

#: Where LangGraph's metadata counts the steps since a channel that is stored as its writes was last stored whole.
COUNTERS = "counters_since_delta_snapshot"


def rebuilt(history: ChannelHistory) -> Any:
    """What a channel holds that is stored as its writes since its value was last stored whole.

    The graph's own function puts them together; it is code, and not at hand. Lists are joined, as nearly all such
    functions do: a message takes the place of the one of its id. Of anything else, all the parts are shown.
    """
    value = None if history.seed is None else to_json(history.seed)
    ordered = [sorted(group, key=lambda one: (one.task_path, one.task_id, one.idx)) for group in history.writes]
    writes = [to_json(write.value) for group in ordered for write in group]
    if not isinstance(value, list | None) or not all(isinstance(write, list) for write in writes):
        return {TYPE: "DeltaChannel", "value": value, "writes": writes}
    joined: dict[Any, Any] = {}
    for place, item in enumerate(chain(value or [], *writes)):
        key = item.get("id") if isinstance(item, dict) and isinstance(item.get("id"), str) else None
        if key is not None and item.get("type") == "remove":
            joined.pop(key, None)
        else:
            joined[place if key is None else key] = item
    return list(joined.values())


def stored_as_writes(metadata: Mapping[str, Any]) -> list[str]:
    """The channels that a checkpoint's metadata says are not stored whole."""
    counters = metadata.get(COUNTERS)
    return [name for name in counters if isinstance(name, str)] if isinstance(counters, dict) else []


def pending(writes: Sequence[LoadedWrite]) -> list[PendingWrite]:
    """What tasks wrote at a checkpoint, by the place and the id of the task, in the order of its writes."""
    ordered = sorted(writes, key=lambda write: (write.task_path, write.task_id, write.idx))
    return [found for write in ordered for found in _writes(write)]


def _writes(write: LoadedWrite) -> list[PendingWrite]:
    value = to_json(write.value._replace(kind="json")) if write.value.kind == SAVER else to_json(write.value)
    if write.value.kind == SAVER and not write.channel and isinstance(value, list):  # all that a task wrote
        pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
        return [PendingWrite(write.task_id, str(channel), written) for channel, written in pairs]
    return [PendingWrite(write.task_id, write.channel, value)]
