"""Saves checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.graphs import GraphCheckpointRow, GraphDialect, WriteRow
from ...dialect.graphs.new_rows import APART, OWN_CHUNK_BYTES, OWN_PARTS, BaseKey
from ...dialect.graphs.saving import new_token
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch, one_in
from ...engine.retry import Backoff
from ...errors import CheckpointExists, LocusMySQLError
from ...runtime.sealing import Sealing
from . import keys
from .base_cache import BaseCache, Key
from .chains import Inline, Stored, store
from .damage import naming_checkpoint
from .payload import Content, pack, pack_write, resolved, unpack
from .records import Base, LabelledValue, LoadedWrite, NewGraphCheckpoint
from .sealed_rows import checkpoint_identity, part_identity, seal, stored_thread, write_identity
from .values import Body, EncodedValue

#: One call in this many that stores writes is followed by housekeeping.
HOUSEKEEPING_EVERY = 64


class _Encoded(NamedTuple):
    """An encoded checkpoint.

    Args:
        row: Its row.
        content: The content of the row's payload.
        bodies: The bodies of its large values.
        after: The checkpoint whose parts it builds on.
    """

    row: GraphCheckpointRow
    content: Content
    bodies: Mapping[str, Body]
    after: BaseKey | None


class Saving:
    """Saves checkpoints and writes.

    Args:
        config: The options.
        sql: The statements.
        cache: The cache of threads.
    """

    def __init__(self, config: MySQLConfig, sql: GraphDialect, cache: BaseCache) -> None:
        self._config = config
        self._sql = sql
        self._cache = cache
        self._sealing = Sealing(config.encryption, sql.schema.family)
        self._ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    def save(self, tenant: str, thread_id: str, new: NewGraphCheckpoint, base: Base | None) -> Operation[None]:
        """Store a checkpoint as the newest of its thread.

        One round trip. More if something was removed from the thread since the base was read, or if the id exists.

        Raises:
            CheckpointExists: The id is taken, by other content, and the new one must not replace it.
        """
        key = (tenant, thread_id)
        epoch = self._cache.epoch(key) if base is None else base.epoch
        encoded = self._encode(key, new, base)
        if (
            epoch
            and self._ttl_us is None
            and self._cache.may_share(key)
            and _holds_its_part(encoded.row)
            and (yield from self._save_sharing(key, new, encoded, epoch))
        ):
            return
        yield from self._save_locking(key, new, encoded, epoch)

    def _save_sharing(self, key: Key, new: NewGraphCheckpoint, encoded: _Encoded, epoch: bytes) -> Operation[bool]:
        """Save with a shared lock on the thread; False if the thread differs from this process's knowledge.

        Raises:
            CheckpointExists: The id is taken, by other content, and the new one must not replace it.
        """
        insert = self._sql.saving.insert_next(*key, epoch, encoded.row, encoded.after)
        try:
            results = yield Batch((insert,), self._landed(key, new, encoded), lock=self._lock(*key))
        except Duplicate:
            if (yield from self._is_saved(key, encoded.row, new)):
                return True
            if new.replace:
                return False
            raise _taken(key[1], new) from None
        if results.earlier_attempt is not None:  # an earlier attempt had succeeded, and was perhaps replaced since
            self._cache.forget(key)
            return True
        if not results[0].affected:
            return False
        self._remember(key, epoch, new, encoded, results[0].last_insert_id)
        return True

    def _save_locking(
        self, key: Key, new: NewGraphCheckpoint, encoded: _Encoded, epoch: bytes | None
    ) -> Operation[None]:
        """Save under the thread's lock, and repeat it when something was removed from the thread meanwhile.

        Raises:
            CheckpointExists: The id is taken, by other content.
        """
        backoff = Backoff(f"Checkpoints were removed from thread {key[1]!r} while one was saved")
        while True:
            begun = time.monotonic()
            took, statements = self._take_seq(key, epoch, encoded.after)
            statements += self._sql.saving.insert(*key, encoded.row, in_epoch=bool(epoch), replace=new.replace)
            read_epoch = self._sql.threads.epoch(*key)
            if not epoch:
                statements += (read_epoch,)
            try:
                results = yield Batch(statements, self._landed(key, new, encoded), lock=self._lock(*key))
            except Outdated:
                yield backoff.pause()
                self._cache.forget(key)
                base = yield from self.find_base(*key, new.ns, new.parent_id)
                epoch = None if base is None else base.epoch
                encoded = self._encode(key, new, base)
            except Duplicate:
                if (yield from self._is_saved(key, encoded.row, new)):
                    return
                raise _taken(key[1], new) from None
            else:
                break
        if results.earlier_attempt is not None:
            self._cache.forget(key)
            return
        epoch = epoch or results.rows(read_epoch)[0].epoch
        self._remember(key, epoch, new, encoded, APART + results[took].last_insert_id)
        self._cache.locked(key, begun)

    def _lock(self, tenant: str, thread_id: str) -> tuple[str, ...]:
        return self._sql.names["threads"], tenant, thread_id

    def _landed(self, key: Key, new: NewGraphCheckpoint, encoded: _Encoded) -> Statement:
        return self._sql.saving.find_saved(*key, encoded.row.checkpoint_key, new.token)

    def _remember(self, key: Key, epoch: bytes, new: NewGraphCheckpoint, encoded: _Encoded, stored_seq: int) -> None:
        """Cache the checkpoint that was just saved under a number."""
        content, row = encoded.content, encoded.row
        known = resolved(content.values, stored_seq)
        base = Base(epoch, row.checkpoint_key, new.token, known, encoded.bodies, content.snapshots)
        self._cache.remember(key, row.ns_key, base)

    def find_base(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None) -> Operation[Base | None]:
        """Return the base for a checkpoint that follows this one; None if this one does not exist.

        One round trip; none if the base is cached.
        """
        if checkpoint_id is None:
            return None
        key = (tenant, thread_id)
        ns_key, checkpoint_key = keys.ns_key(ns), keys.checkpoint_key(ns, checkpoint_id)
        known = self._cache.base(key, ns_key, checkpoint_key)
        if known is not None:
            return known
        rows = yield from fetch(self._sql.loading.base(*key, checkpoint_key))
        if not rows:
            return None
        (row,) = rows
        with naming_checkpoint(thread_id, checkpoint_id):
            thread = stored_thread(*key, self._sealing)
            identity = checkpoint_identity(thread, checkpoint_key, row.parent_key, row.needs, row.metadata)
            content = unpack(row.payload, row.stored_seq, identity)
        bodies = self._cache.bodies(key, ns_key, content.values)
        return Base(row.epoch, checkpoint_key, row.token, content.values, bodies, content.snapshots)

    def newest_known(self, tenant: str, thread_id: str, ns: str) -> Base | None:
        """Return the checkpoint of a namespace that this process saved or loaded last."""
        return self._cache.base((tenant, thread_id), keys.ns_key(ns))

    def put_writes(
        self,
        tenant: str,
        thread_id: str,
        checkpoint_key: bytes,
        task_id: str,
        writes: Sequence[LoadedWrite],
        *,
        replace: bool,
    ) -> Operation[None]:
        """Store writes of a task. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            checkpoint_key: The checkpoint; it need not exist yet.
            task_id: The task.
            writes: The writes.
            replace: Whether existing writes are replaced; otherwise only those with an index below 0 are.
        """
        if not writes:
            return
        token = new_token()
        task_key = keys.task_key(task_id)
        thread = stored_thread(tenant, thread_id, self._sealing)

        def payload(write: LoadedWrite) -> bytes:
            identity = write_identity(thread, checkpoint_key, task_id, write.idx, write.channel, write.task_path)
            return pack_write(write.value, self._compression, identity)

        rows = [
            WriteRow(task_key, write.idx, task_id, write.task_path, write.channel, payload(write)) for write in writes
        ]
        sql = self._sql.saving
        insert = sql.insert_writes(tenant, thread_id, checkpoint_key, token, rows, replace=replace)
        yield Batch((insert,), sql.find_written(token), lock=(self._sql.names["writes"], tenant, thread_id))
        if one_in(HOUSEKEEPING_EVERY):
            yield from self._housekeeping()

    def _housekeeping(self) -> Operation[None]:
        """Delete some old tokens.

        The writes have been stored by then, so a failure is only logged, and a later call repeats the clean-up.
        """
        try:
            yield Batch((self._sql.saving.forget_written(), self._sql.ledger.forget_old()), atomic=False)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("Writes were stored, but the housekeeping after it failed: %s.", loggable(error))

    @property
    def _compression(self) -> Literal["zlib", "none"]:
        return self._config.compression

    def _is_saved(self, key: Key, row: GraphCheckpointRow, new: NewGraphCheckpoint) -> Operation[bool]:
        """Return whether the existing row with this id is from this save, or has the same content."""
        marks = [new.token]
        if new.digest:  # rows from before encryption have the digest itself
            marks = [*self._sealing.of(*key).digests(new.digest, row.checkpoint_key), new.digest]
        finding = [self._sql.saving.find_saved(*key, row.checkpoint_key, mark) for mark in dict.fromkeys(marks)]
        results = yield Batch(tuple(finding))
        return any(found.rows for found in results)

    def _take_seq(self, key: Key, epoch: bytes | None, after: BaseKey | None) -> tuple[int, tuple[Statement, ...]]:
        """Return the statements that reserve the next number, and the index of the one that does."""
        if epoch:
            return 0, (self._sql.threads.take_seq_in_epoch(*key, epoch, self._ttl_us, after),)
        record = self._sql.ledger.record_expired(*key)
        statements = self._sql.threads.take_seq(*key, os.urandom(8), self._ttl_us, record)
        return len(statements) - 1, statements

    def _encode(self, key: Key, new: NewGraphCheckpoint, base: Base | None) -> _Encoded:
        """Encode a checkpoint to save."""
        thread = stored_thread(*key, self._sealing)
        values: dict[str, LabelledValue] = {}
        bodies: dict[str, Body] = {}
        chunks: list[bytes] = []
        snapshots = set(new.snapshots)
        for name, label, encoded in new.values(base):
            before = base.values.get(name) if base is not None else None
            body = base.bodies.get(name) if base is not None else None
            if encoded is None:
                assert before is not None  # noqa: S101 - only a value of the base is kept
                values[name] = LabelledValue(label, before.value)
                if base is not None and name in base.snapshots:
                    snapshots.add(name)
            elif len(chunks) == OWN_PARTS:
                values[name], body = LabelledValue(label, Inline(EncodedValue(encoded.kind, encoded.data))), None
            else:
                stored = store(encoded, None if before is None else before.value, body, len(chunks))
                values[name], body = LabelledValue(label, stored.value), stored.body
                if stored.chunk is not None:
                    chunks.append(seal(stored.chunk, self._compression, part_identity(thread)))
            if body is not None:
                bodies[name] = body
        if base is not None:
            snapshots |= base.snapshots - values.keys() - new.counted
        content = Content(new.codec, new.head, values, frozenset(snapshots))
        parent_key = None if new.parent_id is None else keys.checkpoint_key(new.ns, new.parent_id)
        checkpoint_key = keys.checkpoint_key(new.ns, new.checkpoint_id)
        needs = 0 if parent_key is None else new.needs if snapshots <= values.keys() else 1
        identity = checkpoint_identity(thread, checkpoint_key, parent_key, needs, new.metadata)
        parts = _parts(values)
        row = GraphCheckpointRow(
            ns_key=keys.ns_key(new.ns),
            checkpoint_key=checkpoint_key,
            parent_key=parent_key,
            checkpoint_id=new.checkpoint_id,
            parent_id=new.parent_id,
            ns=new.ns,
            needs=needs,
            sources=json.dumps(parts, separators=(",", ":")),
            tokens=new.token + (thread.sealing.digests(new.digest, checkpoint_key)[0] if new.digest else b""),
            payload=pack(content, self._config.compression, identity),
            metadata=new.metadata,
            run_key=None if new.run_id is None else keys.run_key(new.run_id),
            chunks=tuple(chunks),
        )
        builds = base is not None and any(part >= OWN_PARTS for part in parts)
        after = (base.checkpoint_key, base.token) if base is not None and builds else None
        return _Encoded(row, content, bodies, after)


def _taken(thread_id: str, new: NewGraphCheckpoint) -> CheckpointExists:
    return CheckpointExists(
        f"Thread {thread_id!r} has a checkpoint {new.checkpoint_id!r} of other content. History is kept: "
        "save under another id, or delete that one first."
    )


def _holds_its_part(row: GraphCheckpointRow) -> bool:
    """Return whether a row can hold its values itself: at most one part, and not a large one."""
    return len(row.chunks) <= 1 and all(len(chunk) <= OWN_CHUNK_BYTES for chunk in row.chunks)


def _parts(values: Mapping[str, LabelledValue]) -> list[int]:
    """Return the numbers of all parts, each once."""
    return list({link.part: None for _, value in values.values() if isinstance(value, Stored) for link in value.chain})
