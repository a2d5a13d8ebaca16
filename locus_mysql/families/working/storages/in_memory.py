"""Sessions in the process's own memory: `InMemoryStorage`. Also the plainest place to see what each command does."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ....engine.at_fork import tell_at_fork
from ....errors import CapacityExceeded
from ..calls import BEGINS, RECOGNISED_US, Address, Call, Reply, StampMoved
from .session import Session

#: Of the last calls so many at most are recognised, which is enough here: no answer gets lost between this storage and
#: its caller.
RECOGNISED_CALLS = 10_000


class InMemoryStorage:
    """Keeps sessions in this process, with all that the other storages promise but to outlive it. Thread-safe.

    Args:
        max_sessions: Most sessions at once.
        max_bytes: Most bytes of variables, task states and notes of all sessions together, checkpoints included.
        forgets: Whether the sessions used least recently go when there are too many; else a write that would exceed a
            limit raises `CapacityExceeded`.
        clock: Tells the time in microseconds since 1970.
    """

    def __init__(
        self,
        *,
        max_sessions: int = 10_000,
        max_bytes: int = 268_435_456,
        forgets: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._forgets = forgets
        self._clock = clock or (lambda: time.time_ns() // 1_000)
        self._sessions: OrderedDict[Address, Session] = OrderedDict()
        self._bytes = 0
        self._done: OrderedDict[bytes, tuple[int, str, Reply]] = OrderedDict()
        self._lock = threading.Lock()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a new lock, as a thread of the parent may hold the old one for ever."""
        self._lock = threading.Lock()

    def execute_blocking(self, call: Call) -> Reply:
        """See `Storage`."""
        with self._lock:
            return self._execute(call, self._clock())

    async def execute(self, call: Call) -> Reply:
        """See `Storage`."""
        return self.execute_blocking(call)

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """See `Storage`."""
        with self._lock:
            return self._sweep(limit, self._clock())

    async def sweep(self, limit: int = 1_000) -> int:
        """See `Storage`."""
        return self.sweep_blocking(limit)

    def forget_tenant_blocking(self, tenant: str) -> int:
        """See `Storage`."""
        with self._lock:
            gone = [address for address in self._sessions if address.tenant == tenant]
            alive = sum(not self._sessions[address].expired(self._clock()) for address in gone)
            for address in gone:
                self._drop(address)
            for token in [token for token, (_, whose, _) in self._done.items() if whose == tenant]:
                del self._done[token]
            return alive

    async def forget_tenant(self, tenant: str) -> int:
        """See `Storage`."""
        return self.forget_tenant_blocking(tenant)

    def close(self) -> None:
        """Nothing is closed; what is kept is kept."""

    async def aclose(self) -> None:
        """Nothing is closed; what is kept is kept."""

    def _execute(self, call: Call, now_us: int) -> Reply:
        if not (call.writes and call.token):
            return self._carry_out(call, now_us)
        done = self._done.get(call.token)
        if done is not None:
            return done[2]
        reply = self._carry_out(call, now_us)
        self._done[call.token] = now_us, call.address.tenant, reply
        oldest = next(iter(self._done))
        while len(self._done) > RECOGNISED_CALLS or self._done[oldest][0] < now_us - RECOGNISED_US:
            del self._done[oldest]
            oldest = next(iter(self._done))
        return reply

    def _carry_out(self, call: Call, now_us: int) -> Reply:
        session = self._sessions.get(call.address)
        if session is not None and session.expired(now_us):
            session = None
        stamp = 0 if session is None else session.stamp
        if call.if_stamp is not None and call.if_stamp != stamp:
            raise StampMoved
        if not call.writes:
            return self._read(call, session, now_us)
        if session is not None:
            session = session.copy()
        elif any(isinstance(command, BEGINS) for command in call.commands):
            session = Session(call.address.session_id, call.ttl_us)
        else:
            return Session.of_nothing(call)
        results = session.carry_out(call, now_us)
        self._keep(call.address, session, now_us)
        if session.ended:
            return Reply(results)
        return Reply(results, session.stamp, session.ttl_us, session.evicted)

    def _read(self, call: Call, session: Session | None, now_us: int) -> Reply:
        if session is None:
            return Session.of_nothing(call)
        if call.renew:
            session.renew(now_us)
        self._sessions.move_to_end(call.address)
        results = tuple(session.read(command, now_us) for command in call.commands)
        return Reply(results, session.stamp, session.ttl_us)

    def _keep(self, address: Address, session: Session, now_us: int) -> None:
        """Put a session in the place of what it was, if there is place."""
        before = self._sessions.get(address)
        more_bytes = (0 if session.ended else session.all_bytes) - (0 if before is None else before.all_bytes)
        more_sessions = int(before is None and not session.ended)
        if self._over(more_bytes, more_sessions):
            self._sweep(len(self._sessions), now_us, spared=address)
        while self._forgets and self._over(more_bytes, more_sessions):
            oldest = next((other for other in self._sessions if other != address), None)
            if oldest is None:
                break
            self._drop(oldest)
        if over := self._over(more_bytes, more_sessions):
            raise CapacityExceeded(*over, address.session_id)
        self._bytes += more_bytes
        if session.ended:
            self._sessions.pop(address, None)
        else:
            self._sessions[address] = session
            self._sessions.move_to_end(address)

    def _over(self, more_bytes: int, more_sessions: int) -> tuple[str, int, int] | None:
        """The limit that would be exceeded, how much there would be, and how much there may be."""
        if more_bytes > 0 and self._bytes + more_bytes > self._max_bytes:
            return "max_bytes", self._bytes + more_bytes, self._max_bytes
        if more_sessions and len(self._sessions) >= self._max_sessions:
            return "max_sessions", len(self._sessions) + 1, self._max_sessions
        return None

    def _sweep(self, limit: int, now_us: int, spared: Address | None = None) -> int:
        gone = [
            address for address, session in self._sessions.items() if session.expired(now_us) and address != spared
        ][:limit]
        for address in gone:
            self._drop(address)
        return len(gone)

    def _drop(self, address: Address) -> None:
        self._bytes -= self._sessions.pop(address).all_bytes
