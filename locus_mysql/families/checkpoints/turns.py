"""One turn at a time on a thread: the method ``turn`` of both sides, and the context managers that it returns."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...engine.logs import TURNS, loggable
from ...engine.loops import settled
from ...engine.operation import Operation
from ...errors import ConfigError, LocusMySQLError, ThreadBusy
from ...runtime.database import Database
from ...runtime.stores import AsyncStore, HasSchema, SyncStore
from .leases import RENEWALS, Lease, LeaseOperations, Turns, check_turn
from .statements.tables import ThreadKey

if TYPE_CHECKING:
    from .store import CheckpointOperations

#: A waiting caller polls the server after a pause that grows from the first to the longest, in seconds.
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class HasTurns(HasSchema, Protocol):
    """Operations of a public class."""

    @property
    def checkpoints(self) -> CheckpointOperations:
        """The operations they are made of."""

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread: its tenant and its id."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=HasTurns)


class AsyncTurns(AsyncStore[Ops]):
    """Base of asynchronous classes that have turns."""

    def turn(self, thread_id: str, wait_s: float = 30.0, lease_s: float = 20.0) -> AsyncTurn:
        """Allow one turn at a time on a thread, across all processes: an ``async with`` block.

        Calls in the block, and in tasks begun in it, belong to the turn; a nested block for the same thread is part of
        it. Callers that take no turn are not blocked. The thread need not exist. The turn is renewed while it is held;
        if its holder dies, it ends when its lease expires, by the server's clock. Deleting the thread also ends it,
        unless the delete is in the block.

        Args:
            thread_id: The thread.
            wait_s: Seconds to wait until another caller's turn ends; 0 to 86,400.
            lease_s: How long the turn lasts if it is not renewed, in seconds; 0.5 to 3,600. It is renewed after every
                quarter of that, so the event loop must not be blocked for longer than the rest.

        Raises:
            ThreadBusy: Another caller had the turn for the whole wait.
            TurnLost: Raised by a save or a delete in the block if the turn is over; nothing is written then.
            InvalidInput: An argument is wrong.
            ConfigError: The store writes in a transaction of the program.
        """
        _check_database(self.database)
        return AsyncTurn(self._run, self._operations, self._operations.thread_key(thread_id), wait_s, lease_s)


class SyncTurns(SyncStore[Ops]):
    """Base of blocking classes that have turns."""

    def turn(self, thread_id: str, wait_s: float = 30.0, lease_s: float = 20.0) -> SyncTurn:
        """Allow one turn at a time on a thread, across all processes: a ``with`` block.

        Calls in the block of the same thread of execution belong to the turn; calls of other threads, only if they run
        in a copy of its context (``contextvars.copy_context``). A background thread renews it. Everything else is as in
        the asynchronous class.

        Args:
            thread_id: The thread.
            wait_s: Seconds to wait until another caller's turn ends; 0 to 86,400.
            lease_s: How long the turn lasts if it is not renewed, in seconds; 0.5 to 3,600. It is renewed after every
                quarter of that.

        Raises:
            ThreadBusy: Another caller had the turn for the whole wait.
            TurnLost: Raised by a save or a delete in the block if the turn is over; nothing is written then.
            InvalidInput: An argument is wrong.
            ConfigError: The store writes in a transaction of the program.
        """
        _check_database(self.database)
        return SyncTurn(self._run, self._operations, self._operations.thread_key(thread_id), wait_s, lease_s)


def _check_database(database: Database) -> None:
    if database.in_transaction:
        raise ConfigError(
            "A turn is renewed while your code runs, outside of your transaction. Take it with a store of the Database "
            "itself, around the transaction: calls in the transaction then belong to it."
        )


class _Turn:
    """Base of both context managers.

    Args:
        operations: The store's.
        key: The tenant and the thread.
        wait_s: How long to wait.
        lease_s: How long the turn outlives its holder.
    """

    def __init__(self, operations: HasTurns, key: ThreadKey, wait_s: float, lease_s: float) -> None:
        self._wait_s, lease_s = check_turn(wait_s, lease_s)
        self._turns: Turns[Any] = operations.checkpoints.context.turns
        self._operations: LeaseOperations = operations.checkpoints.leases
        self._lease = Lease(key, lease_s)
        self._joined = False
        self._pause_s = FIRST_PAUSE_S

    def _join(self) -> Lease | None:
        """Return the enclosing turn, if any: then this block is part of it."""
        outer = self._turns.of(self._lease.key)
        self._joined = outer is not None and outer.here and not outer.ended
        return outer if self._joined else None

    def _pause(self, left_s: float, deadline: float) -> float:
        """Return how long to wait before the next attempt.

        Args:
            left_s: How long another holder has the turn, unless it is released or renewed.
            deadline: When waiting ends.

        Raises:
            ThreadBusy: The deadline has passed.
        """
        now = time.monotonic()
        if now >= deadline:
            raise self._busy()
        drawn = random.uniform(self._pause_s / 2, self._pause_s)  # noqa: S311 - spreads load, guards no secret
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return max(0.001, min(drawn, left_s + 0.01, deadline - now))

    def _busy(self) -> ThreadBusy:
        return ThreadBusy(self._lease.thread_id, self._wait_s)

    def _renewed(self, began: float, held: bool) -> None:
        if not held and not self._lease.ended:
            self._lease.lost = True
            TURNS.warning("A turn was lost: it was not renewed in time, or its thread was deleted.")
        elif held:
            self._renewed_at = began

    def _renewal_failed(self, error: LocusMySQLError) -> None:
        TURNS.warning("A turn could not be renewed; trying again: %s", loggable(error))
        if time.monotonic() > self._renewed_at + self._lease.lease_s:
            self._lease.lost = True

    _renewed_at = 0.0


class AsyncTurn(_Turn):
    """``async with`` block in which no other turn on the thread runs."""

    def __init__(
        self,
        run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]],
        operations: HasTurns,
        key: ThreadKey,
        wait_s: float,
        lease_s: float,
    ) -> None:
        super().__init__(operations, key, wait_s, lease_s)
        self._run = run
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Lease:
        outer = self._join()
        if outer is not None:
            return outer
        deadline = time.monotonic() + self._wait_s
        self._lock = self._turns.lock((id(asyncio.get_running_loop()), self._lease.key), asyncio.Lock)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._lock.acquire()
        except TimeoutError:
            raise self._busy() from None
        try:
            await self._acquire(deadline)
        except BaseException:
            self._lock.release()
            raise
        self._turns.enter(self._lease)
        self._renewing = asyncio.create_task(self._renew())
        return self._lease

    async def _acquire(self, deadline: float) -> None:
        while True:
            try:
                self._renewed_at = time.monotonic()
                left_s = await self._run(self._operations.acquire(self._lease))
            except BaseException:  # the turn may have been acquired, or the packet may still arrive
                self._lease.may_arrive = True
                await settled(self._give_back())
                raise
            if left_s is None:
                return
            await asyncio.sleep(self._pause(left_s, deadline))

    async def _renew(self) -> None:
        while not self._lease.lost:
            await asyncio.sleep(self._lease.lease_s / RENEWALS)
            began = time.monotonic()
            try:
                self._renewed(began, await self._run(self._operations.renew(self._lease)))
            except LocusMySQLError as error:
                self._renewal_failed(error)

    async def __aexit__(self, *error: object) -> None:
        if self._joined:
            return
        self._lease.ended = True
        self._turns.leave(self._lease)
        try:
            if self._lease.here:
                await settled(self._end())
        finally:
            self._lock.release()

    async def _end(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._give_back()

    async def _give_back(self) -> None:
        try:
            await self._run(self._operations.release(self._lease))
        except LocusMySQLError as error:
            TURNS.warning("A turn could not be released; it ends when its lease expires: %s", loggable(error))


class SyncTurn(_Turn):
    """``with`` block in which no other turn on the thread runs."""

    def __init__(
        self,
        run: Callable[[Operation[Any]], Any],
        operations: HasTurns,
        key: ThreadKey,
        wait_s: float,
        lease_s: float,
    ) -> None:
        super().__init__(operations, key, wait_s, lease_s)
        self._run = run
        self._stop = threading.Event()
        self._renewing: threading.Thread | None = None

    def __enter__(self) -> Lease:
        outer = self._join()
        if outer is not None:
            return outer
        deadline = time.monotonic() + self._wait_s
        self._lock = self._turns.lock(self._lease.key, _ThreadLock)
        if not self._lock.inner.acquire(timeout=self._wait_s):
            raise self._busy()
        try:
            self._acquire(deadline)
        except BaseException:
            self._lock.inner.release()
            raise
        self._turns.enter(self._lease)
        self._renewing = threading.Thread(target=self._renew, name="locus_mysql turn", daemon=True)
        self._renewing.start()
        return self._lease

    def _acquire(self, deadline: float) -> None:
        while True:
            try:
                self._renewed_at = time.monotonic()
                left_s = self._run(self._operations.acquire(self._lease))
            except BaseException:  # the turn may have been acquired, or the packet may still arrive
                self._lease.may_arrive = True
                self._give_back()
                raise
            if left_s is None:
                return
            time.sleep(self._pause(left_s, deadline))

    def _renew(self) -> None:
        while not self._lease.lost and not self._stop.wait(self._lease.lease_s / RENEWALS):
            began = time.monotonic()
            try:
                self._renewed(began, self._run(self._operations.renew(self._lease)))
            except LocusMySQLError as error:
                self._renewal_failed(error)

    def __exit__(self, *error: object) -> None:
        if self._joined:
            return
        self._lease.ended = True
        self._turns.leave(self._lease)
        self._stop.set()
        try:
            if self._lease.here:
                self._give_back()
                if self._renewing is not None:
                    self._renewing.join(1.0)
        finally:
            self._lock.inner.release()

    def _give_back(self) -> None:
        try:
            self._run(self._operations.release(self._lease))
        except LocusMySQLError as error:
            TURNS.warning("A turn could not be released; it ends when its lease expires: %s", loggable(error))


class _ThreadLock:
    """A lock that can be referred to weakly on every version of Python."""

    def __init__(self) -> None:
        self.inner = threading.Lock()
