"""What a process remembers of the threads it serves, so that a save need not read before it writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from .codec import EncodedState
from .delta import Lineage, follows, lasting

#: Threads remembered at once; those unused for longest are forgotten first, which costs their next save a whole state.
THREADS_REMEMBERED = 10_000


class KnownThreads:
    """The lineages of recently used threads. Only a hint: the server checks every base before a row is built on it.

    For each thread, the lineage last saved and the one last loaded are kept: a state goes on from either.
    """

    def __init__(self, limit: int = THREADS_REMEMBERED) -> None:
        self._limit = limit
        self._lineages: OrderedDict[Hashable, tuple[Lineage, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def lineage_for(self, key: Hashable, state: EncodedState, *, provisional: bool) -> Lineage:
        """The lineage that a state most likely goes on from; empty if none is known."""
        with self._lock:
            known = self._lineages.get(key, ())
        if not provisional:
            known = tuple({lineage[0].token: lineage for lineage in map(lasting, known) if lineage}.values())
        if len(known) < 2:
            return known[0] if known else ()
        return max(known, key=lambda lineage: follows(state, lineage[0]))

    def saved(self, key: Hashable, lineage: Lineage) -> None:
        """Remember a lineage whose newest state was just stored."""
        self._remember(key, (lineage,))

    def loaded(self, key: Hashable, lineage: Lineage) -> None:
        """Remember a lineage that was read, beside the one last saved."""
        with self._lock:
            before = self._lineages.get(key, ())
        others = tuple(other for other in before if other[0].token != lineage[0].token)
        self._remember(key, (lineage, *others[-1:]))

    def forget(self, key: Hashable) -> None:
        """Forget a thread."""
        with self._lock:
            self._lineages.pop(key, None)

    def _remember(self, key: Hashable, lineages: tuple[Lineage, ...]) -> None:
        with self._lock:
            self._lineages[key] = lineages
            self._lineages.move_to_end(key)
            while len(self._lineages) > self._limit:
                self._lineages.popitem(last=False)
