"""Sessions in this process's own memory: `InMemoryStorage`."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ....engine.at_fork import reset_at_fork
from ....errors import CapacityExceeded
from .. import calls
from ..content import NEVER_US, Session
from ..session import Work, carry_out

#: The number of last calls whose repetition is detected. It suffices, as no answer of this storage gets lost.
RECOGNISED_CALLS = 10_000


class InMemoryStorage:
    """Keeps sessions in this process, with all guarantees of the other storages except durability. Thread-safe.

    Args:
        max_sessions: The maximum number of sessions at once.
        max_bytes: The maximum bytes of variables, task states and notes of all sessions, including checkpoints.
        forgets: Whether the least recently used sessions are dropped to make room; otherwise a write that would exceed
            a limit raises `CapacityExceeded`.
        clock: Returns the time in microseconds since 1970.
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
        self._sessions: OrderedDict[calls.Address, Session] = OrderedDict()
        #: No session expires before this time.
        self._first_expiry_us = NEVER_US
        self._bytes = 0
        self._done: OrderedDict[bytes, tuple[int, str, calls.Reply]] = OrderedDict()
        self._lock = threading.Lock()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork: a new lock, as a thread of the parent may hold the old one for ever."""
        self._lock = threading.Lock()

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        """Carry out a call: all its commands or none."""
        with self._lock:
            return self._execute(call, self._clock())

    async def execute(self, call: calls.Call) -> calls.Reply:
        """Carry out a call: all its commands or none."""
        return self.execute_blocking(call)

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """Remove expired sessions, each whole; returns their number."""
        with self._lock:
            return self._sweep(limit, self._clock())

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove expired sessions, each whole; returns their number."""
        return self.sweep_blocking(limit)

    def forget_tenant_blocking(self, tenant: str) -> int:
        """Remove all sessions of a tenant with all their content; returns their number."""
        with self._lock:
            gone = [address for address in self._sessions if address.tenant == tenant]
            alive = sum(not self._sessions[address].expired(self._clock()) for address in gone)
            for address in gone:
                self._drop(address)
            for token in [token for token, (_, whose, _) in self._done.items() if whose == tenant]:
                del self._done[token]
            return alive

    async def forget_tenant(self, tenant: str) -> int:
        """Remove all sessions of a tenant with all their content; returns their number."""
        return self.forget_tenant_blocking(tenant)

    def close(self) -> None:
        """Does nothing; the sessions stay."""

    async def aclose(self) -> None:
        """Does nothing; the sessions stay."""

    def _execute(self, call: calls.Call, now_us: int) -> calls.Reply:
        if not (call.writes and call.token):
            return self._carry_out(call, now_us)
        done = self._done.get(call.token)
        if done is not None:
            return done[2]
        reply = self._carry_out(call, now_us)
        self._done[call.token] = now_us, call.address.tenant, reply
        oldest = next(iter(self._done))
        while len(self._done) > RECOGNISED_CALLS or self._done[oldest][0] < now_us - calls.RECOGNISED_US:
            del self._done[oldest]
            oldest = next(iter(self._done))
        return reply

    def _carry_out(self, call: calls.Call, now_us: int) -> calls.Reply:
        before = self._sessions.get(call.address)
        work = carry_out(before, call, now_us)
        if not work.writes:
            if work.found is not None:
                work.apply()
                self._sessions.move_to_end(call.address)
            return work.reply
        if not work.ended:
            self._make_room(call.address, before, work)
        bytes_before = 0 if before is None else before.all_bytes
        session = work.apply()
        self._bytes += (0 if session is None else session.all_bytes) - bytes_before
        if session is None:
            self._sessions.pop(call.address, None)
        else:
            self._sessions[call.address] = session
            self._sessions.move_to_end(call.address)
            self._first_expiry_us = min(self._first_expiry_us, session.head.expires_us or NEVER_US)
        return work.reply

    def _make_room(self, address: calls.Address, before: Session | None, work: Work) -> None:
        """Drop other sessions if that is allowed and a session would exceed the limits.

        Raises:
            CapacityExceeded: There is no room for it.
        """
        more_bytes = work.all_bytes - (0 if before is None else before.all_bytes)
        more_sessions = int(before is None)
        if self._over(more_bytes, more_sessions):
            self._sweep(len(self._sessions), work.now_us, spared=address)
        while self._forgets and self._over(more_bytes, more_sessions):
            oldest = next((other for other in self._sessions if other != address), None)
            if oldest is None:
                break
            self._drop(oldest)
        if over := self._over(more_bytes, more_sessions):
            raise CapacityExceeded(*over, address.session_id)

    def _over(self, more_bytes: int, more_sessions: int) -> tuple[str, int, int] | None:
        """The limit that would be exceeded, the value it would have, and the highest allowed one."""
        if more_bytes > 0 and self._bytes + more_bytes > self._max_bytes:
            return "max_bytes", self._bytes + more_bytes, self._max_bytes
        if more_sessions and len(self._sessions) >= self._max_sessions:
            return "max_sessions", len(self._sessions) + 1, self._max_sessions
        return None

    def _sweep(self, limit: int, now_us: int, spared: calls.Address | None = None) -> int:
        """Remove expired sessions; returns their number."""
        if now_us < self._first_expiry_us:
            return 0
        expired = (one for one, session in self._sessions.items() if one != spared and session.expired(now_us))
        removed = list(itertools.islice(expired, limit))
        for address in removed:
            self._drop(address)
        times = (session.head.expires_us for session in self._sessions.values())
        self._first_expiry_us = min((at_us for at_us in times if at_us is not None), default=NEVER_US)
        return len(removed)

    def _drop(self, address: calls.Address) -> None:
        self._bytes -= self._sessions.pop(address).all_bytes
