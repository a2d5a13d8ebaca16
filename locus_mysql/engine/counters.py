"""What an engine counts while it runs: `Counters`."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from ..drivers.interface import Traffic
from .at_fork import tell_at_fork


@dataclass(frozen=True, slots=True)
class PoolState:
    """The connections of one pool at one moment.

    Args:
        open: Connections that are open, or being opened.
        in_use: Of these, how many calls have.
        waiting: Calls that wait for one.
    """

    open: int = 0
    in_use: int = 0
    waiting: int = 0

    def __add__(self, other: PoolState) -> PoolState:
        return PoolState(self.open + other.open, self.in_use + other.in_use, self.waiting + other.waiting)


class Counters:
    """Counts of what was done, by any number of threads and event loops. They only grow, and start anew in a fork."""

    def __init__(self) -> None:
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """Count from zero, under a new lock: a thread of the parent may hold the other one for ever."""
        self._lock = threading.Lock()
        self.opened = self.lost = self.retries = 0
        self._looked_up: Counter[tuple[str, bool]] = Counter()
        self.total = Traffic()

    def add(self, connection: object) -> None:
        """Add what went over a connection since this was last called for it."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        if traffic is None:  # a driver from outside need not count
            return
        with self._lock:
            total = self.total
            total.round_trips += traffic.round_trips
            total.sent_bytes += traffic.sent_bytes
            total.received_bytes += traffic.received_bytes
        traffic.clear()

    def open_one(self) -> None:
        """A connection was opened."""
        with self._lock:
            self.opened += 1

    def lose(self, connections: int) -> None:
        """So many connections were dropped because they, or their server, failed."""
        with self._lock:
            self.lost += connections

    def retry(self) -> None:
        """A batch is repeated."""
        with self._lock:
            self.retries += 1

    def look_up(self, cache: str, *, hit: bool) -> None:
        """Something was asked for that operations keep, and what they kept of it helped or did not.

        Args:
            cache: What was kept, in a word.
            hit: Whether it helped.
        """
        with self._lock:
            self._looked_up[cache, hit] += 1

    def looked_up(self, cache: str, *, hit: bool) -> int:
        """How often that was so."""
        with self._lock:
            return self._looked_up[cache, hit]
