"""What this process remembers of each session that it used: `Line`."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from ...calls import Address, Call, Command, Remove, Write, WriteTask
from .journal import Journal
from .merging import Ours
from .mirror import ALL_NOTES, NOTES, TASK
from .turns import Turn

#: Of what lost, so many texts of a session are kept.
LOST = 100


@dataclass(slots=True, eq=False)
class SessionState:
    """A session as this process knows it.

    Args:
        address: Which.
        turn: Whoever serves it from the fallback, or replays it, has it.
        journal: What waits to be written.
        offline: Whether the fallback serves it.
        ours: What of it is nobody else's later write.
        like: The last call that wrote while it was offline, whose limits and time to live replaying uses.
        answered_us: When the primary last answered, in microseconds since 1970, as stamps are.
        stood_in: The stamp of the session in the fallback, of the last write through this process.
        made: Checkpoints that were made while it was offline.
        in_flight: How many calls are with the primary.
        learned: The stamps at which something was learned of it while others were in flight.
        lost: What was not written when the primary was back.
        told: Whether it was reported already that the session was gone when the primary was back.
        users: How many calls on it are under way.
        counted: How many writes of it wait, and their bytes, as `Lines` counted last.
    """

    address: Address
    turn: Turn = field(default_factory=Turn)
    journal: Journal = field(default_factory=Journal)
    offline: bool = False
    ours: Ours = field(default_factory=Ours)
    like: Call | None = None
    answered_us: int = 0
    stood_in: int = 0
    made: set[str] = field(default_factory=set)
    in_flight: int = 0
    learned: dict[str, int] = field(default_factory=dict)
    lost: deque[str] = field(default_factory=lambda: deque(maxlen=LOST))
    told: bool = False
    users: int = 0
    counted: tuple[int, int] = (0, 0)

    @property
    def idle(self) -> bool:
        """Whether nothing of it is under way, or waits."""
        return not (self.offline or self.users or len(self.journal))

    def later(self, stamp: int, what: str) -> bool:
        """Whether something later than a stamp was learned."""
        return self.learned.get(what, 0) > stamp

    def note_learned(self, stamp: int, commands: list[Command[object]], *, all_notes: bool) -> None:
        """Something was learned; remembered only while others are in flight, whose answers may be older."""
        if self.in_flight < 2:
            self.learned.clear()
            return
        names: list[str] = [NOTES, *([ALL_NOTES] if all_notes else [])]
        for command in commands:
            match command:
                case Write(variables):
                    names += ["v" + variable.key for variable in variables]
                case Remove(keys):
                    names += ["v" + key for key in keys]
                case WriteTask():
                    names.append(TASK)
        for name in names:
            self.learned[name] = max(stamp, self.learned.get(name, 0))

    def forget(self) -> None:
        """Nothing of it is to be written any more."""
        self.journal = Journal()
        self.ours, self.answered_us = Ours(), 0
        self.made.clear()
        self.lost.clear()

    def online(self, stamp: int) -> None:
        """All that waited is written; the primary serves it again."""
        self.offline = self.told = False
        self.ours = Ours(max(self.ours.seen, stamp))
        self.like, self.stood_in = None, 0
        self.made.clear()


class Lines:
    """The sessions that this process used, those used last.

    Args:
        most: At most so many, but for those of which something waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._lines: OrderedDict[Address, SessionState] = OrderedDict()
        #: How many writes wait, and their bytes.
        self.entries = self.size_bytes = 0
        #: The sessions that wait for the primary, whether something of them is to be written or not.
        self.waiting: OrderedDict[Address, SessionState] = OrderedDict()

    def take(self, address: Address) -> SessionState:
        """That of a session, for a call; `leave` it behind that."""
        with self._lock:
            line = self._lines.get(address)
            if line is None:
                line = self._lines[address] = SessionState(address)
            self._lines.move_to_end(address)
            line.users += 1
            return line

    def leave(self, line: SessionState) -> None:
        """A call is over."""
        with self._lock:
            line.users -= 1
            if len(self._lines) > self._most:
                self._shrink()

    def get(self, address: Address) -> SessionState | None:
        """That of a session, if it was used."""
        return self._lines.get(address)

    def of_tenant(self, tenant: str) -> list[SessionState]:
        """Those of a tenant's sessions."""
        with self._lock:
            return [line for address, line in self._lines.items() if address.tenant == tenant]

    def count(self, line: SessionState) -> None:
        """Keep account of what of it waits."""
        counted = len(line.journal), line.journal.size_bytes
        with self._lock:
            self.entries += counted[0] - line.counted[0]
            self.size_bytes += counted[1] - line.counted[1]
            line.counted = counted
            if line.offline or counted[0]:
                self.waiting[line.address] = line
            else:
                self.waiting.pop(line.address, None)

    def next_waiting(self) -> SessionState | None:
        """One that waits, another one each time."""
        with self._lock:
            if not self.waiting:
                return None
            address, line = self.waiting.popitem(last=False)
            self.waiting[address] = line
            return line

    def _shrink(self) -> None:
        excess = len(self._lines) - self._most
        idle = itertools.islice((address for address, line in self._lines.items() if line.idle), excess)
        for address in list(idle):
            del self._lines[address]
