"""What operations take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from .chains import Value
from .values import Body, Encoded, Grown


class Held(NamedTuple):
    """A value of a stored checkpoint.

    Args:
        label: The version that its owner gave it; any JSON value.
        value: How it is stored.
    """

    label: Any
    value: Value


@dataclass(frozen=True, slots=True)
class Base:
    """A stored checkpoint that a new one may go on from.

    Args:
        epoch: The thread's when it was read. What it refers to exists as long as that lasts and its own row is there.
        version_key: Its key.
        token: The mark of the save that wrote it. A server that lost its newest commits does not have it.
        values: Its values by name.
        bodies: Bodies of large ones, as far as they are at hand.
        snapshots: Values of which only snapshots are stored, as `Content` has them.
    """

    epoch: bytes
    version_key: bytes
    token: bytes
    values: Mapping[str, Held]
    bodies: Mapping[str, Body]
    snapshots: frozenset[str] = frozenset()


class NewValue(NamedTuple):
    """A value of a new checkpoint.

    Args:
        name: Its name.
        label: The version that its owner gives it; any JSON value.
        encoded: Its bytes; None to keep the base's.
    """

    name: str
    label: Any
    encoded: Encoded | Grown | None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A checkpoint to save.

    Args:
        surface: Who encodes it; a checkpoint is read by the same.
        ns: Its namespace, of any length.
        checkpoint_id: Its id.
        parent_id: The id of the one it follows, in the same namespace; it need not be there.
        head: All of it but its values.
        values: From the base, if there is one, the values in their order.
        metadata: JSON text for queries.
        run_id: The run that made it.
        needs: 0 if it needs nothing of its parent, 1 if all of it, 2 if its writes.
        replace: Whether a checkpoint of the same id takes the new content; else that is refused.
        token: The save's mark, 16 random bytes.
        digest: Tells its content, in 15 bytes, if saving the same again is to be accepted; else empty.
        snapshots: Its values that are snapshots: later checkpoints may lack the value and need this one for it.
        counted: Values of which its owner says itself whether it needs its parent for them.
    """

    surface: str
    ns: str
    checkpoint_id: str
    parent_id: str | None
    head: Encoded
    values: Callable[[Base | None], Sequence[NewValue]]
    metadata: str | None
    run_id: str | None
    needs: int
    replace: bool
    token: bytes
    digest: bytes = b""
    snapshots: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LoadedWrite:
    """A write of a task."""

    task_id: str
    idx: int
    channel: str
    task_path: str
    value: Encoded


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A checkpoint that was read.

    Args:
        surface: Who encoded it.
        thread_id: Its thread.
        ns: Its namespace.
        checkpoint_id: Its id.
        parent_id: The id of the one it follows.
        head: All of it but its values.
        labels: The versions of its values by name.
        values: Puts its values together, by name in their order.
        value: Puts one of them together.
        metadata: JSON text, or None.
        created_at: When the server took it, in UTC.
        writes: Writes of tasks at it, in no order.
        parents_writes: Those at its parent, if it needs them.
    """

    surface: str
    thread_id: str
    ns: str
    checkpoint_id: str
    parent_id: str | None
    head: Encoded
    labels: Mapping[str, Any]
    values: Callable[[], dict[str, Encoded]]
    value: Callable[[str], Encoded]
    metadata: str | None
    created_at: datetime
    writes: Sequence[LoadedWrite]
    parents_writes: Sequence[LoadedWrite]


@dataclass(frozen=True, slots=True)
class ChannelHistory:
    """What one channel got along a line of checkpoints.

    Args:
        writes: Oldest checkpoint first; those of one checkpoint in no order but together.
        seed: The value of the nearest ancestor that has one, at which the line ends.
    """

    writes: Sequence[Sequence[LoadedWrite]]
    seed: Encoded | None


class CheckpointRecord(TypedDict):
    """A checkpoint as `MySQLCheckpointSaver.get` gives it."""

    checkpoint_id: str
    parent_checkpoint_id: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str


class WriteRecord(TypedDict):
    """A write as `MySQLCheckpointSaver.get_writes` gives it."""

    task_id: str
    idx: int
    channel: str
    value: Any
