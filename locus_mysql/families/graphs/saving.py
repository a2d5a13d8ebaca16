"""Saves checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...config import MySQLConfig
from ...dialect import Query, Statement
from ...dialect.sql import RETENTION_S, Dialect
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...engine.retry import Backoff
from ...errors import CheckpointExists
from ...records.leases import Turns
from ...records.ledger import FORGET_OLD, FORGOTTEN_AT_ONCE, in_passing
from ...runtime.arguments import microseconds
from ...runtime.sealing import Sealing
from .loading import BaseCache
from .payload import (
    Compression,
    Content,
    StoredThread,
    checkpoint_identity,
    naming_checkpoint,
    number_parts,
    pack,
    pack_write,
    part_identity,
    seal,
    stored_thread,
    unpack,
    write_identity,
)
from .records import Base, LabelledValue, LoadedWrite, NewGraphCheckpoint
from .statements import loading, removing, saving, tables, threads
from .statements.saving import BaseKey, EpochRow, GraphCheckpointRow, NewPartRow, WriteRow
from .statements.tables import APART, OWN_PARTS, ThreadKey
from .values import Body, EncodedValue, Inline, Stored, store

#: Parts larger than this get a statement each, so that one packet need not hold them all.
_LARGE_BYTES = 262_144


#: What a checkpoint without a base continues.
_NO_BASE = Base(b"", b"", b"", {}, {})


class _Encoded(NamedTuple):
    """An encoded checkpoint.

    Args:
        row: Its row.
        chunks: Its own parts.
        content: The content of the row's payload.
        bodies: The bodies of its large values.
        base: The checkpoint whose parts it builds on; empty if it does not.
    """

    row: GraphCheckpointRow
    chunks: Sequence[bytes]
    content: Content
    bodies: Mapping[str, Body]
    base: tuple[BaseKey, ...]

    @property
    def pieces(self) -> Mapping[str, str]:
        """The pieces of the statements that look for the base."""
        return {"base": "{BASE_IS_THERE}" if self.base else ""}

    @property
    def holds_its_part(self) -> bool:
        """Whether the row can hold the values itself: at most one part, and not a large one."""
        return len(self.chunks) <= 1 and all(len(chunk) <= saving.OWN_CHUNK_BYTES for chunk in self.chunks)


class _Insertion(NamedTuple):
    """The statements that insert a checkpoint.

    Args:
        statements: In their order.
        numbers: The one of them whose last insert id numbers the checkpoint's parts.
        apart: What is added to that number.
        epoch: Reads the thread's epoch, if it is not known.
        next_epoch: The epoch that the thread has afterwards, if the save also removes checkpoints.
    """

    statements: tuple[Statement, ...]
    numbers: Statement
    apart: int = APART
    epoch: Query[EpochRow] | None = None
    next_epoch: bytes | None = None


class Saving:
    """Saves checkpoints and writes.

    Args:
        config: The options.
        sql: The tables.
        cache: The cache of threads.
        turns: The turns on threads.
    """

    def __init__(self, config: MySQLConfig, sql: Dialect, cache: BaseCache, turns: Turns) -> None:
        self._turns = turns
        self._compression: Compression = config.compression
        self._sql = sql
        self._cache = cache
        self._sealing = Sealing(config.encryption, sql.schema.family)
        self._ttl_us = microseconds(config.ttl_s)
        self._keep = config.keep_checkpoints

    def save(self, tenant: str, thread_id: str, new: NewGraphCheckpoint, base: Base | None) -> Operation[None]:
        """Store a checkpoint as the newest of its thread; remove those of its namespace beyond ``keep_checkpoints``.

        One round trip. More if something was removed from the thread since the base was read, or if the id exists. A
        save that only shares the thread's lock is repeated with the lock if the thread is not as this process knows it.

        Raises:
            CheckpointExists: The id is taken, by other content, and the new one must not replace it.
            TurnLost: The call's turn on the thread is over.
        """
        key = ThreadKey(tenant, thread_id)
        epoch = self._cache.epoch(key) if base is None else base.epoch
        encoded = self._encode(key, new, base)
        shares = bool(epoch) and self._ttl_us is None and self._keep is None
        shares = shares and self._cache.may_share(key) and encoded.holds_its_part
        backoff = Backoff(f"Checkpoints were removed from thread {thread_id!r} while one was saved")
        while True:
            begun = time.monotonic()
            insertion = (self._sharing if shares else self._locking)(key, new, encoded, epoch)
            find = saving.FIND_SAVED(self._sql, key, checkpoint_key=encoded.row.checkpoint_key, token=new.token)
            batch = Batch(insertion.statements, find, lock=(self._sql.names["threads"], *key))
            try:
                results = yield from self._turns.write(batch, key)
            except Outdated:  # something was removed meanwhile
                yield backoff.pause()
                self._cache.forget(key)
                base = yield from self.find_base(tenant, thread_id, new.ns, new.parent_id)
                epoch = None if base is None else base.epoch
                encoded = self._encode(key, new, base)
                continue
            except Duplicate:
                if (yield from self._is_saved(key, encoded.row, new)):
                    return
                if not (shares and new.replace):
                    raise CheckpointExists(
                        f"Thread {thread_id!r} has a checkpoint {new.checkpoint_id!r} of other content. History is "
                        "kept: save under another id, or delete that one first."
                    ) from None
            else:
                if results.earlier_attempt is not None:  # it had succeeded, and was perhaps replaced since
                    self._cache.forget(key)
                    return
                numbered = results.of(insertion.numbers)
                if numbered.affected or not shares:
                    break
            shares = False
        if not shares:
            self._cache.locked(key, begun)
        if insertion.epoch is not None:
            epoch = results.rows(insertion.epoch)[0].epoch
        epoch = insertion.next_epoch or epoch
        assert epoch  # noqa: S101 - for the type checker: it was known, or read
        content, row = encoded.content, encoded.row
        values = number_parts(content.values, insertion.apart + numbered.last_insert_id)
        saved = Base(epoch, row.checkpoint_key, new.token, values, encoded.bodies, content.snapshots)
        self._cache.remember(key, row.ns_key, saved)

    def _sharing(self, key: ThreadKey, new: NewGraphCheckpoint, encoded: _Encoded, epoch: bytes | None) -> _Insertion:
        """Insert with a shared lock on the thread; affects no row if the thread differs from what is known."""
        row, chunk = encoded.row, encoded.chunks[0] if encoded.chunks else None
        insert = saving.INSERT_SHARING(
            self._sql, key, row, *encoded.base, epoch=epoch, chunk=chunk, pieces=encoded.pieces
        )
        return _Insertion((insert,), insert, 0)

    def _locking(self, key: ThreadKey, new: NewGraphCheckpoint, encoded: _Encoded, epoch: bytes | None) -> _Insertion:
        """Reserve the next number under the thread's lock, and insert under it; creates the thread if necessary.

        Raises:
            Outdated: The epoch is known, and something was removed since.
        """
        sql, row, ttl_us = self._sql, encoded.row, self._ttl_us
        statements: list[Statement]
        if epoch:
            take = saving.TAKE_SEQ_IN_EPOCH(sql, key, *encoded.base, epoch=epoch, ttl_us=ttl_us, pieces=encoded.pieces)
            statements = [take]
        else:
            fresh = os.urandom(8)
            take = saving.TAKE_SEQ(sql, key, epoch=fresh, ttl_us=ttl_us)
            statements = [threads.LOCK(sql, key, epoch=fresh), *(one(sql, key) for one in threads.CLEAR_EXPIRED), take]
            if ttl_us is not None and ttl_us < RETENTION_S * 1_000_000:
                statements.insert(1, threads.RECORD_EXPIRED(sql, key))
        number = {"number": saving.IF_TAKEN if epoch else saving.UNLESS_RECORDED}
        statements.append(
            (saving.REPLACE if new.replace else saving.INSERT)(sql, key, row, token=new.token, pieces=number)
        )
        if new.replace:
            statements.append(saving.RECORD_IF_REPLACED(sql, key, row))
        for parts in _packets(encoded.chunks):
            statements.append(saving.INSERT_PARTS(sql, key, checkpoint_key=row.checkpoint_key, rows=parts))
        next_epoch = None if self._keep is None else os.urandom(8)
        if next_epoch is not None:
            statements.append(threads.BEGIN_EPOCH(sql, key, epoch=next_epoch))
            of_namespace = {"namespace": removing.OF_NAMESPACE}
            statements.append(removing.HIDE_OLDER(sql, key, keep=self._keep, ns_key=row.ns_key, pieces=of_namespace))
            statements += [one(sql, key) for one in (removing.HIDE_CALLS, *removing.REMOVE_HIDDEN)]
        if epoch or next_epoch:
            return _Insertion(tuple(statements), take, next_epoch=next_epoch)
        read_epoch = saving.EPOCH(sql, key)
        return _Insertion((*statements, read_epoch), take, epoch=read_epoch)

    def find_base(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None) -> Operation[Base | None]:
        """Return the base for a checkpoint that follows this one; None if this one does not exist.

        One round trip; none if the base is cached.
        """
        if checkpoint_id is None:
            return None
        key = ThreadKey(tenant, thread_id)
        ns_key, checkpoint_key = tables.ns_key(ns), tables.checkpoint_key(ns, checkpoint_id)
        cached = self._cache.base(key, ns_key, checkpoint_key)
        if cached is not None:
            return cached
        rows = yield from fetch(loading.BASE(self._sql, key, checkpoint_key=checkpoint_key))
        if not rows:
            return None
        (row,) = rows
        with naming_checkpoint(thread_id, checkpoint_id):
            thread = stored_thread(*key, self._sealing)
            identity = checkpoint_identity(thread, checkpoint_key, row.parent_key, row.needs, row.metadata)
            content = unpack(row.payload, row.stored_seq, identity)
        bodies = self._cache.bodies(key, ns_key, content.values)
        return Base(row.epoch, checkpoint_key, row.token, content.values, bodies, content.snapshots)

    def newest_cached(self, tenant: str, thread_id: str, ns: str) -> Base | None:
        """Return the checkpoint of a namespace that this process saved or loaded last."""
        return self._cache.base((tenant, thread_id), tables.ns_key(ns))

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
        key = ThreadKey(tenant, thread_id)
        thread = stored_thread(*key, self._sealing)
        rows = []
        for write in writes:
            identity = write_identity(thread, checkpoint_key, task_id, write.idx, write.channel, write.task_path)
            payload = pack_write(write.value, self._compression, identity)
            rows.append(WriteRow(tables.task_key(task_id), write.idx, task_id, write.task_path, write.channel, payload))
        token = _timed_token(time.time())
        then = saving.KEEP_LAST if replace else saving.KEEP_FIRST if any(row.idx < 0 for row in rows) else saving.KEEP
        insert = saving.INSERT_WRITES(
            self._sql, key, checkpoint_key=checkpoint_key, token=token, rows=rows, pieces={"then": then}
        )
        batch = Batch((insert,), saving.FIND_WRITTEN(self._sql, token=token), lock=(self._sql.names["writes"], *key))
        yield from self._turns.write(batch, key)
        yield from in_passing(self._housekeeping)

    def _housekeeping(self) -> Operation[None]:
        yield forget_tokens(self._sql)

    def _is_saved(self, key: ThreadKey, row: GraphCheckpointRow, new: NewGraphCheckpoint) -> Operation[bool]:
        """Return whether the existing row with this id is from this save, or has the same content."""
        marks = [new.token]
        if new.digest:  # rows from before encryption have the digest itself
            marks = [*self._sealing.of(*key).digests(new.digest, row.checkpoint_key), new.digest]
        results = yield Batch(
            tuple(
                saving.FIND_SAVED(self._sql, key, checkpoint_key=row.checkpoint_key, token=mark)
                for mark in dict.fromkeys(marks)
            )
        )
        return any(result.rows for result in results)

    def _encode(self, key: ThreadKey, new: NewGraphCheckpoint, base: Base | None) -> _Encoded:
        """Encode a checkpoint to save."""
        thread = stored_thread(*key, self._sealing)
        earlier = base or _NO_BASE
        values: dict[str, LabelledValue] = {}
        bodies: dict[str, Body] = {}
        chunks: list[bytes] = []
        snapshots = set(new.snapshots)
        for name, label, encoded in new.values(base):
            before, body = earlier.values.get(name), earlier.bodies.get(name)
            value: Inline | Stored
            if encoded is None:
                assert before is not None  # noqa: S101 - only a value of the base is kept
                value = before.value
                snapshots |= earlier.snapshots & {name}
            elif len(chunks) == OWN_PARTS:
                value, body = Inline(EncodedValue(encoded.kind, encoded.data)), None
            else:
                value, body, chunk = store(encoded, None if before is None else before.value, body, len(chunks))
                if chunk is not None:
                    chunks.append(seal(chunk, self._compression, part_identity(thread)))
            values[name] = LabelledValue(label, value)
            if body is not None:
                bodies[name] = body
        snapshots |= earlier.snapshots - values.keys() - new.counted
        content = Content(new.codec, new.head, values, frozenset(snapshots))
        parts = _parts(values)
        builds_on = (
            (BaseKey(earlier.checkpoint_key, earlier.token),) if any(part >= OWN_PARTS for part in parts) else ()
        )
        return _Encoded(self._row(thread, new, content, parts), chunks, content, bodies, builds_on)

    def _row(
        self, thread: StoredThread, new: NewGraphCheckpoint, content: Content, parts: Sequence[int]
    ) -> GraphCheckpointRow:
        """Return the row of a checkpoint."""
        parent_key = None if new.parent_id is None else tables.checkpoint_key(new.ns, new.parent_id)
        checkpoint_key = tables.checkpoint_key(new.ns, new.checkpoint_id)
        needs = 0 if parent_key is None else new.needs if content.snapshots <= content.values.keys() else 1
        identity = checkpoint_identity(thread, checkpoint_key, parent_key, needs, new.metadata)
        return GraphCheckpointRow(
            ns_key=tables.ns_key(new.ns),
            checkpoint_key=checkpoint_key,
            parent_key=parent_key,
            checkpoint_id=new.checkpoint_id,
            parent_id=new.parent_id,
            ns=new.ns,
            needs=needs,
            sources=json.dumps(parts, separators=(",", ":")),
            tokens=new.token + (thread.sealing.digests(new.digest, checkpoint_key)[0] if new.digest else b""),
            payload=pack(content, self._compression, identity),
            metadata=new.metadata,
            run_key=None if new.run_id is None else tables.run_key(new.run_id),
        )


def forget_tokens(sql: Dialect) -> Batch:
    """Return the batch that deletes some tokens of calls that are no longer repeated, of all tenants."""
    before = _timed_token(time.time() - RETENTION_S)[:8]
    return Batch(
        (
            FORGET_OLD(sql, limit=FORGOTTEN_AT_ONCE),
            saving.FORGET_WRITTEN(sql, before=before, limit=FORGOTTEN_AT_ONCE),
        ),
        atomic=False,
    )


def _timed_token(now_s: float) -> bytes:
    """Return a token for a call that stores writes: 8 bytes of the time, and 8 random ones."""
    return int(now_s * 1_000_000).to_bytes(8) + os.urandom(8)


def _packets(chunks: Sequence[bytes]) -> list[list[NewPartRow]]:
    """Group the parts of a checkpoint by the statement that stores them."""
    groups: list[list[NewPartRow]] = []
    size_bytes = 0
    for slot, chunk in enumerate(chunks):
        size_bytes += len(chunk)
        if not groups or size_bytes > _LARGE_BYTES:
            groups.append([])
            size_bytes = len(chunk)
        groups[-1].append(NewPartRow(slot, chunk))
    return groups


def _parts(values: Mapping[str, LabelledValue]) -> list[int]:
    """Return the numbers of all parts, each once."""
    return list({link.part: None for _, value in values.values() if isinstance(value, Stored) for link in value.chain})
