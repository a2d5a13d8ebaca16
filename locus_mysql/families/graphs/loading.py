"""Reading checkpoints and writes, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...dialect.graphs import GraphDialect
from ...dialect.graphs.result_rows import LoadedRow
from ...dialect.statement import Query
from ...engine.operation import Operation, fetch
from ...runtime.sealing import Sealing
from . import keys
from .base_cache import BaseCache
from .chains import Inline, Stored
from .checksummed_frames import part_identity, stored_thread
from .damage import naming_checkpoint
from .decoding import Decoded, decode_checkpoints, decode_writes
from .parts import Parts
from .records import Base, LoadedGraphCheckpoint, LoadedWrite
from .values import EncodedValue

#: The epoch of a thread, and the numbers of parts that need not be read as long as it lasts.
Known: TypeAlias = tuple[bytes, Sequence[int]]


class Loading:
    """Reads checkpoints and writes.

    Args:
        sql: The statements.
        cache: The cache of threads.
        sealing: Decrypts the family.
    """

    def __init__(self, sql: GraphDialect, cache: BaseCache, sealing: Sealing) -> None:
        self._sealing = sealing
        self._sql = sql
        self._cache = cache

    def load(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None = None
    ) -> Operation[LoadedGraphCheckpoint | None]:
        """A checkpoint, or the newest of a namespace; None if there is none.

        One round trip. Values that the process has cached are not sent again.
        """
        key = (tenant, thread_id)
        ns_key = keys.ns_key(ns)
        checkpoint_key = None if checkpoint_id is None else keys.checkpoint_key(ns, checkpoint_id)

        def query(known: Known | None) -> Query[LoadedRow]:
            return self._sql.loading.load(*key, ns_key, checkpoint_key, known)

        found, parts = yield from self._read(key, ns_key, checkpoint_id, query)
        if not found:
            return None
        loaded, row, content = found[0]
        bodies = {}
        with naming_checkpoint(thread_id, row.checkpoint_id):
            for name, (_, value) in content.values.items():
                if isinstance(value, Stored):
                    bodies[name] = parts.bodies[value.chain] = parts.body(value)
        kept = self._cache.bodies(key, ns_key, content.values)
        base = Base(row.epoch, row.checkpoint_key, row.token, content.values, {**bodies, **kept}, content.snapshots)
        self._cache.remember(key, ns_key, base)
        return loaded

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
    ) -> Operation[tuple[list[LoadedGraphCheckpoint], int]]:
        """Return checkpoints of a thread, newest first, and the seq of the last of them. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            limit: The maximum number.
            ns: Only of this namespace.
            checkpoint_id: Only of this id.
            before: Namespace and id of a checkpoint: only those stored before it; none if it does not exist.
            before_id: Only those whose id is less than this one, in the order of code points.
            before_seq: Only those with a seq below.
            matching: Only those whose metadata contains this JSON.
        """
        ns_key = None if ns is None else keys.ns_key(ns)

        def query(known: Known | None) -> Query[LoadedRow]:
            return self._sql.loading.list(
                tenant,
                thread_id,
                limit,
                ns_key=ns_key,
                checkpoint_id=checkpoint_id,
                before=None if before is None else keys.checkpoint_key(*before),
                before_id=before_id,
                before_seq=before_seq,
                matching=matching,
                known=known,
            )

        found, _ = yield from self._read((tenant, thread_id), ns_key, checkpoint_id, query)
        return [one.loaded for one in found], found[-1].row.seq if found else 0

    def keys(self, tenant: str, thread_id: str) -> Operation[set[bytes]]:
        """Return the keys of a thread's checkpoints. One round trip."""
        rows = yield from fetch(self._sql.loading.keys(tenant, thread_id))
        return {row.checkpoint_key for row in rows}

    def writes(
        self, tenant: str, thread_id: str, checkpoint_key: bytes, task_id: str | None
    ) -> Operation[list[LoadedWrite]]:
        """Return the writes at a checkpoint, or those of one task. One round trip."""
        task_key = None if task_id is None else keys.task_key(task_id)
        rows = yield from fetch(self._sql.loading.writes(tenant, thread_id, checkpoint_key, task_key))
        return decode_writes(stored_thread(tenant, thread_id, self._sealing), checkpoint_key, rows)

    def _read(
        self,
        key: tuple[str, str],
        ns_key: bytes | None,
        checkpoint_id: str | None,
        query: Callable[[Known | None], Query[LoadedRow]],
    ) -> Operation[tuple[list[Decoded], Parts]]:
        """Return the checkpoints that a query finds, newest first, and their parts.

        One round trip; another one if the cached parts are of commits that the server lost.

        Args:
            key: Tenant and thread.
            ns_key: The namespace whose cached parts are not read again; None to read all.
            checkpoint_id: The id of the checkpoints, if the query finds those of one id only.
            query: Returns the query, given what is known.
        """
        thread = stored_thread(*key, self._sealing)
        parts, known = (Parts(), None) if ns_key is None else self._cached_parts(key, ns_key)
        parts.identity = part_identity(thread)
        rows = yield from fetch(query(known))
        decoded = decode_checkpoints(thread, checkpoint_id, rows, parts, None if known is None else known[0])
        if known is not None and parts.contradicts(one.content for one in decoded):
            parts = Parts(identity=parts.identity)
            rows = yield from fetch(query(None))
            decoded = decode_checkpoints(thread, checkpoint_id, rows, parts, None)
        return decoded, parts

    def value(self, tenant: str, thread_id: str, ns: str, value: Inline | Stored) -> Operation[EncodedValue]:
        """Return one value of a checkpoint. One round trip, or none for a small value.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        parts = Parts(identity=part_identity(stored_thread(tenant, thread_id, self._sealing)))
        if isinstance(value, Stored):
            numbers = [link.part for link in value.chain]
            rows = yield from fetch(self._sql.loading.parts(tenant, thread_id, keys.ns_key(ns), numbers))
            parts.sealed = {row.number: row.chunk for row in rows}
        return parts.encoded(value)

    def _cached_parts(self, key: tuple[str, str], ns_key: bytes) -> tuple[Parts, Known | None]:
        """Return the cached bodies of a namespace, and the epoch and numbers of their parts."""
        parts = Parts()
        base = self._cache.base(key, ns_key)
        if base is None or not base.bodies:
            return parts, None
        return parts, (base.epoch, parts.know(base.values, base.bodies))
