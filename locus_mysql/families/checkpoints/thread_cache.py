"""What a process remembers of the threads it serves: `ThreadMemory`, and of each thread a `Snapshot`.

A snapshot is of one version of its thread, and is believed only while the server says that the thread still has that
version. An operation takes it once, at its beginning, and offers another one at its end. That one is remembered if
nothing else was remembered, or forgotten, of the thread meanwhile: an answer may arrive late.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from ...engine.at_fork import tell_at_fork
from .coding.codec import EncodedState
from .coding.delta import Held, Lineage, follows
from .coding.digests import HashedLogs, size_bytes

#: Threads remembered at once; those unused for longest are forgotten first, which costs their next save a whole state.
THREADS_REMEMBERED = 10_000

#: Of these, the most recently used are kept as they are; the others are packed, in a third of the memory.
THREADS_UNPACKED = 200

#: A tenant and a thread id.
ThreadKey: TypeAlias = tuple[str, str]


class KeptState(NamedTuple):
    """A thread's newest state, kept to be loaded and continued.

    Args:
        encoded: The state.
        hashed: Its logs.
        memo: What its encoder wants to have when it encodes the next state.
        memo_bytes: Memory that this takes, roughly.
    """

    encoded: EncodedState
    hashed: HashedLogs
    memo: object = None
    memo_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Memory that all of it takes, roughly."""
        return len(self.encoded.head) + size_bytes(self.hashed) + self.memo_bytes


class Snapshot(NamedTuple):
    """What is known of one thread as it was at one version.

    Args:
        lineages: Those of the state last loaded and of the one last saved; the next state builds on one of the two.
        newest: The lineage of the thread's newest checkpoint; empty if it is not known.
        version: The thread's version when all these lineages were there. As long as the thread has it, nobody has
            written to the thread.
        shared: Whether another process had written to the thread when it was last loaded; None if it was not loaded
            again since. If so, another one has probably written again by the next load, as where workers take turns;
            to ask for the version first would then cost a round trip more.
        state: The newest state, if it is kept.
        stamp: Tells this snapshot from others of the thread; given by the memory.
    """

    lineages: tuple[Lineage, ...] = ()
    newest: Lineage = ()
    version: bytes | None = None
    shared: bool | None = None
    state: KeptState | None = None
    stamp: int = 0

    @property
    def held(self) -> Held | None:
        """The newest state, if it is kept."""
        if self.state is None:
            return None
        return Held(self.newest, self.state.hashed, self.state.encoded)

    def with_state(self, state: KeptState | None, stamp: int) -> Snapshot:
        """The same with this state and stamp."""
        return Snapshot(self.lineages, self.newest, self.version, self.shared, state, stamp)

    def lineage_for(self, hashed: HashedLogs) -> Lineage:
        """The lineage that a state with these logs most likely goes on from; empty if none is known."""
        if len(self.lineages) < 2:
            return self.lineages[0] if self.lineages else ()
        return max(self.lineages, key=lambda lineage: follows(hashed, lineage[0]))

    def after_save(self, lineage: Lineage, state: KeptState) -> Snapshot:
        """The thread right after a save, whose row's token became its version."""
        return Snapshot((lineage,), lineage, lineage[0].token, self.shared, state)

    def after_loading_newest(self, lineage: Lineage, version: bytes, state: KeptState) -> Snapshot:
        """The thread as it was when its newest checkpoint was read."""
        if version != self.version:  # the lineages known before may be gone
            return Snapshot((lineage,), lineage, version, None if self.version is None else True, state)
        if self.state is not None:
            state = state._replace(memo=self.state.memo, memo_bytes=self.state.memo_bytes)
        return Snapshot(self._with(lineage), lineage, version, False, state)

    def after_loading(self, lineage: Lineage, version: bytes) -> Snapshot:
        """The thread as it was when one of its checkpoints was read."""
        if version != self.version:
            return Snapshot((lineage,), (), version)
        return self._replace(lineages=self._with(lineage))

    def after_delete(self, seq: int | None, version: bytes | None) -> Snapshot:
        """The thread without one checkpoint.

        Args:
            seq: The checkpoint's; None if there was none.
            version: The thread's after the delete, if before it was the one known; else None.
        """
        kept = tuple(lineage for lineage in self.lineages if lineage[0].seq != seq)
        if self.newest and self.newest[0].seq == seq:
            return Snapshot(kept, (), version or self.version, self.shared)
        return self._replace(lineages=kept, version=version or self.version)

    def _with(self, lineage: Lineage) -> tuple[Lineage, ...]:
        others = tuple(other for other in self.lineages if other[0].token != lineage[0].token)
        return (lineage, *others[-1:])


class ThreadMemory:
    """Snapshots of recently used threads.

    Args:
        limit_bytes: What kept states may take at most; those unused for longest are dropped first, and one that is
            larger by itself is not kept.
        limit: Threads remembered at once.
        unpacked: Of these, how many are kept as they are.
    """

    def __init__(self, limit_bytes: int, limit: int = THREADS_REMEMBERED, unpacked: int = THREADS_UNPACKED) -> None:
        self._limit_bytes = limit_bytes
        self._limit = limit
        self._unpacked = min(unpacked, limit)
        self.begin_empty()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: begin with nothing. The lock may be held for ever, by a thread that the child does not have."""
        self.begin_empty()

    def begin_empty(self) -> None:
        """Forget everything, under a new lock."""
        self._threads: OrderedDict[ThreadKey, Snapshot] = OrderedDict()
        self._packed: OrderedDict[ThreadKey, bytes] = OrderedDict()
        self._states: OrderedDict[ThreadKey, KeptState] = OrderedDict()
        self._states_bytes = 0
        self._stamps = 0
        self._shared = False
        self._forgettings = 0
        self._lock = threading.Lock()

    def snapshot(self, key: ThreadKey) -> Snapshot:
        """What is known of a thread now."""
        with self._lock:
            known = self._known(key)
            state = self._states.get(key)
            if state is None:
                return known
            self._states.move_to_end(key)
            return known.with_state(state, known.stamp)

    def remember(self, key: ThreadKey, before: Snapshot, after: Snapshot) -> None:
        """Remember a snapshot in place of the one that an operation began with.

        If another operation ended meanwhile, the one that saw the later checkpoint counts. If the thread was forgotten
        meanwhile, it stays so.
        """
        with self._lock:
            known = self._known(key)
            if known.stamp == before.stamp or _is_later(after, known):
                self._put(key, after)
                self._shared = self._shared if after.shared is None else after.shared

    def is_shared(self, snapshot: Snapshot) -> bool:
        """Whether another process has probably written to a thread; if unknown, what held for the last one."""
        return self._shared if snapshot.shared is None else snapshot.shared

    def delete_checkpoint(self, key: ThreadKey, before: Snapshot, seq: int | None, version: bytes | None) -> None:
        """Forget a checkpoint that was deleted, whatever else was remembered of the thread meanwhile.

        Args:
            key: The thread.
            before: What the delete began with.
            seq: The checkpoint's; None if there was none.
            version: The thread's after the delete, if before it was that of the snapshot; else None.
        """
        with self._lock:
            known = self._known(key)
            if known.stamp < 1:
                self._forgettings += 1
                return
            unchanged = known.stamp == before.stamp
            state = self._states.get(key)
            known = known._replace(state=state)
            self._put(key, known.after_delete(seq, version if unchanged else None))

    def forget(self, key: ThreadKey, before: Snapshot | None = None) -> None:
        """Forget a thread.

        Args:
            key: The thread.
            before: The snapshot of the operation that found the thread gone; if another one is known by now, that is
                kept.
        """
        with self._lock:
            if before is not None and self._known(key).stamp != before.stamp:
                return
            self._forgettings += 1
            self._threads.pop(key, None)
            self._packed.pop(key, None)
            self._drop_state(key)

    def _known(self, key: ThreadKey) -> Snapshot:
        """What is known of a thread, without its state. A thread of which nothing is known has a stamp too, below 1."""
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
            self._drop_state(forgotten)
        self._drop_state(key)
        size_bytes = 0 if snapshot.state is None else snapshot.state.size_bytes
        if snapshot.state is not None and size_bytes <= self._limit_bytes:
            self._states[key] = snapshot.state
            self._states_bytes += size_bytes
            while self._states_bytes > self._limit_bytes:
                self._drop_state(next(iter(self._states)))

    def _drop_state(self, key: ThreadKey) -> None:
        dropped = self._states.pop(key, None)
        if dropped is not None:
            self._states_bytes -= dropped.size_bytes


def _is_later(one: Snapshot, other: Snapshot) -> bool:
    return bool(one.newest and other.newest) and one.newest[0].seq > other.newest[0].seq
