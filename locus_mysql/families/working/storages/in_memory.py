"""Sessions in this process's own memory: `InMemoryStorage`."""

from __future__ import annotations

import heapq
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ....engine.at_fork import reset_at_fork
from ....errors import CapacityExceeded
from .. import calls
from ..content import Session
from ..session import Work, carry_out

K = TypeVar("K")

#: The number of last calls whose repetition is detected. It suffices, as no answer of this storage gets lost.
RECOGNISED_CALLS = 10_000


class ExpiryQueue(Generic[K]):
    """Keys by the time when they must be checked: a heap in which later times replace earlier ones lazily."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, K]] = []
        self._due: dict[K, int] = {}
        self._number = 0  # orders keys of one time, which need not be comparable

    def schedule(self, key: K, at_us: int | None) -> None:
        """Make `due` return a key at this time or earlier; None schedules nothing."""
        if at_us is None or self._due.get(key, at_us + 1) <= at_us:
            return
        if len(self._heap) > 2 * len(self._due) + 100:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
        self._due[key] = at_us
        self._number += 1
        heapq.heappush(self._heap, (at_us, self._number, key))

    def remove(self, key: K) -> None:
        """Forget a key."""
        self._due.pop(key, None)

    def due(self, now_us: int) -> Iterator[K]:
        """Remove and yield the keys whose time has come, each once. Keys that must stay are scheduled again after."""
        while self._heap and self._heap[0][0] <= now_us:
            at_us, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == at_us:
                del self._due[key]
                yield key


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
        self._expiries: ExpiryQueue[calls.Address] = ExpiryQueue()
        self._bytes = 0
        self._done: OrderedDict[bytes, tuple[int, str, calls.Reply]] = OrderedDict()
        self._lock = threading.Lock()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork: a new lock, as a thread of the parent may hold the old one for ever."""
        self._lock = threading.Lock()

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        """See `Storage`."""
        with self._lock:
            return self._execute(call, self._clock())

    async def execute(self, call: calls.Call) -> calls.Reply:
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
            self._expiries.remove(call.address)
        else:
            self._sessions[call.address] = session
            self._sessions.move_to_end(call.address)
            self._expiries.schedule(call.address, session.head.expires_us)
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
        removed = 0
        kept: list[calls.Address] = []
        for address in self._expiries.due(now_us):
            if removed < limit and address != spared and self._sessions[address].expired(now_us):
                self._drop(address)
                removed += 1
            else:
                kept.append(address)
            if removed == limit:
                break
        for address in kept:
            self._expiries.schedule(address, self._sessions[address].head.expires_us)
        return removed

    def _drop(self, address: calls.Address) -> None:
        self._bytes -= self._sessions.pop(address).all_bytes
        self._expiries.remove(address)
