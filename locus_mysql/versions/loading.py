"""Reading checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from ..dialect.versions import VersionDialect
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint
from . import keys
from .chains import Inline, Link, Stored, seen_bytes
from .memory import VersionMemory
from .payload import Content, unpack
from .records import Base, ChannelHistory, Held, LoadedVersion, LoadedWrite
from .sealed import unseal
from .values import Body, Encoded
from .writes import unpack_write

#: Ancestors that are read at a time.
ANCESTORS_PAGE = 256

_HEAD, _PART, _WRITE, _PARENTS_WRITE = range(4)


@dataclass(slots=True)
class Parts:
    """The parts that were read, and those that bodies at hand hold, of one thread.

    Args:
        sealed: Parts by number, as they stand in their table.
        opened: Parts by number, unsealed.
        bodies: Bodies at hand by the parts they are made of.
        held: For parts by number, a body at hand that holds them, and where.
    """

    sealed: dict[int, bytes] = field(default_factory=dict)
    opened: dict[int, bytes | memoryview] = field(default_factory=dict)
    bodies: dict[tuple[Link, ...], Body] = field(default_factory=dict)
    held: dict[int, tuple[Body, Link]] = field(default_factory=dict)

    def know(self, values: Mapping[str, Held], bodies: Mapping[str, Body]) -> list[int]:
        """Take note of bodies at hand; returns the parts that need not be read, as a body holds them whole."""
        numbers: list[int] = []
        for name, body in bodies.items():
            value = values[name].value
            if isinstance(value, Stored):
                self.bodies[value.chain] = body
                for index, link in enumerate(value.chain):
                    if seen_bytes(value.chain, index) >= link.length:
                        self.held[link.part] = body, link
                        numbers.append(link.part)
        return numbers

    def body(self, value: Stored) -> Body:
        """The body of a value.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        at_hand = self.bodies.get(value.chain)
        if at_hand is not None:
            return at_hand
        pieces: list[bytes | memoryview] = []
        end = value.length
        for link in reversed(value.chain):
            if link.start < end:
                chunk = self._chunk(link)
                pieces.append(chunk if link.length == end else memoryview(chunk)[: end - link.start])
                end = link.start
        if end:
            raise CorruptCheckpoint("The parts of a checkpoint do not fit together.")
        return Body(b"".join(pieces[::-1]), digest=value.digest)

    def encoded(self, value: Inline | Stored) -> Encoded:
        """A value put together."""
        if isinstance(value, Inline):
            return value.value
        return Encoded(value.kind, b"".join((value.front, *self.body(value).pieces, value.back)))

    def _chunk(self, link: Link) -> bytes | memoryview:
        chunk = self.opened.get(link.part)
        if chunk is None and link.part in self.held:
            body, place = self.held[link.part]
            chunk = self.opened[link.part] = body.cut(place.start, place.length)
        if chunk is None:
            if link.part not in self.sealed:
                raise CorruptCheckpoint(f"Part {link.part} of a checkpoint is gone.")
            chunk = self.opened[link.part] = unseal(self.sealed[link.part])
        if len(chunk) != link.length - link.start:
            raise CorruptCheckpoint(f"Part {link.part} of a checkpoint is of another length than it should be.")
        return chunk


class Loading:
    """Reads checkpoints and writes.

    Args:
        sql: The statements.
        memory: What the process remembers.
    """

    def __init__(self, sql: VersionDialect, memory: VersionMemory) -> None:
        self._sql = sql
        self._memory = memory

    def load(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None = None
    ) -> Operation[LoadedVersion | None]:
        """A checkpoint, or the newest of a namespace; None if there is none.

        One round trip. What the process has of the values is not sent again.
        """
        key = (tenant, thread_id)
        ns_key = keys.ns_key(ns)
        version_key = None if checkpoint_id is None else keys.version_key(ns, checkpoint_id)
        parts, known = self._at_hand(key, ns_key)
        (found,) = yield Batch.of(self._sql.loading.load(*key, ns_key, version_key, known))
        heads = _heads(found.rows)
        if not heads:
            return None
        parts = _of_epoch(parts, known, heads)
        version, content = _versions(found.rows, parts)[0]
        head = heads[0]
        bodies = {}
        for name, (_, value) in content.values.items():
            if isinstance(value, Stored):
                bodies[name] = parts.bodies[value.chain] = parts.body(value)
        kept = self._memory.bodies(key, ns_key, content.values)
        base = Base(cast(bytes, head[11]), cast(bytes, head[4]), content.values, {**bodies, **kept})
        self._memory.remember(key, ns_key, base)
        return version

    def page(
        self,
        tenant: str,
        thread_id: str,
        limit: int,
        *,
        ns: str | None = None,
        checkpoint_id: str | None = None,
        before: tuple[str, str, str | None] | None = None,
        before_seq: int | None = None,
        matching: str | None = None,
    ) -> Operation[tuple[list[LoadedVersion], int]]:
        """Checkpoints of a thread, newest first, and the seq of the last of them. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            limit: At most this many.
            ns: Only of this namespace.
            checkpoint_id: Only of this id.
            before: Namespace and id of a checkpoint: only those older; if it is not there, those with an id before
                the text.
            before_seq: Only those with a seq below.
            matching: Only those whose metadata contains this JSON.
        """
        parts: Parts = Parts()
        known: tuple[bytes, Sequence[int]] | None = None
        if ns is not None:
            parts, known = self._at_hand((tenant, thread_id), keys.ns_key(ns))
        statement = self._sql.loading.list(
            tenant,
            thread_id,
            limit,
            ns_key=None if ns is None else keys.ns_key(ns),
            checkpoint_id=checkpoint_id,
            before=None if before is None else (keys.version_key(before[0], before[1]), before[2]),
            before_seq=before_seq,
            matching=matching,
            known=known,
        )
        (found,) = yield Batch.of(statement)
        heads = _heads(found.rows)
        parts = _of_epoch(parts, known, heads)
        versions = [version for version, _ in _versions(found.rows, parts)]
        return versions, cast(int, heads[-1][2]) if heads else 0

    def keys(self, tenant: str, thread_id: str) -> Operation[set[bytes]]:
        """The keys of a thread's checkpoints. One round trip."""
        (found,) = yield Batch.of(self._sql.loading.keys(tenant, thread_id))
        return {cast(bytes, row[0]) for row in found.rows}

    def writes(
        self, tenant: str, thread_id: str, version_key: bytes, task_id: str | None
    ) -> Operation[list[LoadedWrite]]:
        """Writes at a checkpoint, or those of one task. One round trip."""
        task_key = None if task_id is None else keys.task_key(task_id)
        (found,) = yield Batch.of(self._sql.loading.writes(tenant, thread_id, version_key, task_key))
        return [
            LoadedWrite(*cast("tuple[str, int, str, str]", row[:4]), unpack_write(cast(bytes, row[4])))
            for row in found.rows
        ]

    def channel_history(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str, channels: Sequence[str]
    ) -> Operation[dict[str, ChannelHistory]]:
        """What channels got along the line of a checkpoint's ancestors, for each up to the nearest that has a value.

        One round trip for 256 ancestors, and one for the values found.
        """
        key = (tenant, thread_id)
        missing = set(channels)
        writes: dict[str, list[list[LoadedWrite]]] = {name: [] for name in channels}
        seeds: dict[str, Inline | Stored] = {}
        start: bytes | None = keys.version_key(ns, checkpoint_id)
        while start is not None and missing:
            (found,) = yield Batch.of(self._sql.loading.ancestors(*key, start, ANCESTORS_PAGE, sorted(missing)))
            start = None
            line = sorted((row for row in found.rows if row[0] == _HEAD), key=lambda row: cast(int, row[1]))
            by_depth: dict[int, list[LoadedWrite]] = {}
            for row in found.rows:
                if row[0] == _WRITE:
                    by_depth.setdefault(cast(int, row[1]), []).append(_write(row[4], row[2], row[5], row[6], row[7]))
            for row in line[1:]:
                depth = cast(int, row[1])
                for name in missing:
                    mine = [write for write in by_depth.get(depth, ()) if write.channel == name]
                    if mine:
                        writes[name].append(mine)
                held = unpack(cast(bytes, row[7]), cast(int, row[2])).values
                for name in [name for name in missing if name in held]:
                    seeds[name] = held[name].value
                    missing.discard(name)
                if not missing:
                    break
                if depth == ANCESTORS_PAGE:
                    start = cast(bytes, row[3])
        parts = Parts()
        numbers = [link.part for value in seeds.values() if isinstance(value, Stored) for link in value.chain]
        if numbers:
            (found,) = yield Batch.of(self._sql.loading.parts(*key, keys.ns_key(ns), numbers))
            parts.sealed = {cast(int, row[0]): cast(bytes, row[1]) for row in found.rows}
        return {
            name: ChannelHistory(writes[name][::-1], parts.encoded(seeds[name]) if name in seeds else None)
            for name in channels
        }

    def value(self, tenant: str, thread_id: str, ns: str, value: Inline | Stored) -> Operation[Encoded]:
        """One value of a checkpoint. One round trip, or none for a small one.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        parts = Parts()
        if isinstance(value, Stored):
            numbers = [link.part for link in value.chain]
            (found,) = yield Batch.of(self._sql.loading.parts(tenant, thread_id, keys.ns_key(ns), numbers))
            parts.sealed = {cast(int, row[0]): cast(bytes, row[1]) for row in found.rows}
        return parts.encoded(value)

    def _at_hand(self, key: tuple[str, str], ns_key: bytes) -> tuple[Parts, tuple[bytes, Sequence[int]] | None]:
        """The bodies that the process has of a namespace, and the epoch and numbers of their parts."""
        parts = Parts()
        base = self._memory.base(key, ns_key)
        if base is None or not base.bodies:
            return parts, None
        return parts, (base.epoch, parts.know(base.values, base.bodies))


def aware(value: object) -> datetime:
    """A time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def _heads(rows: Sequence[Row]) -> list[Row]:
    """The rows of checkpoints, newest first."""
    return sorted((row for row in rows if row[0] == _HEAD), key=lambda row: -cast(int, row[2]))


def _of_epoch(parts: Parts, known: tuple[bytes, Sequence[int]] | None, heads: Sequence[Row]) -> Parts:
    """The parts at hand, or none if the thread's epoch is another: then other parts may have their numbers."""
    return parts if known is not None and all(head[11] == known[0] for head in heads) else Parts()


def _versions(rows: Sequence[Row], parts: Parts) -> list[tuple[LoadedVersion, Content]]:
    """The checkpoints of a result, newest first."""
    writes: dict[tuple[object, object], list[LoadedWrite]] = {}
    for row in rows:
        if row[0] == _PART:
            parts.sealed[cast(int, row[3])] = cast(bytes, row[8])
        elif row[0] != _HEAD:
            write = _write(row[5], row[3], row[6], row[7], row[8])
            writes.setdefault((row[0], row[4]), []).append(write)
    versions = []
    for row in _heads(rows):
        _, thread_id, _, stored_seq, version_key, checkpoint_id, parent_id, ns, payload, metadata, created_at, _ = row
        content = unpack(cast(bytes, payload), cast(int, stored_seq))

        def values(content: Content = content) -> dict[str, Encoded]:
            return {name: parts.encoded(held.value) for name, held in content.values.items()}

        def value(name: str, content: Content = content) -> Encoded:
            return parts.encoded(content.values[name].value)

        version = LoadedVersion(
            surface=content.surface,
            thread_id=cast(str, thread_id),
            ns=cast(str, ns),
            checkpoint_id=cast(str, checkpoint_id),
            parent_id=cast("str | None", parent_id),
            head=content.head,
            labels={name: held.label for name, held in content.values.items()},
            values=values,
            value=value,
            metadata=cast("str | None", metadata),
            created_at=aware(created_at),
            writes=writes.get((_WRITE, version_key), []),
            parents_writes=writes.get((_PARENTS_WRITE, version_key), []),
        )
        versions.append((version, content))
    return versions


def _write(task_id: object, idx: object, channel: object, task_path: object, payload: object) -> LoadedWrite:
    return LoadedWrite(
        cast(str, task_id), cast(int, idx), cast(str, channel), cast(str, task_path), unpack_write(cast(bytes, payload))
    )
