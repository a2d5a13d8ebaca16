"""Reading checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias, cast

from ...dialect import Statement
from ...dialect.graphs import VersionDialect
from ...drivers.interface import Row
from ...engine.operation import Batch, Operation
from ...errors import CorruptCheckpoint
from ...runtime.answers import check_columns, typed_row
from . import keys
from .chains import Inline, Link, Stored, seen_bytes
from .damage import naming_checkpoint
from .payload import Content, unpack
from .places import text_checksum, version_place, write_place
from .records import Base, ChannelHistory, Held, LoadedVersion, LoadedWrite
from .sealed import checksum_of, thread_checksum, unseal
from .values import Body, Encoded
from .version_cache import VersionMemory
from .writes import unpack_write

#: Ancestors that are read at a time.
ANCESTORS_PAGE = 256

_HEAD, _PART, _WRITE, _PARENTS_WRITE = range(4)

#: The epoch of a thread, and the numbers of parts that need not be read as long as it lasts.
Known: TypeAlias = tuple[bytes, Sequence[int]]


class Head(NamedTuple):
    """A checkpoint's row as it is read; see `dialect.versions.loading`."""

    kind: int
    thread_id: str
    seq: int
    stored_seq: int
    version_key: bytes
    checkpoint_id: str
    parent_id: str | None
    ns: str
    payload: bytes
    metadata: str | None
    created_at: datetime
    epoch: bytes
    token: bytes
    flags: int
    parent_key: bytes | None

    @property
    def needs(self) -> int:
        """What the checkpoint needs of its parent."""
        return self.flags & 3

    @property
    def unlinked(self) -> bool:
        """Whether the parent was deleted and nothing of it is needed."""
        return self.flags > 3


class AncestorRow(NamedTuple):
    """The row of a checkpoint in a line of ancestors, as it is read; see `ANCESTORS`."""

    kind: int
    depth: int
    stored_seq: int
    version_key: bytes
    checkpoint_id: str
    text2: None
    text3: None
    payload: bytes
    parent_key: bytes | None
    needs: int
    metadata_checksum: int | None

    def content(self, thread: int) -> Content:
        """What the payload says.

        Args:
            thread: The thread's checksum.

        Raises:
            CorruptCheckpoint: The row is damaged, or is another's.
        """
        place = version_place(thread, self.version_key, self.parent_key, self.needs, self.metadata_checksum)
        return unpack(self.payload, self.stored_seq, place)


class WriteRow(NamedTuple):
    """The row of a write, as it is read."""

    task_id: str
    idx: int
    channel: str
    task_path: str
    payload: bytes

    def loaded(self, thread: int, version_key: bytes) -> LoadedWrite:
        """The write.

        Args:
            thread: The thread's checksum.
            version_key: The key of the checkpoint at which it is.

        Raises:
            CorruptCheckpoint: The row is damaged, or is another's.
        """
        place = write_place(thread, version_key, self.task_id, self.idx, self.channel, self.task_path)
        return LoadedWrite(self.task_id, self.idx, self.channel, self.task_path, unpack_write(self.payload, place))


@dataclass(slots=True)
class Parts:
    """The parts that were read, and those that bodies at hand hold, of one thread.

    Args:
        sealed: Parts by number, as they stand in their table.
        opened: Parts that were found to be those that a link means, unsealed.
        bodies: Bodies at hand by the parts they are made of.
        held: For parts by number, a body at hand that holds them, and where.
    """

    sealed: dict[int, bytes] = field(default_factory=dict)
    opened: dict[Link, bytes | memoryview] = field(default_factory=dict)
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
                if link.length < end:
                    break
                chunk = self._chunk(link)
                pieces.append(chunk if link.length == end else memoryview(chunk)[: end - link.start])
                end = link.start
        if end:
            raise CorruptCheckpoint("Its parts do not fit together.")
        return Body(b"".join(pieces[::-1]), digest=value.digest)

    def encoded(self, value: Inline | Stored) -> Encoded:
        """A value put together."""
        if isinstance(value, Inline):
            return value.value
        return Encoded(value.kind, b"".join((value.front, *self.body(value).pieces, value.back)))

    def _chunk(self, link: Link) -> bytes | memoryview:
        chunk = self.opened.get(link)
        if chunk is None and link.part in self.held:
            body, held = self.held[link.part]
            if held == link:
                chunk = self.opened[link] = body.cut(link.start, link.length)
        if chunk is None:
            if link.part not in self.sealed:
                raise CorruptCheckpoint(f"Part {link.part} of it is gone.")
            sealed = self.sealed[link.part]
            chunk = unseal(sealed)
            if len(chunk) != link.length - link.start or checksum_of(sealed) != link.checksum:
                raise CorruptCheckpoint(f"Part {link.part} of it has other content than it had when it was saved.")
            self.opened[link] = chunk
        return chunk

    def forget(self) -> None:
        """Forget the bodies at hand."""
        self.bodies.clear()
        self.held.clear()

    def contradicts(self, contents: Iterable[Content]) -> bool:
        """Whether checkpoints refer to other parts under the numbers of those at hand.

        Then the server lost the commits from which those are, and has drawn their numbers again.
        """
        return any(
            link.part in self.held and self.held[link.part][1] != link
            for content in contents
            for _, value in content.values.values()
            if isinstance(value, Stored)
            for link in value.chain
        )


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

        def statement(known: Known | None) -> Statement:
            return self._sql.loading.load(*key, ns_key, version_key, known)

        found, parts = yield from self._read(key, ns_key, checkpoint_id, statement)
        if not found:
            return None
        version, head, content = found[0]
        bodies = {}
        with naming_checkpoint(thread_id, head.checkpoint_id):
            for name, (_, value) in content.values.items():
                if isinstance(value, Stored):
                    bodies[name] = parts.bodies[value.chain] = parts.body(value)
        kept = self._memory.bodies(key, ns_key, content.values)
        base = Base(head.epoch, head.version_key, head.token, content.values, {**bodies, **kept}, content.snapshots)
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
        before: tuple[str, str] | None = None,
        before_id: str | None = None,
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
            before: Namespace and id of a checkpoint: only those stored before it; none if it does not exist.
            before_id: Only those whose id is less than this one, in the order of code points.
            before_seq: Only those with a seq below.
            matching: Only those whose metadata contains this JSON.
        """
        ns_key = None if ns is None else keys.ns_key(ns)

        def statement(known: Known | None) -> Statement:
            return self._sql.loading.list(
                tenant,
                thread_id,
                limit,
                ns_key=ns_key,
                checkpoint_id=checkpoint_id,
                before=None if before is None else keys.version_key(*before),
                before_id=before_id,
                before_seq=before_seq,
                matching=matching,
                known=known,
            )

        found, _ = yield from self._read((tenant, thread_id), ns_key, checkpoint_id, statement)
        return [one.version for one in found], found[-1].head.seq if found else 0

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
        thread = thread_checksum(tenant, thread_id)
        return [typed_row(WriteRow, row).loaded(thread, version_key) for row in found.rows]

    def channel_history(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str, channels: Sequence[str]
    ) -> Operation[dict[str, ChannelHistory]]:
        """What channels got along the line of a checkpoint's ancestors, for each up to the nearest that has a value.

        One round trip for 256 ancestors, and one for the values found. Ends where a line of ancestors comes back to a
        checkpoint it has passed, as it does if that was saved again under another parent.
        """
        key = (tenant, thread_id)
        missing = set(channels)
        writes: dict[str, list[list[LoadedWrite]]] = {name: [] for name in channels}
        seeds: dict[str, Inline | Stored] = {}
        seeded_at: dict[str, str] = {}
        thread = thread_checksum(*key)
        start: bytes | None = keys.version_key(ns, checkpoint_id)
        passed = {start}
        while start is not None and missing:
            (found,) = yield Batch.of(self._sql.loading.ancestors(*key, start, ANCESTORS_PAGE, sorted(missing)))
            start = None
            check_columns(found.rows, len(AncestorRow._fields))
            line = [typed_row(AncestorRow, row) for row in found.rows if row[0] == _HEAD]
            line.sort(key=lambda row: row.depth)
            for row in line[:1]:  # its values are not needed, but it leads to its parent
                with naming_checkpoint(thread_id, row.checkpoint_id):
                    row.content(thread)
            names: dict[object, str] = {row.depth: row.checkpoint_id for row in line}
            by_depth: dict[int, list[LoadedWrite]] = {}
            for found_row in found.rows:
                if found_row[0] == _WRITE:
                    _, depth, idx, version_key, task_id, *rest = found_row[:8]
                    with naming_checkpoint(thread_id, names.get(depth, "?")):
                        write = typed_row(WriteRow, (task_id, idx, *rest)).loaded(thread, cast(bytes, version_key))
                    by_depth.setdefault(cast(int, depth), []).append(write)
            for row in line[1:]:
                depth, version_key = row.depth, row.version_key
                if version_key in passed:
                    break
                passed.add(version_key)
                for name in missing:
                    mine = [write for write in by_depth.get(depth, ()) if write.channel == name]
                    if mine:
                        writes[name].append(mine)
                with naming_checkpoint(thread_id, row.checkpoint_id):
                    held = row.content(thread).values
                for name in [name for name in missing if name in held]:
                    seeds[name], seeded_at[name] = held[name].value, row.checkpoint_id
                    missing.discard(name)
                if not missing:
                    break
                if depth == ANCESTORS_PAGE:
                    start = version_key
        parts = Parts()
        numbers = [link.part for value in seeds.values() if isinstance(value, Stored) for link in value.chain]
        if numbers:
            (found,) = yield Batch.of(self._sql.loading.parts(*key, keys.ns_key(ns), numbers))
            parts.sealed = {cast(int, row[0]): cast(bytes, row[1]) for row in found.rows}
        values: dict[str, Encoded] = {}
        for name, seed in seeds.items():
            with naming_checkpoint(thread_id, seeded_at[name]):
                values[name] = parts.encoded(seed)
        return {name: ChannelHistory(writes[name][::-1], values.get(name)) for name in channels}

    def _read(
        self,
        key: tuple[str, str],
        ns_key: bytes | None,
        checkpoint_id: str | None,
        statement: Callable[[Known | None], Statement],
    ) -> Operation[tuple[list[Read], Parts]]:
        """The checkpoints that a statement finds, newest first, and their parts.

        One round trip; another one if the parts at hand are of commits that the server lost.

        Args:
            key: Tenant and thread.
            ns_key: The namespace whose parts at hand are not read again; None to read all.
            checkpoint_id: The id of the checkpoints, if the statement finds those of one id only.
            statement: The statement, given what is known.
        """
        parts, known = (Parts(), None) if ns_key is None else self._at_hand(key, ns_key)
        (found,) = yield Batch.of(statement(known))
        read = _versions(key, checkpoint_id, found.rows, parts, known)
        if known is not None and parts.contradicts(one.content for one in read):
            parts = Parts()
            (found,) = yield Batch.of(statement(None))
            read = _versions(key, checkpoint_id, found.rows, parts, None)
        return read, parts

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

    def _at_hand(self, key: tuple[str, str], ns_key: bytes) -> tuple[Parts, Known | None]:
        """The bodies that the process has of a namespace, and the epoch and numbers of their parts."""
        parts = Parts()
        base = self._memory.base(key, ns_key)
        if base is None or not base.bodies:
            return parts, None
        return parts, (base.epoch, parts.know(base.values, base.bodies))


def aware(value: object) -> datetime:
    """A time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


class Read(NamedTuple):
    """A checkpoint that was read, its row, and what the row's payload says."""

    version: LoadedVersion
    head: Head
    content: Content


def _versions(
    key: tuple[str, str], checkpoint_id: str | None, rows: Sequence[Row], parts: Parts, known: Known | None
) -> list[Read]:
    """The checkpoints of a result, newest first.

    Args:
        key: Tenant and thread.
        checkpoint_id: The id of the checkpoints, if all have the same.
        rows: The rows.
        parts: Those at hand; they are dropped if the thread's epoch is another, as then the server sent all. The parts
            of the result are added.
        known: What the server was told to leave out.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    check_columns(rows, len(Head._fields))
    heads = sorted((typed_row(Head, row) for row in rows if row[0] == _HEAD), key=lambda head: -head.seq)
    if known is None or any(head.epoch != known[0] for head in heads):
        parts.forget()
    thread = thread_checksum(*key)
    by_version: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        if row[0] == _PART:
            parts.sealed[cast(int, row[3])] = cast(bytes, row[8])
        elif row[0] != _HEAD:
            by_version.setdefault((row[0], row[4]), []).append(row)
    read = []
    for head in heads:
        with naming_checkpoint(key[1], checkpoint_id or head.checkpoint_id):
            content = _content(thread, head)
            writes = _writes(thread, head.version_key, by_version.get((_WRITE, head.version_key), ()))
            parents_writes = _writes(thread, head.parent_key, by_version.get((_PARENTS_WRITE, head.version_key), ()))
        read.append(Read(_version(head, content, parts, writes, parents_writes), head, content))
    return read


def _content(thread: int, head: Head) -> Content:
    """What a checkpoint's payload says.

    Raises:
        CorruptCheckpoint: The row is damaged, or is another's.
    """
    version_key = keys.version_key(head.ns, head.checkpoint_id)
    parent_key = None if head.parent_id is None else keys.version_key(head.ns, head.parent_id)
    if version_key != head.version_key or (head.needs == 2 and parent_key != head.parent_key):
        raise CorruptCheckpoint("Its row has the key of another one.")
    place = version_place(thread, version_key, parent_key, head.needs, text_checksum(head.metadata))
    return unpack(head.payload, head.stored_seq, place)


def _version(
    head: Head,
    content: Content,
    parts: Parts,
    writes: Sequence[LoadedWrite],
    parents_writes: Sequence[LoadedWrite],
) -> LoadedVersion:
    def values() -> dict[str, Encoded]:
        with naming_checkpoint(head.thread_id, head.checkpoint_id):
            return {name: parts.encoded(held.value) for name, held in content.values.items()}

    def value(name: str) -> Encoded:
        with naming_checkpoint(head.thread_id, head.checkpoint_id):
            return parts.encoded(content.values[name].value)

    return LoadedVersion(
        surface=content.surface,
        thread_id=head.thread_id,
        ns=head.ns,
        checkpoint_id=head.checkpoint_id,
        parent_id=None if head.unlinked else head.parent_id,
        head=content.head,
        labels={name: held.label for name, held in content.values.items()},
        values=values,
        value=value,
        metadata=head.metadata,
        created_at=aware(head.created_at),
        writes=writes,
        parents_writes=parents_writes,
    )


def _writes(thread: int, version_key: bytes | None, rows: Sequence[Row]) -> list[LoadedWrite]:
    """The writes at a checkpoint, from rows of a result with checkpoints."""
    if version_key is None or not rows:
        return []
    return [typed_row(WriteRow, (row[5], row[3], row[6], row[7], row[8])).loaded(thread, version_key) for row in rows]
