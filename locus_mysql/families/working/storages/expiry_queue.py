"""Finds expired entries without scanning all entries: `ExpiryQueue`."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class ExpiryQueue(Generic[K]):
    """Keys by the time when they must be checked: a heap in which later times replace earlier ones lazily."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, K]] = []
        self._due: dict[K, int] = {}
        self._number = 0  # orders keys of one time, which need not be comparable

    def schedule(self, key: K, at_us: int | None) -> None:
        """Make `due` return a key at this time or earlier; None schedules nothing."""
        if at_us is None or self._due.get(key, at_us + 1) <= at_us:
            return
        if len(self._heap) > 2 * len(self._due) + 100:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
        self._due[key] = at_us
        self._number += 1
        heapq.heappush(self._heap, (at_us, self._number, key))

    def remove(self, key: K) -> None:
        """Forget a key."""
        self._due.pop(key, None)

    def due(self, now_us: int) -> Iterator[K]:
        """Remove and yield the keys whose time has come, each once. Keys that must stay are scheduled again after."""
        while self._heap and self._heap[0][0] <= now_us:
            at_us, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == at_us:
                del self._due[key]
                yield key
