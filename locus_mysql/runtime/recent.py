"""What was used most recently, within a limit of bytes: `Recent`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from ..engine.at_fork import tell_at_fork

V = TypeVar("V")


class Recent(Generic[V]):
    """Values by key; those unused for longest are dropped when all together would take more than the limit.

    Args:
        limit_bytes: The limit. A value that is larger by itself is not kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """Keep nothing, under a new lock: after a fork, the old one may be held for ever."""
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        """The value kept under a key, if it still is."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, size_bytes: int) -> None:
        """Keep a value in place of the one kept under its key."""
        with self._lock:
            _, before_bytes = self._kept.pop(key, (None, 0))
            self._size_bytes -= before_bytes
            if size_bytes > self._limit_bytes:
                return
            self._kept[key] = (value, size_bytes)
            self._size_bytes += size_bytes
            while self._size_bytes > self._limit_bytes:
                _, (_, dropped_bytes) = self._kept.popitem(last=False)
                self._size_bytes -= dropped_bytes
