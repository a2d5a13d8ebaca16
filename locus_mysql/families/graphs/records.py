"""Data types of the operations' arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from .values import Body, EncodedValue, Grown, Value


class LabelledValue(NamedTuple):
    """A value of a stored checkpoint.

    Args:
        label: The version assigned by the class that saved it; any JSON value.
        value: Its stored form.
    """

    label: Any
    value: Value


@dataclass(frozen=True, slots=True)
class Base:
    """A stored checkpoint that a new one may build on.

    Args:
        epoch: The thread's epoch when it was read. Its parts exist as long as the thread has it and its own row exists.
        checkpoint_key: Its key.
        token: The mark of the save that wrote it. A server that lost its newest commits does not have it.
        values: Its values by name.
        bodies: Bodies of large values, as far as they are cached.
        snapshots: Values of which only snapshots are stored, as `Content` has them.
    """

    epoch: bytes
    checkpoint_key: bytes
    token: bytes
    values: Mapping[str, LabelledValue]
    bodies: Mapping[str, Body]
    snapshots: frozenset[str] = frozenset()


class NewValue(NamedTuple):
    """A value of a new checkpoint.

    Args:
        name: Its name.
        label: The version assigned by the class that saves it; any JSON value.
        encoded: Its bytes; None to keep the base's.
    """

    name: str
    label: Any
    encoded: EncodedValue | Grown | None


@dataclass(frozen=True, slots=True)
class NewGraphCheckpoint:
    """A checkpoint to save.

    Args:
        codec: The class that encodes it; the same one decodes it.
        ns: Its namespace, of any length.
        checkpoint_id: Its id.
        parent_id: The id of its parent, in the same namespace; it need not exist.
        head: Everything except its values.
        values: From the base, if there is one, the values in their order.
        metadata: JSON text for queries.
        run_id: The run that made it.
        needs: 0 if it needs nothing of its parent, 1 if all of it, 2 if its writes.
        replace: Whether a checkpoint of the same id is replaced; otherwise the save is refused.
        token: The save's mark, 16 random bytes.
        digest: A digest of its content, in 15 bytes, if an identical save is to be accepted; otherwise empty.
        snapshots: Its values that are snapshots: later checkpoints may lack the value and need this one for it.
        counted: Values for which the saving class decides whether the checkpoint needs its parent.
    """

    codec: str
    ns: str
    checkpoint_id: str
    parent_id: str | None
    head: EncodedValue
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
    value: EncodedValue


@dataclass(frozen=True, slots=True)
class LoadedGraphCheckpoint:
    """A checkpoint that was read.

    Args:
        codec: The class that encoded it.
        thread_id: Its thread.
        ns: Its namespace.
        checkpoint_id: Its id.
        parent_id: The id of its parent.
        head: Everything except its values.
        labels: The versions of its values by name.
        values: Assembles its values, by name in their order.
        value: Assembles one of them.
        metadata: JSON text, or None.
        created_at: When the server received it, in UTC.
        writes: Writes of its tasks, unordered.
        parents_writes: The writes at its parent, if it needs them.
    """

    codec: str
    thread_id: str
    ns: str
    checkpoint_id: str
    parent_id: str | None
    head: EncodedValue
    labels: Mapping[str, Any]
    values: Callable[[], dict[str, EncodedValue]]
    value: Callable[[str], EncodedValue]
    metadata: str | None
    created_at: datetime
    writes: Sequence[LoadedWrite]
    parents_writes: Sequence[LoadedWrite]


@dataclass(frozen=True, slots=True)
class ChannelHistory:
    """The writes to one channel along a chain of checkpoints.

    Args:
        writes: Oldest checkpoint first; those of one checkpoint are together, unordered.
        seed: The value of the nearest ancestor that has one, at which the chain ends.
    """

    writes: Sequence[Sequence[LoadedWrite]]
    seed: EncodedValue | None


class CheckpointRecord(TypedDict):
    """A checkpoint as `MySQLCheckpointSaver.get` returns it."""

    checkpoint_id: str
    checkpoint_ns: str
    parent_checkpoint_id: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str


class WriteRecord(TypedDict):
    """A write as `MySQLCheckpointSaver.get_writes` returns it."""

    task_id: str
    idx: int
    channel: str
    value: Any
