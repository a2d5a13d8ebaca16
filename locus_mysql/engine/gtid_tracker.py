"""Tracks the transactions of a group of servers that a process has seen, so that no later read is older. No I/O.

A secondary must first have executed all transactions whose effects this process has seen. These are all transactions
that a server had executed when it last answered, and those that it was committing then: a transaction becomes visible a
moment before it is counted as executed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakValueDictionary

from ..config import Endpoint
from ..dialect.server_roles import CARRIED_OUT
from ..drivers.interface import Result
from .at_fork import reset_at_fork
from .gtids import GTIDs
from .rows import read_rows


class GtidTracker:
    """The transactions whose effects this process has seen. Threads may share it.

    The query `dialect.server_roles.CARRIED_OUT` at the end of each packet returns the transactions that the packet's
    results may show. If an answer arrived incompletely, the seen transactions are unknown until the primary has
    answered again.
    """

    def __init__(self) -> None:
        self._carried_out = GTIDs()
        self._committing = GTIDs()
        self._last: tuple[str, str] = ("", "")
        self._incomplete_answers = self._answered_after = 0
        self._primary_has_gtids = True
        self._text = ""
        self._lock = (
            threading.RLock()
        )  # reentrant, as the garbage collector may end a call, which calls `record_incomplete`
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork, replace the lock. The child inherits the transactions that the parent has seen."""
        self._lock = threading.RLock()

    def begin(self) -> int:
        """Return a mark, before a packet is sent, for `record` or `record_incomplete` to compare with."""
        return self._incomplete_answers

    def record(self, answer: Result, begun: int, *, primary: bool) -> None:
        """Record a server's answer to `CARRIED_OUT`.

        Args:
            answer: The answer.
            begun: The mark that `begin` returned.
            primary: Whether the server is the primary, which has all transactions of the others.
        """
        ((committing, carried_out, mode),) = read_rows(CARRIED_OUT.row, answer.rows)
        with self._lock:
            if primary:
                self._primary_has_gtids = mode == "ON"
                self._answered_after = max(self._answered_after, begun)
            if self._last == (committing, carried_out):
                return
            self._last = committing, carried_out
            self._carried_out |= GTIDs.read(carried_out)
            self._committing |= GTIDs.read(committing)
            self._text = str(self._carried_out | self._committing)

    def record_incomplete(self) -> None:
        """Record that an answer of the primary arrived incompletely: it may have shown unknown transactions."""
        with self._lock:
            self._incomplete_answers += 1

    def forget_committing(self) -> None:
        """Forget transactions that were being committed, as they may have failed; the primary is queried again."""
        with self._lock:
            self._committing = GTIDs()
            self._last = ("", "")
            self._text = str(self._carried_out)
            self._incomplete_answers += 1

    @property
    def primary_has_gtids(self) -> bool:
        """Return whether the primary is known to have GTIDs (``gtid_mode = ON``)."""
        return self._primary_has_gtids

    def required_set(self) -> str | None:
        """The GTID set that a server must have executed before it is read; None if only the primary may be read."""
        with self._lock:
            return self._text if self._primary_has_gtids and self._answered_after == self._incomplete_answers else None


class _Register:
    """The trackers of this process, by the group of servers."""

    def __init__(self) -> None:
        self._used: set[frozenset[Endpoint]] = set()
        self._trackers: WeakValueDictionary[frozenset[Endpoint], GtidTracker] = WeakValueDictionary()
        self.reset_in_child()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork, replace the lock, as for `GtidTracker`."""
        self._lock = threading.Lock()

    def use(self, servers: Iterable[Endpoint]) -> None:
        """Record that transactions of these servers may be seen while no tracker exists."""
        with self._lock:
            self._used.add(frozenset(servers))

    def get(self, servers: frozenset[Endpoint]) -> GtidTracker | None:
        """Return the tracker of these servers, if one is in use."""
        return self._trackers.get(servers)

    def get_or_create(self, servers: Iterable[Endpoint]) -> GtidTracker:
        """Return the tracker of these servers, created if absent. All databases feed it as long as it is referenced."""
        with self._lock:
            key = frozenset(servers)
            tracker = self._trackers.get(key)
            if tracker is None:
                tracker = self._trackers[key] = GtidTracker()
                if key in self._used:
                    tracker.record_incomplete()
            self._used.add(key)
            return tracker


#: The trackers that all databases of this process share.
REGISTER = _Register()
