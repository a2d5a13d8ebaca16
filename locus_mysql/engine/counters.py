"""Counts of connections, retries, traffic and cache hits: `Counters`."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from ..drivers.interface import Traffic


@dataclass(frozen=True, slots=True)
class PoolState:
    """The connections of one pool at one moment.

    Args:
        open: Connections that are open, or being opened.
        in_use: The number of these that are in use.
        waiting: The number of calls that wait for a connection.
    """

    open: int = 0
    in_use: int = 0
    waiting: int = 0


class Counters:
    """Counters shared by any number of threads and event loops. They only grow; a forked child starts at zero."""

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """Count from zero, with a new lock: a thread of the parent may hold the old one forever."""
        # Reentrant, because the garbage collector may end an abandoned call of a task, which counts its traffic, while
        # the same thread holds the lock.
        self.lock = threading.RLock()
        self.opened = self.lost = self.retries = 0
        self._looked_up: Counter[tuple[str, bool]] = Counter()
        #: Of all pools, which add to it with the lock held.
        self.total = Traffic()

    def open_one(self) -> None:
        """Count a connection that was opened."""
        with self.lock:
            self.opened += 1

    def lose(self, connections: int) -> None:
        """Count connections that were dropped because they, or their server, failed."""
        with self.lock:
            self.lost += connections

    def retry(self) -> None:
        """Count a batch that is repeated."""
        with self.lock:
            self.retries += 1

    def look_up(self, cache: str, *, hit: bool) -> None:
        """Count a look-up in a cache.

        Args:
            cache: The name of the cache.
            hit: Whether the cache had the value.
        """
        with self.lock:
            self._looked_up[cache, hit] += 1

    def looked_up(self, cache: str, *, hit: bool) -> int:
        """Return the number of such look-ups."""
        with self.lock:
            return self._looked_up[cache, hit]
