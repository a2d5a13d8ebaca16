"""What a process remembers of the threads it serves, so that a save need not read before it writes."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from .at_fork import forget_at_fork
from .delta import Lineage, follows
from .digests import HashedLogs

#: Threads remembered at once; those unused for longest are forgotten first, which costs their next save a whole state.
THREADS_REMEMBERED = 10_000

#: Of these, the most recently used are kept as they are; the others are packed, in a third of the memory.
THREADS_UNPACKED = 200


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one thread.

    Args:
        lineages: Of the state last loaded and of the one last saved: a state goes on from either.
        newest: The lineage of the thread's newest checkpoint.
        version: The thread's version when all these lineages were there. As long as it is, nobody has written to it.
        shared: Whether another process had written to the thread when it was last loaded. Then another one is likely to
            have by the next load as well, as where workers take turns, and asking for the version is a round trip more.
    """

    lineages: tuple[Lineage, ...]
    newest: Lineage = ()
    version: bytes | None = None
    shared: bool = False


class KnownThreads:
    """The lineages of recently used threads. Only a hint: the server checks every base before a row is built on it.

    Args:
        limit: Threads remembered at once.
        unpacked: Of these, how many are kept as they are.
    """

    def __init__(self, limit: int = THREADS_REMEMBERED, unpacked: int = THREADS_UNPACKED) -> None:
        self._limit = limit
        self._unpacked = min(unpacked, limit)
        self.begin_empty()
        forget_at_fork(self)

    def begin_empty(self) -> None:
        """Forget everything."""
        self._threads: OrderedDict[Hashable, Known] = OrderedDict()
        self._packed: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def lineage_for(self, key: Hashable, hashed: HashedLogs) -> Lineage:
        """The lineage that a state with these logs most likely goes on from; empty if none is known."""
        lineages = self._get(key).lineages
        if len(lineages) < 2:
            return lineages[0] if lineages else ()
        return max(lineages, key=lambda lineage: follows(hashed, lineage[0]))

    def version(self, key: Hashable) -> bytes | None:
        """The thread's version when all lineages known of it were there; None if that is not known."""
        return self._get(key).version

    def newest(self, key: Hashable) -> tuple[Lineage, bytes | None]:
        """The lineage of a thread's newest checkpoint, which it is if the thread's version still is the second.

        The second is None if that is not known, or not likely.
        """
        known = self._get(key)
        return known.newest, None if known.shared else known.version

    def saved(self, key: Hashable, lineage: Lineage) -> None:
        """Remember a lineage whose newest state was just stored; its token became the thread's version."""
        self._remember(key, Known((lineage,), lineage, lineage[0].token, self._get(key).shared))

    def loaded(self, key: Hashable, lineage: Lineage, *, version: bytes | None) -> None:
        """Remember a lineage that was read, beside the one last saved.

        Args:
            key: The thread.
            lineage: Of the state that was read.
            version: The thread's, if the state is its newest.
        """
        known = self._get(key)
        others = tuple(other for other in known.lineages if other[0].token != lineage[0].token)[-1:]
        if version is None:
            self._remember(key, replace(known, lineages=(lineage, *others)))
        elif version == known.version:
            self._remember(key, Known((lineage, *others), lineage, version))
        else:  # whether the others still are there is not known
            self._remember(key, Known((lineage,), lineage, version, shared=known.version is not None))

    def deleted(self, key: Hashable, checkpoint_seq: int, known_version: bytes, version: bytes) -> None:
        """Note that a checkpoint was deleted, which changed the thread's version if it was the known one."""
        known = self._get(key)
        if known.version == known_version and known.newest and known.newest[0].seq != checkpoint_seq:
            kept = tuple(lineage for lineage in known.lineages if lineage[0].seq != checkpoint_seq)
            self._remember(key, replace(known, lineages=kept, version=version))

    def forget(self, key: Hashable) -> None:
        """Forget a thread."""
        with self._lock:
            self._threads.pop(key, None)
            self._packed.pop(key, None)

    def _get(self, key: Hashable) -> Known:
        with self._lock:
            known = self._threads.get(key)
            if known is not None:
                return known
            packed = self._packed.get(key)
        return _UNKNOWN if packed is None else pickle.loads(packed)  # noqa: S301 - this process packed it

    def _remember(self, key: Hashable, known: Known) -> None:
        with self._lock:
            self._packed.pop(key, None)
            self._threads[key] = known
            self._threads.move_to_end(key)
            while len(self._threads) > self._unpacked:
                oldest, unused = self._threads.popitem(last=False)
                self._packed[oldest] = pickle.dumps(unused, pickle.HIGHEST_PROTOCOL)
            while self._packed and len(self._threads) + len(self._packed) > self._limit:
                self._packed.popitem(last=False)


_UNKNOWN = Known(())
