"""The slots of a pool, which limit the connections in use. Threads or tasks wait for a connection.

A user of a pool takes a slot before it takes or opens a connection, and frees it afterwards. While others have slots,
it takes one only together with an idle connection: otherwise it waits for the first that is given back, or newly
opened. A pool holds weak references to the taken slots and counts these. So if a signal handler raises an exception
before a slot is freed, the slot becomes free when the exception is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Sized
from contextlib import suppress
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from ..config import ConnectionOptions
from ..errors import PoolTimeout
from .group_commit import MAX_EXAMINED, CommitGroup, QueuedWrite

if TYPE_CHECKING:
    from .commands import Shielded
    from .pool import ServerConnection

#: Interval in seconds at which waiting users check for a free connection, as a signal may interrupt the thread that
#: would wake them.
RECHECK_S = 1.0


class Slot:
    """One user's slot in a pool, and the connection lent to that user."""

    lent: ServerConnection | None = None

    #: What the user sends, if another user may send it; then `Slots.wait` also ends when that was done.
    write: QueuedWrite | None = None

    #: The writes of others that the user sends with its own, and the steps that send them.
    group: CommitGroup | None = None
    sending: Shielded | None = None

    #: Why no connection could be opened for the user.
    error: Exception | None = None


class Slots(ABC):
    """The slots of one pool. Except for `wait`, its methods are called with the pool's lock held.

    Args:
        config: Has their number, and the longest wait for a connection.
        idle: The pool's idle connections.
    """

    #: The users that wait for a connection.
    waiters: Sized

    def __init__(self, config: ConnectionOptions, idle: list[ServerConnection]) -> None:
        self._config = config
        self._size = config.pool_size
        self._idle = idle
        #: The slots that are taken.
        self.taken: set[ref[Slot]] = set()

    def take(self, slot: Slot) -> bool:
        """Take a slot, with an idle connection or, if no user has one, to open one."""
        taken, idle = self.taken, self._idle
        if len(taken) >= self._size or (taken and not idle):
            return False
        taken.add(ref(slot, taken.discard))
        if idle:
            slot.lent = idle[-1]
            del idle[-1]
        return True

    def take_to_open(self) -> Slot | None:
        """Take a slot in which a connection is opened for a user that waits; None if none is free."""
        if len(self.taken) >= self._size:
            return None
        slot = Slot()
        self.taken.add(ref(slot, self.taken.discard))
        return slot

    @abstractmethod
    def wait(self, slot: Slot) -> Awaitable[None] | None:
        """Take a slot as soon as `take` can: blocks, or returns an awaitable.

        It also ends, without a slot, when the outcome of the slot's write is set, as another call has sent it.

        Raises:
            PoolTimeout: No connection became free in time, and no other call took the write.
            DriverError: None could be opened.
        """

    @abstractmethod
    def gather(self, group: CommitGroup) -> None:
        """Add writes of waiting users to a group, those that have waited the longest first."""

    @abstractmethod
    def wake(self) -> None:
        """Let the user that has waited the longest take a slot, if it can."""

    @abstractmethod
    def fail_first(self, error: Exception) -> None:
        """Let the user that has waited the longest fail, as none could be opened, unless others have connections."""

    def _any_lent(self) -> bool:
        return any(slot.lent is not None for one in self.taken if (slot := one()) is not None)


class BlockingSlots(Slots):
    """Slots for threads.

    Args:
        config: Has their number, and the longest wait for a connection.
        lock: The pool's.
        idle: The pool's idle connections.
    """

    def __init__(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> None:
        super().__init__(config, idle)
        self._lock = lock
        # The gate of each waiting thread, a lock that is released to wake it, and the thread's slot.
        self.waiters: dict[ref[threading.Lock], ref[Slot]] = {}

    def wait(self, slot: Slot) -> None:
        """Wait for a slot, or for the outcome of the slot's write.

        It does not use `threading.Condition`, which may keep the lock when a signal interrupts it.
        """
        give_up = monotonic() + self._config.pool_timeout_s
        gate = threading.Lock()
        gate.acquire()
        try:
            while not self._is_done(slot, gate):
                taken = slot.write is not None and slot.write.taken
                left = RECHECK_S if taken else give_up - monotonic()
                if left <= 0:
                    raise pool_timeout(self._config)
                gate.acquire(timeout=min(left, RECHECK_S))
        except BaseException:
            with self._lock:
                self.waiters.pop(ref(gate), None)
                self.wake()  # this thread may have been the one that was woken for a connection
            raise

    def _is_done(self, slot: Slot, gate: threading.Lock) -> bool:
        """Take a slot, or detect that another call has sent the write; else register the gate that wakes the thread."""
        with self._lock:
            if slot.write is not None and slot.write.taken:
                return slot.write.outcome is not None
            if slot.error is not None:
                raise slot.error
            if self.take(slot):
                self.waiters.pop(ref(gate), None)
                return True
            self.waiters[ref(gate, self.waiters.pop)] = ref(slot)
        return False

    def gather(self, group: CommitGroup) -> None:
        """Add writes of waiting users to a group."""
        for waiting, its_slot in list(islice(self.waiters.items(), MAX_EXAMINED)):
            gate, other = waiting(), its_slot()
            if gate is None or other is None or other.write is None or not gate.locked():
                continue
            if group.add(other.write, partial(_open, gate)):
                del self.waiters[waiting]
            if group.full:
                return

    def wake(self) -> None:
        """Wake the user that has waited the longest."""
        first = next(iter(self.waiters), None)
        gate = None if first is None else first()
        if first is not None and gate is not None:
            del self.waiters[first]
            _open(gate)

    def fail_first(self, error: Exception) -> None:
        """Let the user that has waited the longest fail, unless others have connections."""
        if self._any_lent():
            return
        slot = next((slot for its_slot in self.waiters.values() if (slot := its_slot()) is not None), None)
        if slot is not None:
            slot.error = error
            self.wake()


def _open(gate: threading.Lock) -> None:
    """Wake the thread that waits for a lock. It may have been woken already, if a signal interrupted another thread."""
    with suppress(RuntimeError):
        gate.release()


class _Waiter(NamedTuple):
    """A task that waits for a connection: its slot, what wakes the task, and the limit of its wait."""

    slot: Slot
    woken: asyncio.Future[None]
    limit: asyncio.Timeout

    @property
    def has_left(self) -> bool:
        """Return whether the task no longer waits."""
        return self.woken.done() or self.woken.get_loop().is_closed()

    def wake(self) -> None:
        """Wake the task, if it still waits."""
        if not self.has_left:
            self.woken.set_result(None)


class AwaitedSlots(Slots):
    """Slots for the tasks of one event loop. Waiting tasks get a slot in order of arrival."""

    def __init__(self, config: ConnectionOptions, idle: list[ServerConnection]) -> None:
        super().__init__(config, idle)
        self.waiters: deque[_Waiter] = deque()
        self._recheck: asyncio.TimerHandle | None = None

    async def wait(self, slot: Slot) -> None:
        """Wait for a slot, or for the outcome of the slot's write."""
        if self.take(slot):
            return
        loop = asyncio.get_running_loop()
        if self._recheck is None:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)
        limit = asyncio.timeout(self._config.pool_timeout_s)
        waiter = _Waiter(slot, loop.create_future(), limit)
        try:
            async with limit:
                self.waiters.append(waiter)
                await waiter.woken
        except TimeoutError:
            self._forget(waiter)
            raise pool_timeout(self._config) from None
        except BaseException:
            self._forget(waiter)
            raise
        if slot.error is not None:
            raise slot.error

    def gather(self, group: CommitGroup) -> None:
        """Add writes of waiting users to a group."""
        for waiter in list(islice(self.waiters, MAX_EXAMINED)):
            other = waiter.slot.write
            if other is not None and not waiter.has_left and group.add(other, waiter.wake):
                waiter.limit.reschedule(None)
                self.waiters.remove(waiter)
            if group.full:
                return

    def wake(self) -> None:
        """Wake the user that has waited the longest."""
        while self.waiters:
            waiter = self.waiters[0]
            if not waiter.has_left:
                if ref(waiter.slot) not in self.taken and not self.take(waiter.slot):
                    return
                waiter.wake()
            self.waiters.popleft()

    def fail_first(self, error: Exception) -> None:
        """Let the user that has waited the longest fail, unless others have connections."""
        if self._any_lent():
            return
        waiter = next((waiter for waiter in self.waiters if not waiter.has_left), None)
        if waiter is not None:
            waiter.slot.error = error
            self.waiters.remove(waiter)
            waiter.wake()

    def _forget(self, waiter: _Waiter) -> None:
        with suppress(ValueError):
            self.waiters.remove(waiter)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._recheck = None
        self.wake()
        if self.waiters:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)


def pool_timeout(config: ConnectionOptions) -> PoolTimeout:
    """The error of a user that waited too long for a connection."""
    return PoolTimeout(
        f"All {config.pool_size} connections were in use for {config.pool_timeout_s:g} s. Raise pool_size (the "
        "server's max_connections permitting), or pool_timeout_s."
    )
