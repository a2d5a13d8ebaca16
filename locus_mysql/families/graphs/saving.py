"""Saving checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.graphs import VersionDialect, VersionRow, WriteRow
from ...dialect.graphs.rows import APART, OWN_CHUNK_BYTES, OWN_PARTS, BaseKey
from ...dialect.graphs.saving import new_token
from ...engine.logs import HOUSEKEEPING, told
from ...engine.operation import Batch, Duplicate, Operation, Outdated
from ...errors import CheckpointExists, LocusMySQLError
from ...runtime.answers import typed_row
from ...runtime.sampling import one_in
from . import keys
from .chains import Inline, Stored, store
from .damage import naming_checkpoint
from .payload import Content, pack, resolved, unpack
from .places import text_checksum, version_place, write_place
from .records import Base, Held, LoadedWrite, NewVersion
from .sealed import seal, thread_checksum
from .values import Body, Encoded
from .version_cache import VersionMemory
from .writes import pack_write

#: One call in this many that stores writes is followed by some housekeeping.
HOUSEKEEPING_EVERY = 64


class BaseRow(NamedTuple):
    """The row of a checkpoint to go on from, as it is read."""

    stored_seq: int
    payload: bytes
    epoch: bytes
    token: bytes
    parent_key: bytes | None
    needs: int
    metadata_checksum: int | None


class Saving:
    """Saves checkpoints and writes.

    Args:
        config: The options.
        sql: The statements.
        memory: What the process remembers.
    """

    def __init__(self, config: MySQLConfig, sql: VersionDialect, memory: VersionMemory) -> None:
        self._config = config
        self._sql = sql
        self._memory = memory
        self._ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    def save(self, tenant: str, thread_id: str, new: NewVersion, base: Base | None) -> Operation[None]:
        """Store a checkpoint as the newest of its thread.

        One round trip. More if something was removed from the thread since the base was read, or if the id is taken.

        Raises:
            CheckpointExists: The id is taken, by other content, and the new one must not replace it.
        """
        key = (tenant, thread_id)
        ns_key = keys.ns_key(new.ns)
        epoch = self._memory.epoch(key) if base is None else base.epoch
        row, content, bodies, after = self._encode(key, new, base)
        landed = self._sql.saving.find_saved(*key, row.version_key, new.token)
        if epoch and self._ttl_us is None and self._memory.may_share(key) and _holds_its_part(row):
            try:
                results = yield Batch((self._sql.saving.insert_next(*key, epoch, row, after),), landed)
            except Duplicate as refused:
                if (yield from self._is_saved(key, row, new)):
                    return
                if not new.replace:
                    yield from self._settle_late(refused, tenant, new.token)
                    raise _taken(thread_id, new) from None
            else:
                if results.landed is not None:  # an earlier try had been carried out, and perhaps replaced since
                    self._memory.forget(key)
                    return
                if results[0].affected:
                    known = resolved(content.values, results[0].last_insert_id)
                    saved = Base(epoch, row.version_key, new.token, known, bodies, content.snapshots)
                    self._memory.remember(key, ns_key, saved)
                    return
        while True:
            begun = time.monotonic()
            took, statements = self._take_seq(key, epoch, after)
            statements += self._sql.saving.insert(*key, row, in_epoch=bool(epoch), replace=new.replace)
            if not epoch:
                statements += (self._sql.threads.epoch(*key),)
            try:
                results = yield Batch(statements, landed)
            except Outdated:
                self._memory.forget(key)
                epoch = None
                base = yield from self.find_base(tenant, thread_id, new.ns, new.parent_id)
                if base is not None:
                    epoch = base.epoch
                row, content, bodies, after = self._encode(key, new, base)
                continue
            except Duplicate as refused:
                if (yield from self._is_saved(key, row, new)):
                    return
                yield from self._settle_late(refused, tenant, new.token)
                raise _taken(thread_id, new) from None
            break
        if results.landed is not None:
            self._memory.forget(key)
            return
        if not epoch:
            epoch = cast(bytes, results[-1].rows[0][0])
        known = resolved(content.values, APART + results[took].last_insert_id)
        self._memory.remember(key, ns_key, Base(epoch, row.version_key, new.token, known, bodies, content.snapshots))
        self._memory.locked(key, begun)

    def _settle_late(self, refused: Duplicate, tenant: str, token: bytes) -> Operation[None]:
        """After a save that was refused: make sure that a first try which arrives late is refused too."""
        if refused.fate_unknown:
            ledger = self._sql.ledger
            yield Batch((ledger.settle(tenant, token),), ledger.find(tenant, token))

    def find_base(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None) -> Operation[Base | None]:
        """What a checkpoint that follows this one can go on from; None if there is none.

        One round trip; none if the process knows it.
        """
        if checkpoint_id is None:
            return None
        key = (tenant, thread_id)
        ns_key, version_key = keys.ns_key(ns), keys.version_key(ns, checkpoint_id)
        known = self._memory.base(key, ns_key, version_key)
        if known is not None:
            return known
        (found,) = yield Batch.of(self._sql.loading.base(*key, version_key))
        if not found.rows:
            return None
        with naming_checkpoint(thread_id, checkpoint_id):
            row = typed_row(BaseRow, found.rows[0])
            thread = thread_checksum(*key)
            place = version_place(thread, version_key, row.parent_key, row.needs, row.metadata_checksum)
            content = unpack(row.payload, row.stored_seq, place)
        bodies = self._memory.bodies(key, ns_key, content.values)
        return Base(row.epoch, version_key, row.token, content.values, bodies, content.snapshots)

    def newest_known(self, tenant: str, thread_id: str, ns: str) -> Base | None:
        """The checkpoint of a namespace that this process saved or loaded last."""
        return self._memory.base((tenant, thread_id), keys.ns_key(ns))

    def put_writes(
        self,
        tenant: str,
        thread_id: str,
        version_key: bytes,
        task_id: str,
        writes: Sequence[LoadedWrite],
        *,
        replace: bool,
    ) -> Operation[None]:
        """Store writes of a task. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            version_key: The checkpoint; it need not be there yet.
            task_id: The task.
            writes: The writes.
            replace: Whether those that exist are replaced; else only those with an index below 0.
        """
        if not writes:
            return
        token = new_token()
        task_key = keys.task_key(task_id)
        thread = thread_checksum(tenant, thread_id)

        def payload(write: LoadedWrite) -> bytes:
            place = write_place(thread, version_key, task_id, write.idx, write.channel, write.task_path)
            return pack_write(write.value, self._compression, place)

        rows = [
            WriteRow(task_key, write.idx, task_id, write.task_path, write.channel, payload(write)) for write in writes
        ]
        sql = self._sql.saving
        yield Batch(
            (sql.insert_writes(tenant, thread_id, version_key, token, rows, replace=replace),), sql.find_written(token)
        )
        yield from self._housekeeping()

    def _housekeeping(self) -> Operation[None]:
        """Now and then: forget some tokens.

        The writes have been stored by then, so a failure is only logged, and another call does what was not done.
        """
        if not one_in(HOUSEKEEPING_EVERY):
            return
        try:
            yield Batch((self._sql.saving.forget_written(), self._sql.ledger.forget_old()), atomic=False)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("Writes were stored, but the housekeeping after it failed: %s.", told(error))

    @property
    def _compression(self) -> Literal["zlib", "none"]:
        return self._config.compression

    def _is_saved(self, key: tuple[str, str], row: VersionRow, new: NewVersion) -> Operation[bool]:
        """Whether the row whose id is taken is this save's, or has the same content."""
        (found,) = yield Batch.of(self._sql.saving.find_saved(*key, row.version_key, new.digest or new.token))
        return bool(found.rows)

    def _take_seq(
        self, key: tuple[str, str], epoch: bytes | None, after: BaseKey | None
    ) -> tuple[int, tuple[Statement, ...]]:
        """The statements that take the next number, and the place of the one that does."""
        if epoch:
            return 0, (self._sql.threads.take_seq_in_epoch(*key, epoch, self._ttl_us, after),)
        settle = self._sql.ledger.settle_expired(*key)
        statements = self._sql.threads.take_seq(*key, os.urandom(8), self._ttl_us, settle)
        return len(statements) - 1, statements

    def _encode(
        self, key: tuple[str, str], new: NewVersion, base: Base | None
    ) -> tuple[VersionRow, Content, dict[str, Body], BaseKey | None]:
        """The row of a checkpoint, what its payload says, the bodies of its large values, and the base it builds on."""
        values: dict[str, Held] = {}
        bodies: dict[str, Body] = {}
        chunks: list[bytes] = []
        snapshots = set(new.snapshots)
        for name, label, encoded in new.values(base):
            before = base.values.get(name) if base is not None else None
            body = base.bodies.get(name) if base is not None else None
            if encoded is None:
                assert before is not None  # noqa: S101 - only a value of the base is kept
                values[name] = Held(label, before.value)
                if base is not None and name in base.snapshots:
                    snapshots.add(name)
            elif len(chunks) == OWN_PARTS:
                values[name], body = Held(label, Inline(Encoded(encoded.kind, encoded.data))), None
            else:
                stored = store(encoded, None if before is None else before.value, body, len(chunks))
                values[name], body = Held(label, stored.value), stored.body
                if stored.chunk is not None:
                    checksum = stored.value.chain[-1].checksum if isinstance(stored.value, Stored) else None
                    chunks.append(seal(stored.chunk, self._config.compression, checksum=checksum))
            if body is not None:
                bodies[name] = body
        if base is not None:
            snapshots |= base.snapshots - values.keys() - new.counted
        content = Content(new.surface, new.head, values, frozenset(snapshots))
        parent_key = None if new.parent_id is None else keys.version_key(new.ns, new.parent_id)
        version_key = keys.version_key(new.ns, new.checkpoint_id)
        needs = 0 if parent_key is None else new.needs if snapshots <= values.keys() else 1
        place = version_place(thread_checksum(*key), version_key, parent_key, needs, text_checksum(new.metadata))
        parts = _parts(values)
        row = VersionRow(
            ns_key=keys.ns_key(new.ns),
            version_key=version_key,
            parent_key=parent_key,
            checkpoint_id=new.checkpoint_id,
            parent_id=new.parent_id,
            ns=new.ns,
            needs=needs,
            sources=json.dumps(parts, separators=(",", ":")),
            tokens=new.token + new.digest,
            payload=pack(content, self._config.compression, place),
            metadata=new.metadata,
            run_key=None if new.run_id is None else keys.run_key(new.run_id),
            chunks=tuple(chunks),
        )
        builds = base is not None and any(part >= OWN_PARTS for part in parts)
        return row, content, bodies, (base.version_key, base.token) if base is not None and builds else None


def _taken(thread_id: str, new: NewVersion) -> CheckpointExists:
    return CheckpointExists(
        f"Thread {thread_id!r} has a checkpoint {new.checkpoint_id!r} of other content. History is kept: "
        "save under another id, or delete that one first."
    )


def _holds_its_part(row: VersionRow) -> bool:
    """Whether a row can hold what it brings: one part at most, and not a large one."""
    return len(row.chunks) <= 1 and all(len(chunk) <= OWN_CHUNK_BYTES for chunk in row.chunks)


def _parts(values: Mapping[str, Held]) -> list[int]:
    """The numbers of all parts, each once."""
    return list({link.part: None for _, value in values.values() if isinstance(value, Stored) for link in value.chain})
