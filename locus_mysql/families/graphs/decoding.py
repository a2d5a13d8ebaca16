"""Checkpoints and writes from the rows that were read, and values from their parts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from zlib import crc32

from ...engine.operation import read_rows
from ...errors import CorruptCheckpoint
from ...runtime.server_rows import aware
from .payload import (
    Content,
    RowIdentity,
    StoredThread,
    checkpoint_identity,
    naming_checkpoint,
    unpack,
    unpack_write,
    unseal,
    write_identity,
)
from .records import LabelledValue, LoadedGraphCheckpoint, LoadedWrite
from .statements import loading, tables
from .statements.loading import AncestorRow, LoadedCheckpointRow, LoadedWriteRow
from .values import Body, EncodedValue, Inline, Link, Stored, seen_bytes


class WriteColumns(Protocol):
    """The columns of a write, in rows of any statement."""

    @property
    def task_id(self) -> str: ...  # noqa: D102 - see the class
    @property
    def idx(self) -> int: ...  # noqa: D102 - see the class
    @property
    def channel(self) -> str: ...  # noqa: D102 - see the class
    @property
    def task_path(self) -> str: ...  # noqa: D102 - see the class
    @property
    def payload(self) -> bytes: ...  # noqa: D102 - see the class


class Decoded(NamedTuple):
    """A checkpoint that was read, its row, and the content of the row's payload."""

    loaded: LoadedGraphCheckpoint
    row: LoadedCheckpointRow
    content: Content


def decode_checkpoints(
    thread: StoredThread,
    checkpoint_id: str | None,
    rows: Sequence[loading.LoadedRow],
    parts: Parts,
    cached_epoch: bytes | None,
) -> list[Decoded]:
    """Return the checkpoints of a result, newest first.

    Args:
        thread: The thread.
        checkpoint_id: The id of the checkpoints, if all have the same.
        rows: The rows.
        parts: The cached parts, to which the parts of the result are added. Cached parts are dropped if the thread's
            epoch has changed, as the server then sent all.
        cached_epoch: The epoch for which the server left out the cached parts, if it did.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    checkpoints = read_rows(LoadedCheckpointRow, [row for row in rows if row.kind == loading.CHECKPOINT])
    checkpoints.sort(key=lambda row: -row.seq)
    if cached_epoch is None or any(row.epoch != cached_epoch for row in checkpoints):
        parts.forget()
    for part in read_rows(loading.LoadedPartRow, [row for row in rows if row.kind == loading.PART]):
        parts.sealed[part.number] = part.chunk
    own = _writes_by_checkpoint(row for row in rows if row.kind == loading.WRITE)
    parents = _writes_by_checkpoint(row for row in rows if row.kind == loading.PARENTS_WRITE)
    decoded = []
    for row in checkpoints:
        with naming_checkpoint(thread.thread_id, checkpoint_id or row.checkpoint_id):
            content = _content(thread, row)
            writes = decode_writes(thread, row.checkpoint_key, own.get(row.checkpoint_key, ()))
            parents_writes = decode_writes(thread, row.parent_key, parents.get(row.checkpoint_key, ()))
        decoded.append(Decoded(_loaded(row, content, parts, writes, parents_writes), row, content))
    return decoded


def decode_writes(
    thread: StoredThread,
    checkpoint_key: bytes | None,
    rows: Iterable[WriteColumns],
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


def _writes_by_checkpoint(rows: Iterable[loading.LoadedRow]) -> Mapping[bytes, Sequence[LoadedWriteRow]]:
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
    checkpoint_key = tables.checkpoint_key(row.ns, row.checkpoint_id)
    parent_key = None if row.parent_id is None else tables.checkpoint_key(row.ns, row.parent_id)
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
            return {name: parts.encoded(labelled.value) for name, labelled in content.values.items()}

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
        labels={name: labelled.label for name, labelled in content.values.items()},
        values=values,
        value=value,
        metadata=row.metadata,
        created_at=aware(row.created_at),
        writes=writes,
        parents_writes=parents_writes,
    )


@dataclass(slots=True)
class Parts:
    """The parts of one thread that were read, or that cached bodies contain.

    Args:
        identity: The identity of the thread's parts.
        sealed: Parts by number, as stored in their table.
        verified: Unsealed parts that match a link.
        bodies: Cached bodies by the parts they are made of.
        covered: By the number of a part, a cached body that contains it, and its position there.
    """

    identity: RowIdentity
    sealed: dict[int, bytes] = field(default_factory=dict)
    verified: dict[Link, bytes | memoryview] = field(default_factory=dict)
    bodies: dict[tuple[Link, ...], Body] = field(default_factory=dict)
    covered: dict[int, tuple[Body, Link]] = field(default_factory=dict)

    def add_cached(self, values: Mapping[str, LabelledValue], bodies: Mapping[str, Body]) -> list[int]:
        """Add cached bodies; return the parts that need not be read, because a body contains them whole."""
        numbers: list[int] = []
        for name, body in bodies.items():
            value = values[name].value
            if isinstance(value, Stored):
                self.bodies[value.chain] = body
                for index, link in enumerate(value.chain):
                    if seen_bytes(value.chain, index) >= link.length:
                        self.covered[link.part] = body, link
                        numbers.append(link.part)
        return numbers

    def body(self, value: Stored) -> Body:
        """The body of a value.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        cached = self.bodies.get(value.chain)
        if cached is not None:
            return cached
        pieces: list[bytes | memoryview] = []
        end = value.length
        for link in reversed(value.chain):
            if link.start < end:
                if link.length < end:
                    break
                chunk = self._chunk(link)
                pieces.append(chunk if link.length == end else memoryview(chunk)[: end - link.start])
                end = link.start
        if end:
            raise CorruptCheckpoint("Its parts do not fit together.")
        return Body(b"".join(pieces[::-1]), digest=value.digest)

    def encoded(self, value: Inline | Stored) -> EncodedValue:
        """Assemble a value."""
        if isinstance(value, Inline):
            return value.value
        return EncodedValue(value.kind, b"".join((value.front, *self.body(value).pieces, value.back)))

    def _chunk(self, link: Link) -> bytes | memoryview:
        chunk = self.verified.get(link)
        if chunk is None and link.part in self.covered:
            body, covered = self.covered[link.part]
            if covered == link:
                chunk = self.verified[link] = body.cut(link.start, link.length)
        if chunk is None:
            if link.part not in self.sealed:
                raise CorruptCheckpoint(f"Its part {link.part} is missing.")
            chunk = unseal(self.sealed[link.part], self.identity)
            if len(chunk) != link.length - link.start or crc32(chunk) != link.checksum:
                raise CorruptCheckpoint(f"Its part {link.part} has other content than when it was saved.")
            self.verified[link] = chunk
        return chunk

    def forget(self) -> None:
        """Forget the cached bodies."""
        self.bodies.clear()
        self.covered.clear()

    def contradicts(self, contents: Iterable[Content]) -> bool:
        """Return whether checkpoints refer to other parts under the numbers of cached ones.

        If so, the server lost the commits of the cached parts, and assigned their numbers again.
        """
        return any(
            link.part in self.covered and self.covered[link.part][1] != link
            for content in contents
            for _, value in content.values.values()
            if isinstance(value, Stored)
            for link in value.chain
        )
