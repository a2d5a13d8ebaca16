"""A cache of recently used threads: `ThreadCache`, with a `Snapshot` of each thread.

A snapshot is of one version of its thread, and is used only if the server confirms that the thread still has that
version. An operation takes it once, at its beginning, and offers another one at its end. That one is stored if
no other snapshot of the thread was stored or dropped meanwhile: an answer may arrive late.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from ...config import MySQLConfig
from ...engine.logs import Counters
from ...lru_cache import LRUCache
from ...records.leases import Turns
from ...runtime.arguments import microseconds
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from .coding.codec import EncodedState, HashedLogs, size_bytes
from .coding.delta import Held, Lineage, follows
from .statements.tables import CheckpointDialect, ThreadKey

#: Maximum number of cached threads. The least recently used are dropped first; their next save stores a whole state.
THREADS_REMEMBERED = 10_000

#: Of these, the most recently used are kept unpacked; the others are packed, in a third of the memory.
THREADS_UNPACKED = 200


class CachedState(NamedTuple):
    """A thread's newest state, cached for loads and for the next save.

    Args:
        encoded: The state.
        hashed: Its logs.
        memo: Data that the encoder reuses for the next state.
        memo_bytes: Approximate memory of the memo.
        checkpoint_id: The id of its checkpoint, if this process knows it.
    """

    encoded: EncodedState
    hashed: HashedLogs
    memo: object = None
    memo_bytes: int = 0
    checkpoint_id: str | None = None

    @property
    def size_bytes(self) -> int:
        """The approximate memory of all fields."""
        return len(self.encoded.head) + size_bytes(self.hashed) + self.memo_bytes


class Snapshot(NamedTuple):
    """The cached data of one thread at one version.

    Args:
        lineages: The lineages of the state last loaded and of the one last saved; the next state builds on one of the
            two.
        newest: The lineage of the thread's newest checkpoint; empty if it is not known.
        version: The thread's version when all these lineages existed. While the thread has it, no process has written
            to the thread.
        shared: Whether another process had written to the thread when it was last loaded; None if it was not loaded
            again since. If so, another one has probably written again by the next load, as with alternating workers;
            reading the version first would then cost another round trip.
        state: The newest state, if it is cached.
        stamp: Distinguishes this snapshot from others of the thread; assigned by the cache.
    """

    lineages: tuple[Lineage, ...] = ()
    newest: Lineage = ()
    version: bytes | None = None
    shared: bool | None = None
    state: CachedState | None = None
    stamp: int = 0

    @property
    def held(self) -> Held | None:
        """Return the newest state, if it is cached."""
        if self.state is None:
            return None
        return Held(self.newest, self.state.hashed, self.state.encoded)

    def with_state(self, state: CachedState | None, stamp: int) -> Snapshot:
        """Return the same snapshot with this state and stamp."""
        return Snapshot(self.lineages, self.newest, self.version, self.shared, state, stamp)

    def lineage_for(self, hashed: HashedLogs) -> Lineage:
        """Return the lineage that a state with these logs most likely continues; empty if none is known."""
        if len(self.lineages) < 2:
            return self.lineages[0] if self.lineages else ()
        return max(self.lineages, key=lambda lineage: follows(hashed, lineage[0]))

    def after_save(self, lineage: Lineage, state: CachedState) -> Snapshot:
        """Return the snapshot right after a save, whose row's token became the thread's version."""
        return Snapshot((lineage,), lineage, lineage[0].token, self.shared, state)

    def after_loading_newest(self, lineage: Lineage, version: bytes, state: CachedState) -> Snapshot:
        """Return the snapshot of a load of the newest checkpoint."""
        if version != self.version:  # the lineages known before may be deleted
            return Snapshot((lineage,), lineage, version, None if self.version is None else True, state)
        if self.state is not None:
            state = state._replace(
                memo=self.state.memo,
                memo_bytes=self.state.memo_bytes,
                checkpoint_id=state.checkpoint_id or self.state.checkpoint_id,
            )
        return Snapshot(self._with(lineage), lineage, version, False, state)

    def after_loading(self, lineage: Lineage, version: bytes) -> Snapshot:
        """Return the snapshot of a load of one of its checkpoints."""
        if version != self.version:
            return Snapshot((lineage,), (), version)
        return self._replace(lineages=self._with(lineage))

    def after_delete(self, seq: int | None, version: bytes | None) -> Snapshot:
        """Return the snapshot without one checkpoint.

        Args:
            seq: The checkpoint's seq; None if there was none.
            version: The thread's version after the delete, if the version before it was the cached one; else None.
        """
        kept = tuple(lineage for lineage in self.lineages if lineage[0].seq != seq)
        if self.newest and self.newest[0].seq == seq:
            return Snapshot(kept, (), version or self.version, self.shared)
        return self._replace(lineages=kept, version=version or self.version)

    def _with(self, lineage: Lineage) -> tuple[Lineage, ...]:
        others = tuple(other for other in self.lineages if other[0].token != lineage[0].token)
        return (lineage, *others[-1:])


class ThreadCache:
    """Snapshots of recently used threads.

    Args:
        states: Keeps the newest states. It may drop any of them.
        owner: Distinguishes the states of these threads there.
        limit: Maximum number of cached threads.
        unpacked: Maximum number of threads that are kept unpacked.
    """

    def __init__(
        self,
        states: LRUCache[CachedState],
        owner: Hashable = None,
        limit: int = THREADS_REMEMBERED,
        unpacked: int = THREADS_UNPACKED,
    ) -> None:
        self._states = states
        self._owner = owner
        self._limit = limit
        self._unpacked = min(unpacked, limit)
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """Drop all snapshots, and replace the lock: after a fork, a thread of the parent may hold it for ever."""
        self._threads: OrderedDict[ThreadKey, Snapshot] = OrderedDict()
        self._packed: OrderedDict[ThreadKey, bytes] = OrderedDict()
        self._stamps = 0
        self._shared = False
        self._forgettings = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Drop all snapshots."""
        with self._lock:
            self._threads.clear()
            self._packed.clear()
            self._forgettings += 1

    def snapshot(self, key: ThreadKey) -> Snapshot:
        """Return the cached snapshot of a thread."""
        with self._lock:
            known = self._known(key)
            state = self._states.get((self._owner, key)) if known.stamp > 0 else None
            return known if state is None else known.with_state(state, known.stamp)

    def remember(self, key: ThreadKey, before: Snapshot, after: Snapshot) -> None:
        """Store a snapshot in place of the one that an operation began with.

        If another operation ended meanwhile, the snapshot with the later checkpoint is kept. If the thread was dropped
        meanwhile, it stays so.
        """
        with self._lock:
            known = self._known(key)
            if known.stamp == before.stamp or _is_later(after, known):
                self._put(key, after)
                self._shared = self._shared if after.shared is None else after.shared

    def is_shared(self, snapshot: Snapshot) -> bool:
        """Return whether another process probably wrote to a thread; if unknown, the answer for the last one."""
        return self._shared if snapshot.shared is None else snapshot.shared

    def delete_checkpoint(self, key: ThreadKey, before: Snapshot, seq: int | None, version: bytes | None) -> None:
        """Drop a deleted checkpoint, even if another snapshot of the thread was stored meanwhile.

        Args:
            key: The thread.
            before: The snapshot that the delete began with.
            seq: The checkpoint's seq; None if there was none.
            version: The thread's version after the delete, if the version before it was the snapshot's; else None.
        """
        with self._lock:
            known = self._known(key)
            if known.stamp < 1:
                self._forgettings += 1
                return
            unchanged = known.stamp == before.stamp
            known = known._replace(state=self._states.get((self._owner, key)))
            self._put(key, known.after_delete(seq, version if unchanged else None))

    def forget(self, key: ThreadKey, before: Snapshot | None = None) -> None:
        """Drop a thread.

        Args:
            key: The thread.
            before: The snapshot of the operation that found no such thread; a newer snapshot is kept.
        """
        with self._lock:
            if before is not None and self._known(key).stamp != before.stamp:
                return
            self._forgettings += 1
            self._threads.pop(key, None)
            self._packed.pop(key, None)
            self._states.pop((self._owner, key))

    def _known(self, key: ThreadKey) -> Snapshot:
        """Return the cached snapshot of a thread, without its state. An unknown thread has a stamp below 1."""
        known = self._threads.get(key)
        if known is not None:
            return known
        packed = self._packed.get(key)
        if packed is not None:
            unpacked: Snapshot = pickle.loads(packed)  # noqa: S301 - this process packed it
            return unpacked
        return Snapshot(stamp=-self._forgettings)

    def _put(self, key: ThreadKey, snapshot: Snapshot) -> None:
        self._stamps += 1
        if self._packed:
            self._packed.pop(key, None)
        self._threads[key] = snapshot.with_state(None, self._stamps)
        self._threads.move_to_end(key)
        while len(self._threads) > self._unpacked:
            oldest, unused = self._threads.popitem(last=False)
            self._packed[oldest] = pickle.dumps(unused, pickle.HIGHEST_PROTOCOL)
        while len(self._threads) + len(self._packed) > self._limit:
            forgotten, _ = self._packed.popitem(last=False)
            self._states.pop((self._owner, forgotten))
        if snapshot.state is None:
            self._states.pop((self._owner, key))
        else:
            self._states.put((self._owner, key), snapshot.state, snapshot.state.size_bytes)


def _is_later(one: Snapshot, other: Snapshot) -> bool:
    return bool(one.newest and other.newest) and one.newest[0].seq > other.newest[0].seq


#: Ids chosen by callers that are remembered at most.
KNOWN_IDS = 1_000


class Context:
    """The options of a store, its tables, and its caches, which it shares with other stores of its database.

    Args:
        config: The options.
        dialect: The tables.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.config = config
        self.sql = dialect
        self.cache = ThreadCache(LRUCache(config.cache_bytes))
        #: Ids chosen by callers that a save of this process stored or found to exist, or that it loaded, with their
        #: threads. The next save of such an id expects to replace it.
        self.known_ids: LRUCache[bool] = LRUCache(KNOWN_IDS)
        self.turns = Turns(dialect)
        self.counters = Counters()
        #: Encrypts payloads; `Sealing.of` binds it to a tenant and a thread.
        self.sealing = Sealing(config.encryption, dialect.schema.family)
        self.ttl_us = microseconds(config.ttl_s)

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        tables = self.sql.schema.family, self.config.table_prefix, self.config.encryption
        self.counters = database.counters
        self.cache = database.cache(("threads", tables), lambda: ThreadCache(database.states, tables))
        self.known_ids = database.cache(("known ids", tables), lambda: LRUCache(KNOWN_IDS))
        self.turns.attach(database)
