"""The places of a pool, which limit the connections in use. Threads or tasks wait for a free place.

A user of a pool takes a place before it takes or opens a connection, and frees it afterwards. A pool holds weak
references to the taken places and counts these. So if a signal handler raises an exception before a place is freed, the
place becomes free when the exception is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import ref

from ..config import ConnectionOptions
from ..errors import PoolTimeout
from .group_commit import MOST_LOOKED_AT, Group, Member

if TYPE_CHECKING:
    from .servers import ServerConnection

#: Interval in seconds at which waiting users check for a free place, as a signal may interrupt the thread that would
#: wake them.
RECHECK_S = 1.0


class Place:
    """One user's place in a pool, and the connection lent to that user.

    Args:
        member: The user's batch, if it may be sent together with others; then `Places.wait` also ends when it was.
    """

    __slots__ = ("__weakref__", "lent", "member")

    def __init__(self, member: Member | None = None) -> None:
        self.lent: ServerConnection | None = None
        #: The batch of a user that waits, if the call of another user may send it.
        self.member = member


class Places(Protocol):
    """The places of one pool. Except for `wait`, its methods are called with the pool's lock held."""

    @property
    def in_use(self) -> int:
        """The number of places that are taken."""

    @property
    def waiting(self) -> int:
        """The number of users that wait for a place."""

    def take(self, place: Place) -> bool:
        """Take a place if one is free."""

    def wait(self, place: Place) -> Awaitable[None] | None:
        """Take a place as soon as one is free: blocks, or returns an awaitable.

        It also ends, without a place, when the outcome of the place's batch is set, as another call has sent it.

        Raises:
            PoolTimeout: No place became free in time, and no other call took the batch.
        """

    def gather(self, group: Group) -> None:
        """Add batches of waiting users to a group, those that have waited the longest first."""

    def free(self, place: Place) -> None:
        """Free a place, if it is taken."""


class _Taken:
    """The places that are taken.

    Args:
        size: The maximum number of places.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken: set[ref[Place]] = set()

    @property
    def in_use(self) -> int:
        """See `Places.in_use`."""
        return len(self._taken)

    def take(self, place: Place) -> bool:
        """See `Places.take`."""
        taken = self._taken
        if len(taken) >= self._size:
            return False
        taken.add(ref(place, taken.discard))
        return True


class BlockingPlaces(_Taken):
    """Places for threads.

    Args:
        config: Has their number, and the longest wait for one.
        lock: The pool's.
    """

    def __init__(self, config: ConnectionOptions, lock: threading.RLock) -> None:
        super().__init__(config.pool_size)
        self._config = config
        self._lock = lock
        # A lock for each waiting thread, released to wake it, and the thread's place.
        self._gates: dict[ref[threading.Lock], ref[Place]] = {}

    @property
    def waiting(self) -> int:
        """See `Places.waiting`."""
        return len(self._gates)

    def wait(self, place: Place) -> None:
        """See `Places.wait`.

        It does not use `threading.Condition`, which may keep the lock when a signal interrupts it.
        """
        give_up = monotonic() + self._config.pool_timeout_s
        gate = threading.Lock()
        gate.acquire()
        try:
            while not self._is_done(place, gate):
                taken = place.member is not None and place.member.taken
                left = RECHECK_S if taken else give_up - monotonic()
                if left <= 0:
                    raise pool_timeout(self._config)
                gate.acquire(timeout=min(left, RECHECK_S))
        except BaseException:
            with self._lock:
                self._gates.pop(ref(gate), None)
                self._wake()  # this thread may have been the one that was woken for a free place
            raise

    def _is_done(self, place: Place, gate: threading.Lock) -> bool:
        """Take a place, or see that another call has sent the batch; else wait for the gate."""
        member = place.member
        with self._lock:
            if member is not None and member.taken:
                member.check_sender()
                return member.outcome is not None
            if self.take(place):
                self._gates.pop(ref(gate), None)
                return True
            self._gates[ref(gate, self._gates.pop)] = ref(place)
        return False

    def gather(self, group: Group) -> None:
        """See `Places.gather`."""
        for waiting, its_place in list(islice(self._gates.items(), MOST_LOOKED_AT)):
            gate, place = waiting(), its_place()
            if gate is None or place is None or place.member is None or not gate.locked():
                continue
            if group.add(place.member, gate.release):
                del self._gates[waiting]
            if group.full:
                return

    def free(self, place: Place) -> None:
        """See `Places.free`."""
        self._taken.discard(ref(place))
        if self._gates:
            self._wake()

    def _wake(self) -> None:
        """Wake the thread that has waited the longest."""
        first = next(iter(self._gates), None)
        gate = None if first is None else first()
        if first is not None and gate is not None:
            del self._gates[first]
            if gate.locked():
                gate.release()


class _Waiter(NamedTuple):
    """A task that waits for a place: the place, what wakes the task, and the limit of its wait."""

    place: Place
    woken: asyncio.Future[None]
    limit: asyncio.Timeout

    @property
    def gone(self) -> bool:
        """Return whether the task no longer waits."""
        return self.woken.done() or self.woken.get_loop().is_closed()

    def wake(self) -> None:
        """Wake the task, if it still waits."""
        if not self.gone:
            self.woken.set_result(None)


class AwaitedPlaces(_Taken):
    """Places for the tasks of one event loop. Waiting tasks get a place in order of arrival.

    Args:
        config: Has their number, and the longest wait for one.
    """

    def __init__(self, config: ConnectionOptions) -> None:
        super().__init__(config.pool_size)
        self._config = config
        self._waiters: deque[_Waiter] = deque()
        self._recheck: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """See `Places.waiting`."""
        return len(self._waiters)

    async def wait(self, place: Place) -> None:
        """See `Places.wait`."""
        if self.take(place):
            return
        loop = asyncio.get_running_loop()
        if self._recheck is None:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)
        limit = asyncio.timeout(self._config.pool_timeout_s)
        waiter = _Waiter(place, loop.create_future(), limit)
        try:
            async with limit:
                self._waiters.append(waiter)
                await waiter.woken
        except BaseException as error:
            with suppress(ValueError):
                self._waiters.remove(waiter)
            self.free(place)  # this task may have got the place, and does not use it
            if isinstance(error, TimeoutError):
                raise pool_timeout(self._config) from None
            raise

    def gather(self, group: Group) -> None:
        """See `Places.gather`."""
        for waiter in list(islice(self._waiters, MOST_LOOKED_AT)):
            member = waiter.place.member
            if member is not None and not waiter.gone and group.add(member, waiter.wake):
                waiter.limit.reschedule(None)
                self._waiters.remove(waiter)
            if group.full:
                return

    def free(self, place: Place) -> None:
        """See `Places.free`."""
        self._taken.discard(ref(place))
        if self._waiters:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give free places to the tasks that have waited the longest."""
        while self._waiters:
            waiter = self._waiters[0]
            if not waiter.gone:
                if ref(waiter.place) not in self._taken and not self.take(waiter.place):
                    return
                waiter.wake()
            self._waiters.popleft()

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._recheck = None
        self._hand_over()
        if self._waiters:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)


def pool_timeout(config: ConnectionOptions) -> PoolTimeout:
    """The error of a user that waited too long for a place."""
    return PoolTimeout(
        f"All {config.pool_size} connections were in use for {config.pool_timeout_s:g} s. Raise pool_size (the "
        "server's max_connections permitting), or pool_timeout_s."
    )
