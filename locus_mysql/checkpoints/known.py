"""What a process remembers of the threads it serves, so that a save need not read before it writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from .codec import EncodedState
from .delta import Lineage, follows

#: Threads remembered at once; those unused for longest are forgotten first, which costs their next save a whole state.
THREADS_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one thread.

    Args:
        lineages: Of the state last loaded and of the one last saved: a state goes on from either.
        newest: The lineage of the thread's newest checkpoint.
        last_seq: The thread's ``last_seq`` when that was so. As long as it is, nobody has written to the thread.
    """

    lineages: tuple[Lineage, ...]
    newest: Lineage = ()
    last_seq: int = -1


class KnownThreads:
    """The lineages of recently used threads. Only a hint: the server checks every base before a row is built on it."""

    def __init__(self, limit: int = THREADS_REMEMBERED) -> None:
        self._limit = limit
        self._threads: OrderedDict[Hashable, Known] = OrderedDict()
        self._lock = threading.Lock()

    def lineage_for(self, key: Hashable, state: EncodedState) -> Lineage:
        """The lineage that a state most likely goes on from; empty if none is known."""
        lineages = self._get(key).lineages
        if len(lineages) < 2:
            return lineages[0] if lineages else ()
        return max(lineages, key=lambda lineage: follows(state, lineage[0]))

    def last_seq(self, key: Hashable) -> int | None:
        """The thread's ``last_seq`` when all lineages known of it were there; None if that is not known."""
        last_seq = self._get(key).last_seq
        return None if last_seq < 0 else last_seq

    def newest(self, key: Hashable) -> tuple[Lineage, int]:
        """The lineage of a thread's newest checkpoint, which it is if the thread's ``last_seq`` still is the second."""
        known = self._get(key)
        return known.newest, known.last_seq

    def saved(self, key: Hashable, lineage: Lineage) -> None:
        """Remember a lineage whose newest state was just stored."""
        self._remember(key, Known((lineage,), lineage, lineage[0].seq))

    def loaded(self, key: Hashable, lineage: Lineage, *, last_seq: int | None) -> None:
        """Remember a lineage that was read, beside the one last saved.

        Args:
            key: The thread.
            lineage: Of the state that was read.
            last_seq: The thread's, if the state is its newest.
        """
        known = self._get(key)
        others = tuple(other for other in known.lineages if other[0].token != lineage[0].token)
        lineages = (lineage, *others[-1:])
        if last_seq is None:
            self._remember(key, Known(lineages, known.newest, known.last_seq))
        else:
            self._remember(key, Known(lineages, lineage, last_seq))

    def deleted(self, key: Hashable, checkpoint_seq: int, last_seq: int) -> None:
        """Note that a checkpoint was deleted, which raised the thread's ``last_seq``."""
        known = self._get(key)
        if known.last_seq == last_seq - 1 and known.newest and known.newest[0].seq != checkpoint_seq:
            self._remember(key, Known(known.lineages, known.newest, last_seq))

    def forget(self, key: Hashable) -> None:
        """Forget a thread."""
        with self._lock:
            self._threads.pop(key, None)

    def _get(self, key: Hashable) -> Known:
        with self._lock:
            return self._threads.get(key, _UNKNOWN)

    def _remember(self, key: Hashable, known: Known) -> None:
        with self._lock:
            self._threads[key] = known
            self._threads.move_to_end(key)
            while len(self._threads) > self._limit:
                self._threads.popitem(last=False)


_UNKNOWN = Known(())
