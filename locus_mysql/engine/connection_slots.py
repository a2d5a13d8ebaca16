"""The slots of a pool, which limit the connections in use. Threads or tasks wait for a free slot.

A user of a pool takes a slot before it takes or opens a connection, and frees it afterwards. A pool holds weak
references to the taken slots and counts these. So if a signal handler raises an exception before a slot is freed, the
slot becomes free when the exception is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import ref

from ..config import ConnectionOptions
from ..errors import PoolTimeout
from .group_commit import MAX_EXAMINED, CommitGroup, QueuedWrite

if TYPE_CHECKING:
    from .servers import ServerConnection

#: Interval in seconds at which waiting users check for a free slot, as a signal may interrupt the thread that would
#: wake them.
RECHECK_S = 1.0


class Slot:
    """One user's slot in a pool, the connection lent to that user, and the writes of others that the user sends.

    Args:
        write: What the user sends, if another user may send it; then `Slots.wait` also ends when that was done.
    """

    __slots__ = ("__weakref__", "group", "lent", "write")

    def __init__(self, write: QueuedWrite | None = None) -> None:
        self.lent: ServerConnection | None = None
        self.write = write
        self.group: CommitGroup | None = None


class Slots(Protocol):
    """The slots of one pool. Except for `wait`, its methods are called with the pool's lock held."""

    @property
    def in_use(self) -> int:
        """The number of slots that are taken."""

    @property
    def waiting(self) -> int:
        """The number of users that wait for a slot."""

    def take(self, slot: Slot) -> bool:
        """Take a slot if one is free."""

    def wait(self, slot: Slot) -> Awaitable[None] | None:
        """Take a slot as soon as one is free: blocks, or returns an awaitable.

        It also ends, without a slot, when the outcome of the slot's write is set, as another call has sent it.

        Raises:
            PoolTimeout: No slot became free in time, and no other call took the write.
        """

    def gather(self, group: CommitGroup) -> None:
        """Add writes of waiting users to a group, those that have waited the longest first."""

    def free(self, slot: Slot) -> None:
        """Free a slot, if it is taken."""


class _Taken:
    """The slots that are taken.

    Args:
        size: The maximum number of slots.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken: set[ref[Slot]] = set()

    @property
    def in_use(self) -> int:
        """See `Slots.in_use`."""
        return len(self._taken)

    def take(self, slot: Slot) -> bool:
        """See `Slots.take`."""
        taken = self._taken
        if len(taken) >= self._size:
            return False
        taken.add(ref(slot, taken.discard))
        return True


class BlockingSlots(_Taken):
    """Slots for threads.

    Args:
        config: Has their number, and the longest wait for one.
        lock: The pool's.
    """

    def __init__(self, config: ConnectionOptions, lock: threading.RLock) -> None:
        super().__init__(config.pool_size)
        self._config = config
        self._lock = lock
        # The gate of each waiting thread, a lock that is released to wake it, and the thread's slot.
        self._gates: dict[ref[threading.Lock], ref[Slot]] = {}

    @property
    def waiting(self) -> int:
        """See `Slots.waiting`."""
        return len(self._gates)

    def wait(self, slot: Slot) -> None:
        """See `Slots.wait`.

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
                self._gates.pop(ref(gate), None)
                self._wake()  # this thread may have been the one that was woken for a free slot
            raise

    def _is_done(self, slot: Slot, gate: threading.Lock) -> bool:
        """Take a slot, or detect that another call has sent the write; else register the gate that wakes the thread."""
        with self._lock:
            if slot.write is not None and slot.write.taken:
                return slot.write.outcome is not None
            if self.take(slot):
                self._gates.pop(ref(gate), None)
                return True
            self._gates[ref(gate, self._gates.pop)] = ref(slot)
        return False

    def gather(self, group: CommitGroup) -> None:
        """See `Slots.gather`."""
        for waiting, its_slot in list(islice(self._gates.items(), MAX_EXAMINED)):
            gate, slot = waiting(), its_slot()
            if gate is None or slot is None or slot.write is None or not gate.locked():
                continue
            if group.add(slot.write, partial(_open, gate)):
                del self._gates[waiting]
            if group.full:
                return

    def free(self, slot: Slot) -> None:
        """See `Slots.free`."""
        self._taken.discard(ref(slot))
        if self._gates:
            self._wake()

    def _wake(self) -> None:
        """Wake the thread that has waited the longest."""
        first = next(iter(self._gates), None)
        gate = None if first is None else first()
        if first is not None and gate is not None:
            del self._gates[first]
            _open(gate)


def _open(gate: threading.Lock) -> None:
    """Wake the thread that waits for a lock. It may have been woken already, if a signal interrupted another thread."""
    with suppress(RuntimeError):
        gate.release()


class _Waiter(NamedTuple):
    """A task that waits for a slot: the slot, what wakes the task, and the limit of its wait."""

    slot: Slot
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


class AwaitedSlots(_Taken):
    """Slots for the tasks of one event loop. Waiting tasks get a slot in order of arrival.

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
        """See `Slots.waiting`."""
        return len(self._waiters)

    async def wait(self, slot: Slot) -> None:
        """See `Slots.wait`."""
        if self.take(slot):
            return
        loop = asyncio.get_running_loop()
        if self._recheck is None:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)
        limit = asyncio.timeout(self._config.pool_timeout_s)
        waiter = _Waiter(slot, loop.create_future(), limit)
        try:
            async with limit:
                self._waiters.append(waiter)
                await waiter.woken
        except BaseException as error:
            with suppress(ValueError):
                self._waiters.remove(waiter)
            self.free(slot)  # this task may have got the slot, and does not use it
            if isinstance(error, TimeoutError):
                raise pool_timeout(self._config) from None
            raise

    def gather(self, group: CommitGroup) -> None:
        """See `Slots.gather`."""
        for waiter in list(islice(self._waiters, MAX_EXAMINED)):
            write = waiter.slot.write
            if write is not None and not waiter.gone and group.add(write, waiter.wake):
                waiter.limit.reschedule(None)
                self._waiters.remove(waiter)
            if group.full:
                return

    def free(self, slot: Slot) -> None:
        """See `Slots.free`."""
        self._taken.discard(ref(slot))
        if self._waiters:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give free slots to the tasks that have waited the longest."""
        while self._waiters:
            waiter = self._waiters[0]
            if not waiter.gone:
                if ref(waiter.slot) not in self._taken and not self.take(waiter.slot):
                    return
                waiter.wake()
            self._waiters.popleft()

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._recheck = None
        self._hand_over()
        if self._waiters:
            self._recheck = loop.call_later(RECHECK_S, self._check, loop)


def pool_timeout(config: ConnectionOptions) -> PoolTimeout:
    """The error of a user that waited too long for a slot."""
    return PoolTimeout(
        f"All {config.pool_size} connections were in use for {config.pool_timeout_s:g} s. Raise pool_size (the "
        "server's max_connections permitting), or pool_timeout_s."
    )
