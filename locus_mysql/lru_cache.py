"""Caches that evict the least recently used values: `LRUCache`, and `CachePart`, which shares its limit.

Uses only the standard library. Caches belong to a `Database`, which resets them in a forked child.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class LRUCache(Generic[V]):
    """Values by key, with a limit on their total size. Safe to share between threads.

    Args:
        limit: The limit, in the unit of the sizes, such as bytes. A single value that exceeds it is not cached.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """Clear the cache and replace the lock: after a fork, the old lock may be held for ever."""
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key, if it still is in the cache."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, size: int = 1) -> None:
        """Store a value, in place of any previous value of its key."""
        with self._lock:
            replaced = self._kept.pop(key, None)
            if replaced is not None:
                self._size -= replaced[1]
            if size > self._limit:
                return
            self._kept[key] = (value, size)
            self._size += size
            while self._size > self._limit:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._size -= dropped

    def pop(self, key: Hashable) -> V | None:
        """Remove the value of a key, and return it."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._size -= found[1]
            return found[0]


class CachePart(Generic[V]):
    """The values of one owner in an `LRUCache` that several share. The limit holds for all of them together.

    Args:
        whole: The cache.
        owner: Distinguishes the owner's keys from those of others.
    """

    def __init__(self, whole: LRUCache[Any], owner: Hashable) -> None:
        self._whole = whole
        self._owner = owner

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key, if it still is in the cache."""
        return self._whole.get((self._owner, key))

    def put(self, key: Hashable, value: V, size: int = 1) -> None:
        """Store a value, in place of any previous value of its key."""
        self._whole.put((self._owner, key), value, size)

    def pop(self, key: Hashable) -> V | None:
        """Remove the value of a key, and return it."""
        return self._whole.pop((self._owner, key))
