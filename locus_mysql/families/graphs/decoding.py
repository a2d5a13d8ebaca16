"""Checkpoints and writes from the rows that were read. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...dialect.graphs import result_rows
from ...dialect.graphs.previews import StoppedRow
from ...dialect.graphs.result_rows import (
    AncestorRow,
    AncestorsWriteRow,
    LoadedCheckpointRow,
    LoadedWriteRow,
    TaskWriteRow,
)
from ...engine.operation import read_rows
from ...errors import CorruptCheckpoint
from ...runtime.server_times import aware
from . import keys
from .damage import naming_checkpoint
from .parts import Parts
from .payload import Content, unpack, unpack_write
from .records import LoadedGraphCheckpoint, LoadedWrite
from .sealed_rows import StoredThread, checkpoint_identity, write_identity
from .values import EncodedValue


class Decoded(NamedTuple):
    """A checkpoint that was read, its row, and the content of the row's payload."""

    loaded: LoadedGraphCheckpoint
    row: LoadedCheckpointRow
    content: Content


def decode_checkpoints(
    thread: StoredThread,
    checkpoint_id: str | None,
    rows: Sequence[result_rows.LoadedRow],
    parts: Parts,
    known_epoch: bytes | None,
) -> list[Decoded]:
    """Return the checkpoints of a result, newest first.

    Args:
        thread: The thread.
        checkpoint_id: The id of the checkpoints, if all have the same.
        rows: The rows.
        parts: The cached parts, to which the parts of the result are added. Cached parts are dropped if the thread's
            epoch has changed, as the server then sent all.
        known_epoch: The epoch for which the server left out the cached parts, if it did.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    found = read_rows(LoadedCheckpointRow, [row for row in rows if row.kind == result_rows.CHECKPOINT])
    found.sort(key=lambda row: -row.seq)
    if known_epoch is None or any(row.epoch != known_epoch for row in found):
        parts.forget()
    for part in read_rows(result_rows.LoadedPartRow, [row for row in rows if row.kind == result_rows.PART]):
        parts.sealed[part.number] = part.chunk
    own = _writes_by_checkpoint(row for row in rows if row.kind == result_rows.WRITE)
    parents = _writes_by_checkpoint(row for row in rows if row.kind == result_rows.PARENTS_WRITE)
    decoded = []
    for row in found:
        with naming_checkpoint(thread.thread_id, checkpoint_id or row.checkpoint_id):
            content = _content(thread, row)
            writes = decode_writes(thread, row.checkpoint_key, own.get(row.checkpoint_key, ()))
            parents_writes = decode_writes(thread, row.parent_key, parents.get(row.checkpoint_key, ()))
        decoded.append(Decoded(_loaded(row, content, parts, writes, parents_writes), row, content))
    return decoded


def decode_writes(
    thread: StoredThread,
    checkpoint_key: bytes | None,
    rows: Iterable[LoadedWriteRow | AncestorsWriteRow | TaskWriteRow | StoppedRow],
) -> list[LoadedWrite]:
    """Return the writes at a checkpoint.

    Args:
        thread: The thread.
        checkpoint_key: The key of the checkpoint; None for writes of the parent if there is no parent.
        rows: Their rows.

    Raises:
        CorruptCheckpoint: A row is damaged, or belongs to another checkpoint.
    """
    if checkpoint_key is None:
        return []
    writes = []
    for row in rows:
        identity = write_identity(thread, checkpoint_key, row.task_id, row.idx, row.channel, row.task_path)
        value = unpack_write(row.payload, identity)
        writes.append(LoadedWrite(row.task_id, row.idx, row.channel, row.task_path, value))
    return writes


def ancestor_content(thread: StoredThread, row: AncestorRow) -> Content:
    """Return the content of an ancestor's payload.

    Args:
        thread: The thread.
        row: The ancestor's row.

    Raises:
        CorruptCheckpoint: The row is damaged, or belongs to another checkpoint.
    """
    identity = checkpoint_identity(thread, row.checkpoint_key, row.parent_key, row.needs, row.metadata)
    return unpack(row.payload, row.stored_seq, identity)


def _writes_by_checkpoint(rows: Iterable[result_rows.LoadedRow]) -> Mapping[bytes, Sequence[LoadedWriteRow]]:
    """Return rows of writes by the key of the checkpoint for which they were read."""
    writes: dict[bytes, list[LoadedWriteRow]] = {}
    for row in read_rows(LoadedWriteRow, list(rows)):
        writes.setdefault(row.checkpoint_key, []).append(row)
    return writes


def _content(thread: StoredThread, row: LoadedCheckpointRow) -> Content:
    """Return the content of a checkpoint's payload.

    Raises:
        CorruptCheckpoint: The row is damaged, or belongs to another checkpoint.
    """
    checkpoint_key = keys.checkpoint_key(row.ns, row.checkpoint_id)
    parent_key = None if row.parent_id is None else keys.checkpoint_key(row.ns, row.parent_id)
    if checkpoint_key != row.checkpoint_key or (row.needs == 2 and parent_key != row.parent_key):
        raise CorruptCheckpoint("Its row has the key of another checkpoint.")
    identity = checkpoint_identity(thread, checkpoint_key, parent_key, row.needs, row.metadata)
    return unpack(row.payload, row.stored_seq, identity)


def _loaded(
    row: LoadedCheckpointRow,
    content: Content,
    parts: Parts,
    writes: Sequence[LoadedWrite],
    parents_writes: Sequence[LoadedWrite],
) -> LoadedGraphCheckpoint:
    def values() -> dict[str, EncodedValue]:
        with naming_checkpoint(row.thread_id, row.checkpoint_id):
            return {name: parts.encoded(held.value) for name, held in content.values.items()}

    def value(name: str) -> EncodedValue:
        with naming_checkpoint(row.thread_id, row.checkpoint_id):
            return parts.encoded(content.values[name].value)

    return LoadedGraphCheckpoint(
        codec=content.codec,
        thread_id=row.thread_id,
        ns=row.ns,
        checkpoint_id=row.checkpoint_id,
        parent_id=None if row.unlinked else row.parent_id,
        head=content.head,
        labels={name: held.label for name, held in content.values.items()},
        values=values,
        value=value,
        metadata=row.metadata,
        created_at=aware(row.created_at),
        writes=writes,
        parents_writes=parents_writes,
    )
