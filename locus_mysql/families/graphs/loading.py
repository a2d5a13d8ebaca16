"""Reading checkpoints, writes and chains of ancestors, without I/O; and `BaseCache`, which saves a read."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...dialect import Query
from ...dialect.sql import Dialect
from ...engine.operation import Operation, fetch, read_rows
from ...lru_cache import CachePart, LRUCache
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from .decoding import Decoded, Parts, ancestor_content, decode_checkpoints, decode_writes
from .payload import StoredThread, naming_checkpoint, part_identity, stored_thread
from .records import Base, ChannelHistory, LabelledValue, LoadedGraphCheckpoint, LoadedWrite
from .statements import loading, tables
from .statements.loading import AncestorRow, AncestorsWriteRow, CachedParts, LineRow, LoadedRow
from .statements.tables import LAG_S, OWN_PARTS, ThreadKey, conditions
from .values import Body, EncodedValue, Inline, Stored

#: Memory for the structure of recent checkpoints, besides the bytes of their values.
_MARKS_BYTES = 8_388_608

#: Seconds after an exclusive lock by a save of this process during which further saves only share the thread's lock.
#: This predicts the server's decision, which saves a round trip.
_SHARED_LOCK_S = LAG_S - 5

#: Approximate memory of each of these.
_MARK_BYTES, _BASE_BYTES, _VALUE_BYTES, _BODY_BYTES = 300, 600, 800, 300

Key = tuple[str, str]


class BaseCache:
    """Cache of the newest checkpoints that this process saved or loaded, by namespace, and of their threads' epochs.

    Args:
        cache_bytes: Memory for the bytes of their values.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._epochs: LRUCache[bytes] = LRUCache(_MARKS_BYTES // 4)
        self._locked_at: LRUCache[float] = LRUCache(_MARKS_BYTES // 4)
        self._bases: LRUCache[Base] = LRUCache(_MARKS_BYTES)
        self._bodies: LRUCache[Mapping[str, Body]] | CachePart[Mapping[str, Body]] = LRUCache(cache_bytes)

    def attach(self, database: Database, tables: Hashable) -> None:
        """Use the caches of a database for these tables, which all its stores share."""
        self._epochs = database.cache(("graphs' epochs", tables), lambda: self._epochs)
        self._locked_at = database.cache(("graphs' locks", tables), lambda: self._locked_at)
        self._bases = database.cache(("graphs' bases", tables), lambda: self._bases)
        self._bodies = CachePart(database.states, ("graphs", tables))

    def epoch(self, key: Key) -> bytes | None:
        """Return the epoch of a thread, if it is known."""
        return self._epochs.get(key)

    def may_share(self, key: Key) -> bool:
        """Return whether a save of this process locked the thread so recently that others may only share its lock."""
        at = self._locked_at.get(key)
        return at is not None and time.monotonic() - at < _SHARED_LOCK_S

    def locked(self, key: Key, begun: float) -> None:
        """Record a save that locked the thread, and the monotonic time at which it began."""
        self._locked_at.put(key, begun, _MARK_BYTES)

    def base(self, key: Key, ns_key: bytes, checkpoint_key: bytes | None = None) -> Base | None:
        """Return the cached checkpoint of a namespace, if it is the requested one."""
        base = self._bases.get((key, ns_key))
        if base is None or (checkpoint_key is not None and base.checkpoint_key != checkpoint_key):
            return None
        if base.epoch != self.epoch(key):
            return None
        return replace(base, bodies=self.bodies(key, ns_key, base.values))

    def bodies(self, key: Key, ns_key: bytes, values: Mapping[str, LabelledValue]) -> Mapping[str, Body]:
        """Return the cached bodies of these values."""
        cached = self._bodies.get((key, ns_key))
        if not cached:
            return {}
        bodies = {}
        for name, (_, value) in values.items():
            if isinstance(value, Stored) and name in cached and cached[name].digest == value.digest:
                bodies[name] = cached[name]
        return bodies

    def remember(self, key: Key, ns_key: bytes, base: Base) -> None:
        """Cache a checkpoint that was saved or loaded, in place of the previous one of its namespace."""
        self._epochs.put(key, base.epoch, _MARK_BYTES)
        entry = replace(base, bodies={})
        self._bases.put((key, ns_key), entry, _BASE_BYTES + _VALUE_BYTES * len(base.values))
        size_bytes = sum(body.length + _BODY_BYTES for body in base.bodies.values())
        self._bodies.put((key, ns_key), base.bodies, size_bytes)

    def forget(self, key: Key) -> None:
        """Drop a thread: without its epoch, its other entries are not used."""
        self._epochs.put(key, b"", _MARK_BYTES)


#: Ancestors that are read in one round trip.
ANCESTORS_PAGE = 256


class Loading:
    """Reads checkpoints and writes.

    Args:
        sql: The tables.
        cache: The cache of threads.
        sealing: Decrypts the family.
    """

    def __init__(self, sql: Dialect, cache: BaseCache, sealing: Sealing) -> None:
        self._sealing = sealing
        self._sql = sql
        self._cache = cache

    def load(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str | None = None
    ) -> Operation[LoadedGraphCheckpoint | None]:
        """A checkpoint, or the newest of a namespace; None if there is none.

        One round trip. Values that the process has cached are not sent again.
        """
        key = ThreadKey(tenant, thread_id)
        ns_key = tables.ns_key(ns)
        checkpoint_key = None if checkpoint_id is None else tables.checkpoint_key(ns, checkpoint_id)
        chosen = loading.NEWEST if checkpoint_id is None else loading.NAMED

        def query(*cached: CachedParts, pieces: Mapping[str, str]) -> Query[LoadedRow]:
            pieces = {"chosen": chosen, **pieces}
            return loading.READ_ONE(
                self._sql, key, *cached, ns_key=ns_key, checkpoint_key=checkpoint_key, pieces=pieces
            )

        decoded, parts = yield from self._read(key, ns_key, checkpoint_id, query)
        if not decoded:
            return None
        loaded, row, content = decoded[0]
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
        before: tuple[str | None, str] | None = None,
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
            before: Namespace, or None for any, and id of a checkpoint: only those stored before it; none if it does not
                exist.
            before_id: Only those whose id is less than this one, in the order of code points.
            before_seq: Only those with a seq below.
            matching: Only those whose metadata contains this JSON.
        """
        key, ns_key = ThreadKey(tenant, thread_id), None if ns is None else tables.ns_key(ns)
        given: dict[str, Any] = {
            "ns_key": ns_key,
            "checkpoint_id": checkpoint_id,
            "before": None if before is None or before[0] is None else tables.checkpoint_key(before[0], before[1]),
            "before_any": before[1] if before is not None and before[0] is None else None,
            "before_id": before_id,
            "before_seq": before_seq,
            "matching": matching,
        }
        chosen = {"chosen": loading.SEVERAL, "conditions": conditions(loading.CONDITIONS, given)}

        def query(*cached: CachedParts, pieces: Mapping[str, str]) -> Query[LoadedRow]:
            return loading.READ_SEVERAL(self._sql, key, *cached, limit=limit, pieces={**chosen, **pieces}, **given)

        decoded, _ = yield from self._read(key, ns_key, checkpoint_id, query)
        return [one.loaded for one in decoded], decoded[-1].row.seq if decoded else 0

    def writes(
        self, tenant: str, thread_id: str, checkpoint_key: bytes, task_id: str | None
    ) -> Operation[list[LoadedWrite]]:
        """Return the writes at a checkpoint, or those of one task. One round trip."""
        key, task_key = ThreadKey(tenant, thread_id), None if task_id is None else tables.task_key(task_id)
        pieces = {"task": "" if task_id is None else loading.OF_TASK}
        rows = yield from fetch(
            loading.READ_WRITES(self._sql, key, checkpoint_key=checkpoint_key, task_key=task_key, pieces=pieces)
        )
        return decode_writes(stored_thread(*key, self._sealing), checkpoint_key, rows)

    def value(self, tenant: str, thread_id: str, ns: str, value: Inline | Stored) -> Operation[EncodedValue]:
        """Return one value of a checkpoint. One round trip, or none for a small value.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        parts = yield from self._parts(ThreadKey(tenant, thread_id), ns, [value])
        return parts.encoded(value)

    def channel_history(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str, channels: Sequence[str]
    ) -> Operation[dict[str, ChannelHistory]]:
        """Return the writes to channels along a checkpoint's ancestors, per channel up to the nearest with a value.

        One round trip for 256 ancestors, and one for the values found. Ends where a chain of ancestors returns to a
        checkpoint it has passed, which happens if that was saved again under another parent.
        """
        key = ThreadKey(tenant, thread_id)
        thread = stored_thread(*key, self._sealing)
        first = tables.checkpoint_key(ns, checkpoint_id)
        walk = _Walk(set(channels), {first}, {name: [] for name in channels})
        start: bytes | None = first
        while start is not None and walk.missing:
            query = loading.ANCESTORS(
                self._sql, key, checkpoint_key=start, depth=ANCESTORS_PAGE, channels=sorted(walk.missing)
            )
            start = _follow(walk, thread, (yield from fetch(query)))
        parts = yield from self._parts(key, ns, [value for value, _ in walk.seeds.values()])
        values: dict[str, EncodedValue] = {}
        for name, (value, seeded_at) in walk.seeds.items():
            with naming_checkpoint(thread_id, seeded_at):
                values[name] = parts.encoded(value)
        return {name: ChannelHistory(walk.writes[name][::-1], values.get(name)) for name in channels}

    def _read(
        self,
        key: ThreadKey,
        ns_key: bytes | None,
        checkpoint_id: str | None,
        query: Callable[..., Query[LoadedRow]],
    ) -> Operation[tuple[list[Decoded], Parts]]:
        """Return the checkpoints that a query finds, newest first, and their parts.

        One round trip; another one if the cached parts are of commits that the server lost.

        Args:
            key: The thread.
            ns_key: The namespace whose cached parts are not read again; None to read all.
            checkpoint_id: The id of the checkpoints, if the query finds those of one id only.
            query: Returns the query, given the cached parts and the piece that leaves them out.
        """
        thread = stored_thread(*key, self._sealing)
        parts = Parts(part_identity(thread))
        base = None if ns_key is None else self._cache.base(key, ns_key)
        if base is not None and base.bodies:
            numbers = parts.add_cached(base.values, base.bodies)
            cached = CachedParts(base.epoch, ",".join(map(str, numbers)))
            rows = yield from fetch(query(cached, pieces={"cached": loading.NOT_CACHED}))
            decoded = decode_checkpoints(thread, checkpoint_id, rows, parts, base.epoch)
            if not parts.contradicts(one.content for one in decoded):
                return decoded, parts
            parts = Parts(parts.identity)
        rows = yield from fetch(query(pieces={"cached": ""}))
        return decode_checkpoints(thread, checkpoint_id, rows, parts, None), parts

    def _parts(self, key: ThreadKey, ns: str, values: Sequence[Inline | Stored]) -> Operation[Parts]:
        """Return the parts of some values. One round trip, or none if all values are small."""
        parts = Parts(part_identity(stored_thread(*key, self._sealing)))
        numbers = [link.part for value in values if isinstance(value, Stored) for link in value.chain]
        if numbers:
            seqs = [number // OWN_PARTS for number in numbers if number % OWN_PARTS == 0]
            read = loading.READ_PARTS(self._sql, key, ns_key=tables.ns_key(ns), numbers=numbers, seqs=seqs or [None])
            rows = yield from fetch(read)
            parts.sealed = {row.number: row.chunk for row in rows}
        return parts


@dataclass(slots=True)
class _Walk:
    """A walk along a chain of ancestors.

    Args:
        missing: Channels whose nearest value was not found yet.
        passed: The keys of the checkpoints that were passed.
        writes: By channel, the writes at each checkpoint, newest checkpoint first.
        seeds: By channel, the nearest value, and the id of the checkpoint that has it.
    """

    missing: set[str]
    passed: set[bytes]
    writes: dict[str, list[list[LoadedWrite]]]
    seeds: dict[str, tuple[Inline | Stored, str]] = field(default_factory=dict)

    def take(self, thread: StoredThread, row: AncestorRow, writes: Sequence[LoadedWrite]) -> bool:
        """Record an ancestor with its writes. False at the end of the walk."""
        if row.checkpoint_key in self.passed:
            return False
        self.passed.add(row.checkpoint_key)
        for name in self.missing:
            own = [write for write in writes if write.channel == name]
            if own:
                self.writes[name].append(own)
        with naming_checkpoint(thread.thread_id, row.checkpoint_id):
            values = ancestor_content(thread, row).values
        for name in self.missing & values.keys():
            self.seeds[name] = values[name].value, row.checkpoint_id
        self.missing -= values.keys()
        return bool(self.missing)


def _follow(walk: _Walk, thread: StoredThread, rows: Sequence[LineRow]) -> bytes | None:
    """Walk along a page of a chain; return the key of the checkpoint that begins the next page, if any.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    line = read_rows(AncestorRow, [row for row in rows if row.kind == loading.CHECKPOINT])
    line.sort(key=lambda row: row.depth)
    for row in line[:1]:  # its values are not needed, but it leads to its parent
        with naming_checkpoint(thread.thread_id, row.checkpoint_id):
            ancestor_content(thread, row)
    names = {row.depth: row.checkpoint_id for row in line}
    writes: dict[int, list[LoadedWrite]] = {}
    for write in read_rows(AncestorsWriteRow, [row for row in rows if row.kind == loading.WRITE]):
        with naming_checkpoint(thread.thread_id, names.get(write.depth, "?")):
            writes.setdefault(write.depth, []).extend(decode_writes(thread, write.checkpoint_key, (write,)))
    for row in line[1:]:
        if not walk.take(thread, row, writes.get(row.depth, ())):
            return None
        if row.depth == ANCESTORS_PAGE:
            return row.checkpoint_key
    return None
