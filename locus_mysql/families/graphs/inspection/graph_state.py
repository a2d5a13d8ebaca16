"""`GraphState`, a graph's checkpoint as read, and its view. Pure; large states take seconds, so run it in a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....errors import CorruptCheckpoint
from ...inspection.msgpack import Items, Unreadable, array_header, read_items
from ...inspection.records import CheckpointRow, PendingWrite, StateView, StoredList
from ..records import ChannelHistory, LoadedWrite
from ..values import EncodedValue, frame
from .values_as_json import pending, rebuilt, to_json

#: Lists with at least this many items are read in part, if a part is enough.
LONG = 1_000


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
    stored = {name: found for name, found in lists.items() if found is not None}
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
        return StoredList(frame(value).body, 0)
    count = array_header(value.data)[1] if value.kind == "msgpack" else None
    return None if count is None else StoredList(frame(value).body, count)
