"""What a process has seen of a group of servers, so that no later read shows less: `GtidTracker`. No I/O.

A secondary is asked to have carried out all transactions that this process has seen the effects of. These are all that
a server had carried out when it last answered, and those that it was just committing: a transaction can be read a
moment before it is counted as carried out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakValueDictionary

from ..config import Endpoint
from ..drivers.interface import Result
from .at_fork import tell_at_fork
from .gtids import GTIDs


class GtidTracker:
    """The transactions that this process has seen the effects of. Threads may share it.

    What an answer showed is told by the question behind it in the same packet, `dialect.servers.CARRIED_OUT`. Where an
    answer did not arrive whole, it is not known what was seen, until the primary has been asked anew.
    """

    def __init__(self) -> None:
        self._carried_out = GTIDs()
        self._committing = GTIDs()
        self._last: tuple[str, str] = ("", "")
        self._doubts = self._settled = 0
        self._counted = True
        self._text = ""
        self._lock = threading.Lock()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a new lock. What the parent has seen, the child has as well."""
        self._lock = threading.Lock()

    def begin(self) -> int:
        """To be called before a packet is sent; what it returns is given to `learn` with the answer."""
        return self._doubts

    def learn(self, answer: Result, begun: int, *, primary: bool) -> None:
        """Take note of what a server said to `CARRIED_OUT`.

        Args:
            answer: That.
            begun: What `begin` returned.
            primary: Whether it was the primary, which has all that any other has.
        """
        committing, carried_out, mode = (str(value) for value in answer.rows[0])
        with self._lock:
            if primary:
                self._counted = mode == "ON"
                self._settled = max(self._settled, begun)
            if self._last == (committing, carried_out):
                return
            self._last = committing, carried_out
            self._carried_out |= GTIDs.read(carried_out)
            self._committing |= GTIDs.read(committing)
            self._text = str(self._carried_out | self._committing)

    def doubt(self) -> None:
        """An answer of the primary did not come whole: it may have shown what is not known to be seen."""
        with self._lock:
            self._doubts += 1

    def forget_committing(self) -> None:
        """Do not wait any more for what was just being committed, as it may never have been; ask the primary anew."""
        with self._lock:
            self._committing = GTIDs()
            self._last = ("", "")
            self._text = str(self._carried_out)
            self._doubts += 1

    @property
    def counted(self) -> bool:
        """Whether the primary gives its transactions numbers (``gtid_mode = ON``), as far as is known."""
        return self._counted

    def needed(self) -> str | None:
        """What a server must have carried out before it is read, as a GTID set; None: only the primary will do."""
        with self._lock:
            return self._text if self._counted and self._settled == self._doubts else None


class _Register:
    """Who has seen what, in this process."""

    def __init__(self) -> None:
        self._used: set[frozenset[Endpoint]] = set()
        self._seen: WeakValueDictionary[frozenset[Endpoint], GtidTracker] = WeakValueDictionary()
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a new lock, as for `GtidTracker`."""
        self._lock = threading.Lock()

    def use(self, servers: Iterable[Endpoint]) -> None:
        """Take note that something may be seen of these servers, which nobody wants to know yet."""
        with self._lock:
            self._used.add(frozenset(servers))

    def get(self, servers: frozenset[Endpoint]) -> GtidTracker | None:
        """What has been seen of these servers, if anybody wants to know."""
        return self._seen.get(servers)

    def want(self, servers: Iterable[Endpoint]) -> GtidTracker:
        """What has been seen of these servers. It is taken note of for as long as what is returned here exists."""
        with self._lock:
            key = frozenset(servers)
            seen = self._seen.get(key)
            if seen is None:
                seen = self._seen[key] = GtidTracker()
                if key in self._used:
                    seen.doubt()
            self._used.add(key)
            return seen


#: What this process has seen of which servers, whichever of its databases saw it.
REGISTER = _Register()
