"""When a storage that does not answer is tried again: a circuit breaker. Does no I/O, and is given the time."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from enum import Enum


class Admission(Enum):
    """What a call may do."""

    GO = "ask the storage"
    PROBE = "ask it whether it is back, as the only one"
    NO = "do not ask it"


class Breaker:
    """Closed while the storage answers. Opened by a failure; then one call after each wait tries whether it is back.

    One that goes again soon, such as a server that answers but takes no writes, is not tried as often as at first.

    Args:
        first_wait_s: The first wait, in seconds; each further one is twice as long.
        longest_wait_s: The longest.
        jitter: Each wait is up to this part shorter or longer, so that not all processes try at once.
        clock: Tells the time in seconds.
        chance: A number from 0 to 1.
    """

    def __init__(
        self,
        first_wait_s: float,
        longest_wait_s: float,
        jitter: float,
        clock: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._first_wait_s, self._longest_wait_s, self._jitter = first_wait_s, longest_wait_s, jitter
        self._clock, self._chance = clock, chance
        self._lock = threading.Lock()
        self._wait_s = first_wait_s
        self._until: float | None = None
        self._back_at = -math.inf
        self._probing = False
        #: Counts the outages that are over, so that a call which began before one does not begin another.
        self.outages = 0

    @property
    def open(self) -> bool:
        """Whether the storage is away."""
        return self._until is not None

    def begin_in_child(self) -> None:
        """After a fork: a new lock; whoever probed is not here."""
        self._lock, self._probing = threading.Lock(), False

    def admit(self, *, at_once: bool = False) -> Admission:
        """What a call may do now. Whoever may probe must say what came of it.

        Args:
            at_once: Without waiting for the time to try again.
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
        """A call that was let through was not answered; whether an outage begins with it.

        Args:
            outages: What `outages` was when it was let through.
        """
        with self._lock:
            if self._until is not None or outages != self.outages:
                return False
            stayed = self._clock() - self._back_at > 2 * self._wait_s
            self._wait_s = self._first_wait_s if stayed else min(2 * self._wait_s, self._longest_wait_s)
            self._set()
            return True

    def probed(self, answered: bool) -> None:
        """What came of a probe."""
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
        """A probe was cancelled; the next call may probe."""
        with self._lock:
            self._probing = False

    def _set(self) -> None:
        self._until = self._clock() + self._wait_s * (1 + self._jitter * (2 * self._chance() - 1))
