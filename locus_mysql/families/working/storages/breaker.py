"""A circuit breaker: decides when a storage that does not answer is tried again. Does no I/O; its clock is given."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from enum import Enum


class Admission(Enum):
    """The breaker's decision about a call."""

    GO = "call the storage"
    PROBE = "check whether the storage answers again; no other call does so now"
    NO = "do not call the storage"


class Breaker:
    """Closed while the storage answers. A failure opens it; after each wait, one call then probes the storage.

    A storage that soon fails again, such as a server that answers but takes no writes, is probed less often than after
    a first failure.

    Args:
        first_wait_s: The first wait, in seconds; each further one is twice as long.
        longest_wait_s: The longest wait.
        jitter: Each wait is up to this part shorter or longer, so that not all processes probe at once.
        clock: Returns the time in seconds.
        uniform: Returns a random number from 0 to 1.
    """

    def __init__(
        self,
        first_wait_s: float,
        longest_wait_s: float,
        jitter: float,
        clock: Callable[[], float],
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._first_wait_s, self._longest_wait_s, self._jitter = first_wait_s, longest_wait_s, jitter
        self._clock, self._uniform = clock, uniform
        self._lock = threading.Lock()
        self._wait_s = first_wait_s
        self._until: float | None = None
        self._back_at = -math.inf
        self._probing = False
        #: The number of past outages. A call that was admitted before an outage cannot open the breaker after it.
        self.outages = 0

    @property
    def open(self) -> bool:
        """Return whether the storage is considered unavailable."""
        return self._until is not None

    def admit(self, *, at_once: bool = False) -> Admission:
        """Decide what a call may do now. The caller of a probe reports its outcome to `probed` or `given_up`.

        Args:
            at_once: Probe now, even if the wait is not over.
        """
        if self._until is None:
            return Admission.GO
        with self._lock:
            if self._until is None:
                return Admission.GO
            if self._probing or (self._clock() < self._until and not at_once):
                return Admission.NO
            self._probing = True
            return Admission.PROBE

    def failed(self, outages: int) -> bool:
        """Report that an admitted call was not answered; returns whether this begins an outage.

        Args:
            outages: The value of `outages` when the call was admitted.
        """
        with self._lock:
            if self._until is not None or outages != self.outages:
                return False
            stayed = self._clock() - self._back_at > 2 * self._wait_s
            self._wait_s = self._first_wait_s if stayed else min(2 * self._wait_s, self._longest_wait_s)
            self._set()
            return True

    def probed(self, answered: bool) -> None:
        """Report the outcome of a probe."""
        with self._lock:
            self._probing = False
            if answered:
                self._until = None
                self._back_at = self._clock()
                self.outages += 1
            else:
                self._wait_s = min(2 * self._wait_s, self._longest_wait_s)
                self._set()

    def given_up(self) -> None:
        """Report that a probe was cancelled; the next call may probe."""
        with self._lock:
            self._probing = False

    def _set(self) -> None:
        self._until = self._clock() + self._wait_s * (1 + self._jitter * (2 * self._uniform() - 1))
