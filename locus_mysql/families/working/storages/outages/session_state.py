"""The state of a session that this process used: `SessionState`, and of all sessions: `SessionStates`."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ... import calls
from .fair_lock import FairLock
from .journal import Journal
from .merging import OwnWrites
from .mirror import ALL_NOTES, NOTES, names_of

#: The number of descriptions of lost writes that are kept of a session.
LOST = 100


class LearnedStamps:
    """The stamps at which parts of a session were learned while several calls were in flight, by name.

    The older of two answers may arrive last; its data about a part that was learned since is ignored. Names are
    kept while a call is in flight that began before they were learned: in two generations, so that they do not
        accumulate if calls always overlap.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._in_flight: dict[int, int] = {}  # calls by the generation in which they began
        self._current: dict[str, int] = {}
        self._previous: dict[str, int] = {}

    @property
    def overlapping(self) -> bool:
        """Return whether more than one call is in flight."""
        return sum(self._in_flight.values()) > 1

    def begin(self) -> int:
        """A call begins; returns the generation to be given to `end`."""
        self._in_flight[self._generation] = self._in_flight.get(self._generation, 0) + 1
        return self._generation

    def end(self, generation: int) -> None:
        """A call ends."""
        self._in_flight[generation] -= 1
        if not self._in_flight[generation]:
            del self._in_flight[generation]
        if all(begun == self._generation for begun in self._in_flight):
            self._generation += 1
            self._previous, self._current = self._current, {}

    def later(self, stamp: int, name: str) -> bool:
        """Return whether a part was observed at a later stamp."""
        return max(self._current.get(name, 0), self._previous.get(name, 0)) > stamp

    def note(self, stamp: int, names: Iterable[str]) -> None:
        """Remember the stamp of these parts while other calls are in flight."""
        if not self.overlapping:
            self._current.clear()
            self._previous.clear()
            return
        for name in names:
            self._current[name] = max(stamp, self._current.get(name, 0))


@dataclass(slots=True, eq=False)
class SessionState:
    """A session, as far as this process has read it.

    Args:
        address: The session.
        lock: Held by the call that serves the session from the fallback, or replays its queued writes.
        journal: The queued writes.
        offline: Whether the fallback serves the session.
        own: Versions that are not later writes of other processes.
        last_write: The last call that wrote while the session was offline. Replays use its limits and time to live.
        answered_us: When the primary last answered, in microseconds since 1970, as stamps are.
        fallback_stamp: The session's stamp in the fallback, of the last write through this process.
        offline_checkpoints: Ids of checkpoints that were made while the session was offline.
        learned: The stamps of parts that were learned while several calls to the primary were in flight.
        lost: Descriptions of writes that were not written to the primary.
        loss_reported: Whether it was reported that the primary no longer had the session.
        users: The number of calls under way.
        counted: Queued writes and their bytes, as counted last by `SessionStates`.
    """

    address: calls.Address
    lock: FairLock = field(default_factory=FairLock)
    journal: Journal = field(default_factory=Journal)
    offline: bool = False
    own: OwnWrites = field(default_factory=OwnWrites)
    last_write: calls.Call | None = None
    answered_us: int = 0
    fallback_stamp: int = 0
    offline_checkpoints: set[str] = field(default_factory=set)
    learned: LearnedStamps = field(default_factory=LearnedStamps)
    lost: deque[str] = field(default_factory=lambda: deque(maxlen=LOST))
    loss_reported: bool = False
    users: int = 0
    counted: tuple[int, int] = (0, 0)

    @property
    def idle(self) -> bool:
        """Return whether no call is under way and nothing is queued."""
        return not (self.offline or self.users or self.journal.entries)

    def note_learned(self, stamp: int, updates: list[calls.Command[object]], *, all_notes: bool) -> None:
        """Record the parts that the mirror learned at a stamp, while other calls are in flight."""
        names = [NOTES, *([ALL_NOTES] if all_notes else [])]
        self.learned.note(stamp, itertools.chain(names, *map(names_of, updates)))

    def forget(self) -> None:
        """Drop the queued writes and all stored data of the session."""
        self.journal = Journal()
        self.own, self.answered_us = OwnWrites(), 0
        self.offline_checkpoints.clear()
        self.lost.clear()

    def go_online(self, stamp: int) -> None:
        """All queued writes are written; the primary serves the session again."""
        self.offline = self.loss_reported = False
        self.own = OwnWrites(max(self.own.seen, stamp))
        self.last_write, self.fallback_stamp = None, 0
        self.offline_checkpoints.clear()


class SessionStates:
    """The sessions that this process used last.

    Args:
        max_sessions: The number of sessions that are kept; further ones only while they are not idle.
    """

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = self._shrink_above = max_sessions
        self._lock = threading.Lock()
        self._states: OrderedDict[calls.Address, SessionState] = OrderedDict()
        #: The number of queued writes of all sessions, and their bytes.
        self.entries = self.size_bytes = 0
        #: The sessions that are offline or have queued writes.
        self.waiting: OrderedDict[calls.Address, SessionState] = OrderedDict()

    def enter(self, address: calls.Address) -> SessionState:
        """The state of a session, for a call; `leave` it after the call."""
        with self._lock:
            state = self._states.get(address)
            if state is None:
                state = self._states[address] = SessionState(address)
            self._states.move_to_end(address)
            state.users += 1
            return state

    def leave(self, state: SessionState) -> None:
        """A call has ended."""
        with self._lock:
            state.users -= 1
            if len(self._states) > self._shrink_above:
                self._shrink()

    def get(self, address: calls.Address) -> SessionState | None:
        """The state of a session, if it was used."""
        return self._states.get(address)

    def of_tenant(self, tenant: str) -> list[SessionState]:
        """The states of a tenant's sessions."""
        with self._lock:
            return [state for address, state in self._states.items() if address.tenant == tenant]

    def count(self, state: SessionState) -> None:
        """Update the totals after a session's queued writes changed."""
        counted = state.journal.entries, state.journal.size_bytes
        with self._lock:
            self.entries += counted[0] - state.counted[0]
            self.size_bytes += counted[1] - state.counted[1]
            state.counted = counted
            if state.offline or counted[0]:
                self.waiting[state.address] = state
            elif self.waiting.pop(state.address, None) and not self.waiting:
                self._shrink_above = self._max_sessions

    def next_waiting(self) -> SessionState | None:
        """A session that waits for the primary; a different one each time."""
        with self._lock:
            if not self.waiting:
                return None
            address, state = self.waiting.popitem(last=False)
            self.waiting[address] = state
            return state

    def _shrink(self) -> None:
        """Drop idle sessions. If too few are idle, as in an outage, try again when there are an eighth more."""
        excess = len(self._states) - self._max_sessions
        idle = itertools.islice((address for address, state in self._states.items() if state.idle), excess)
        for address in list(idle):
            del self._states[address]
        count = len(self._states)
        self._shrink_above = count + count // 8 if count > self._max_sessions else self._max_sessions
