"""Connections kept for reuse: one pool for threads, one for the tasks of an event loop.

A connection is lent to one user at a time. One that comes back in doubt is dropped, never reused. A connection that
was idle for a while is pinged before it is lent; one in steady use never is. All of them lead to the primary, or all to
secondaries: when a server is found dead, or is no longer the primary, all are dropped, so that no two calls pay for the
same discovery.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from ..config import ConnectionOptions
from ..drivers.interface import (
    AsyncConnection,
    ConnectionLost,
    Driver,
    DriverError,
    ServerError,
    SyncConnection,
)
from ..errors import PoolTimeout
from .connection_logs import (
    TOO_OLD,
    log_closed,
    log_dropped,
    log_gone,
    log_loss,
    log_opened,
)
from .counters import Counters, PoolState
from .failures import READ_ONLY
from .kills import Kills, leaves_a_statement
from .members import AsyncMember, Role, SyncMember
from .primary import PRIMARY
from .reaper import REAPER
from .topology import Topology
from .watch import AsyncWatch, SyncWatch

#: A connection idle for longer is pinged before use, in seconds.
PING_AFTER_S = 5.0

#: Idle connections are looked through this long after the first has been idle for too long, in seconds.
_REAP_AFTER_S = 0.05

C = TypeVar("C", SyncConnection, AsyncConnection)


class Kept(NamedTuple, Generic[C]):
    """An open connection."""

    connection: C
    opened_at: float
    idle_since: float


class Lent(NamedTuple, Generic[C]):
    """A connection that somebody has, when it was opened, and the generation of the pool then."""

    connection: C
    opened_at: float
    generation: int


class IdleConnections(Generic[C]):
    """The open connections nobody uses, last used first.

    Args:
        config: Has the limits of age and idleness.
        clock: Seconds that only go forward.
    """

    def __init__(self, config: ConnectionOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._kept: list[Kept[C]] = []
        self._sound_until = inf  # no connection is too old before

    def take_sound(self) -> Kept[C] | None:
        """The connection last used, if it needs no ping, and none is too old: as it is in steady use."""
        now = self._clock()
        if not self._kept or now >= self._sound_until or now - self._kept[-1].idle_since > PING_AFTER_S:
            return None
        return self._kept.pop()

    def take(self) -> tuple[Kept[C] | None, bool, list[Kept[C]]]:
        """The connection last used, whether to ping it, and connections that are too old to be used again."""
        now = self._clock()
        stale = [kept for kept in self._kept if self._is_stale(kept, now)]
        if stale:
            self._kept = [kept for kept in self._kept if kept not in stale]
        self._sound_until = min(map(self._stale_at, self._kept), default=inf)
        best = self._kept.pop() if self._kept else None
        return best, best is not None and now - best.idle_since > PING_AFTER_S, stale

    def put(self, connection: C, opened_at: float) -> None:
        """Keep a connection for the next user."""
        kept = Kept(connection, opened_at, self._clock())
        self._kept.append(kept)
        stale_at = self._stale_at(kept)
        if stale_at < self._sound_until:
            self._sound_until = stale_at

    def take_stale(self) -> tuple[list[Kept[C]], float | None]:
        """The connections that are too old or were idle for too long; and in how many seconds to look again, if any."""
        now = self._clock()
        stale = [kept for kept in self._kept if self._is_stale(kept, now)]
        self._kept = [kept for kept in self._kept if not self._is_stale(kept, now)]
        self._sound_until = due = min(map(self._stale_at, self._kept), default=inf)
        return stale, due - now + _REAP_AFTER_S if self._kept else None

    def take_all(self) -> list[Kept[C]]:
        """Every connection, to be closed."""
        everything, self._kept = self._kept, []
        return everything

    def _stale_at(self, kept: Kept[C]) -> float:
        return min(kept.opened_at + self._config.pool_max_age_s, kept.idle_since + self._config.pool_idle_s)

    def __len__(self) -> int:
        return len(self._kept)

    def now(self) -> float:
        """The time by this pool's clock."""
        return self._clock()

    def _is_stale(self, kept: Kept[C], now: float) -> bool:
        return now - kept.opened_at > self._config.pool_max_age_s or now - kept.idle_since > self._config.pool_idle_s


def pool_timeout(config: ConnectionOptions) -> PoolTimeout:
    """The error of a caller that waited too long for a connection."""
    return PoolTimeout(
        f"All {config.pool_size} connections were in use for {config.pool_timeout_s:g} s. Raise pool_size (the "
        "server's max_connections permitting), or pool_timeout_s."
    )


def _is_sound(error: BaseException) -> bool:
    """Whether a connection can be used again after this."""
    return isinstance(error, ServerError) and error.errno not in READ_ONLY


def _condemns_server(error: BaseException) -> TypeGuard[DriverError]:
    """Whether the other connections to the same server are in doubt as well."""
    return isinstance(error, ConnectionLost) or (isinstance(error, ServerError) and error.errno in READ_ONLY)


class SyncPool:
    """Connections for the threads of this process. One that is freed without being closed drops them.

    Args:
        config: Size, timeouts and ages.
        driver: Opens connections.
        topology: What is known of the servers, if it is known to others too.
        counters: Where it is counted what happens, if others count there too.
        role: Which of several servers the connections are to.
        kills: Ends what a server still does for a connection that was dropped.
    """

    def __init__(
        self,
        config: ConnectionOptions,
        driver: Driver,
        topology: Topology | None = None,
        counters: Counters | None = None,
        role: Role = PRIMARY,
        kills: Kills | None = None,
    ) -> None:
        self._role = role
        self._kills = kills
        self._process = os.getpid()
        self._idle: IdleConnections[SyncConnection] = IdleConnections(config)
        self._counters = counters or Counters()
        self._in_use = self._waiting = 0
        self._config = config
        self._driver = driver
        self._topology = topology or Topology(config.endpoints)
        self._watch = SyncWatch(self._look_for_another) if self._topology.several else None
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._watched = False
        self._generation = 0
        self.reached = False

    def connection(self, *, tested: bool = False) -> SyncLoan:
        """Lend a connection to a block.

        Args:
            tested: Ping it first, however briefly it was idle.

        Raises:
            PoolTimeout: None became free in time.
            DriverError: None could be opened.
        """
        return SyncLoan(self, tested=tested)

    def borrow(self, *, tested: bool) -> Lent[SyncConnection]:
        """Take a connection; it must be given back. Raises as `connection` does."""
        if not tested and self._watch is None:
            lent = self._lend_at_once()
            if lent is not None:
                return lent
        self._wait_for_a_place()
        try:
            generation = self._generation
            connection, opened_at = self._checked(tested=tested)
            if self._watch is not None:
                self._begin(connection)
        except BaseException:
            self._leave()
            raise
        return Lent(connection, opened_at, generation)

    def give_back(self, lent: Lent[SyncConnection], error: BaseException | None) -> None:
        """Take a connection back.

        Args:
            lent: What was borrowed.
            error: By which its user ended, if by one.
        """
        connection, opened_at, generation = lent
        try:
            if self._watch is not None:
                self._end(connection)
            self._counters.add(connection)
            if error is not None:
                self._take_back_after(error, connection, opened_at, generation)
            elif generation == self._generation:
                with self._lock:
                    self._keep(connection, opened_at)
            else:
                connection.close()
        finally:
            self._leave()

    def state(self) -> PoolState:
        """What the pool has now."""
        with self._lock:
            # One that changes hands at this moment is in both places.
            most = min(self._in_use + len(self._idle), self._config.pool_size)
            return PoolState(most, self._in_use, self._waiting)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back. The pool can be used again."""
        with self._lock:
            self._generation += 1
            kept = self._idle.take_all()
        for one in kept:
            one.connection.close()
        log_closed((one.connection for one in kept), "the pool was closed")

    def __del__(self) -> None:
        """Drop what is idle. In a forked child it is left alone, as it is the parent's."""
        if self._process == os.getpid():
            for one in self._idle.take_all():
                one.connection.abort()

    def _lend_at_once(self) -> Lent[SyncConnection] | None:
        """A connection, if there are a place and one in steady use."""
        with self._lock:
            if self._in_use >= self._config.pool_size:
                return None
            kept = self._idle.take_sound()
            if kept is None:
                return None
            self._in_use += 1
            return Lent(kept.connection, kept.opened_at, self._generation)

    def _wait_for_a_place(self) -> None:
        size = self._config.pool_size
        with self._lock:
            if self._in_use >= size:
                self._waiting += 1
                try:
                    if not self._freed.wait_for(lambda: self._in_use < size, self._config.pool_timeout_s):
                        raise pool_timeout(self._config)
                except BaseException:
                    self._freed.notify()  # the word that a place is free may have been for this thread
                    raise
                finally:
                    self._waiting -= 1
            self._in_use += 1

    def _leave(self) -> None:
        with self._lock:
            self._in_use -= 1
            if self._waiting:
                self._freed.notify()

    def reap(self) -> float | None:
        """See `reaper.Reaped.reap`."""
        with self._lock:
            stale, wait_s = self._idle.take_stale()
            self._watched = wait_s is not None
        for one in stale:
            one.connection.close()
        log_closed((one.connection for one in stale), TOO_OLD)
        return wait_s

    def _keep(self, connection: SyncConnection, opened_at: float) -> None:
        """Keep a connection, under the lock, and have it closed when it was not used for too long."""
        if connection.closed:
            return
        self._idle.put(connection, opened_at)
        if not self._watched:
            self._watched = True
            REAPER.call(self, self._config.pool_idle_s + _REAP_AFTER_S)

    def _take_back_after(
        self, error: BaseException, connection: SyncConnection, opened_at: float, generation: int
    ) -> None:
        kept: list[Kept[SyncConnection]] = []
        with self._lock:
            current = generation == self._generation
            if current and _is_sound(error):
                self._keep(connection, opened_at)
                return
            # Of many callers at once, only the first drops what is idle: the others might hit new connections.
            if current and _condemns_server(error) and isinstance(connection, SyncMember):
                self._topology.failed(connection.endpoint, error)
                self._generation += 1
                kept = self._idle.take_all()
        connection.abort()
        if self._kills is not None and leaves_a_statement(error):
            self._kills.end(connection)
        for one in kept:
            one.connection.abort()
        if _condemns_server(error):
            self._counters.lose(1 + len(kept))
            log_loss(connection, error, len(kept))
        else:
            log_dropped(connection, error)

    def _checked(self, *, tested: bool) -> tuple[SyncConnection, float]:
        while True:
            with self._lock:
                kept, doubtful, stale = self._idle.take()
            if stale:
                for one in stale:
                    one.connection.close()
                log_closed((one.connection for one in stale), TOO_OLD)
            if kept is None:
                return self._open(), self._idle.now()
            if not (doubtful or tested):
                return kept.connection, kept.opened_at
            try:
                self._begin(kept.connection)
                try:
                    kept.connection.ping()
                finally:
                    self._end(kept.connection)
            except DriverError as error:
                kept.connection.abort()
                log_gone(kept.connection, error, self._drop_idle())  # else each of them might cost a time-out
            else:
                return kept.connection, kept.opened_at

    def _open(self) -> SyncConnection:
        began = time.perf_counter()
        connection = self._role.connect(self._config, self._driver, self._topology)
        self.reached = True
        self._counters.open_one()
        log_opened(connection, time.perf_counter() - began)
        return connection

    def _drop_idle(self) -> int:
        with self._lock:
            kept = self._idle.take_all()
        for one in kept:
            one.connection.abort()
        return len(kept)

    def _begin(self, connection: SyncConnection) -> None:
        if self._watch is not None and isinstance(connection, SyncMember):
            self._watch.begin(connection)

    def _end(self, connection: SyncConnection) -> None:
        if self._watch is not None and isinstance(connection, SyncMember):
            self._watch.end(connection)

    def _look_for_another(self, silent: SyncMember) -> None:
        role = self._role
        if self._watch is None or not role.gone(self._config, self._driver, self._topology, silent.endpoint):
            return
        with self._lock:
            self._generation += 1
        self._drop_idle()
        for one in self._watch.calls.waiting():
            if one.endpoint == silent.endpoint:
                one.interrupt()


class AsyncPool:
    """Connections for the tasks of one event loop. One that is freed without being closed drops them.

    Args:
        config: Size, timeouts and ages.
        driver: Opens connections.
        topology: What is known of the servers, if it is known to others too.
        counters: Where it is counted what happens, if others count there too.
        role: Which of several servers the connections are to.
        kills: Ends what a server still does for a connection that was dropped.
    """

    def __init__(
        self,
        config: ConnectionOptions,
        driver: Driver,
        topology: Topology | None = None,
        counters: Counters | None = None,
        role: Role = PRIMARY,
        kills: Kills | None = None,
    ) -> None:
        self._role = role
        self._kills = kills
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: IdleConnections[AsyncConnection] = IdleConnections(config)
        self._counters = counters or Counters()
        self._in_use = self._waiting = 0
        self._config = config
        self._driver = driver
        self._topology = topology or Topology(config.endpoints)
        self._watch = AsyncWatch(self._look_for_another) if self._topology.several else None
        self._free = asyncio.BoundedSemaphore(config.pool_size)
        self._watched = False
        self._closing: asyncio.Task[None] | None = None
        self._generation = 0
        self.reached = False

    def connection(self, *, tested: bool = False) -> AsyncLoan:
        """As `SyncPool.connection`."""
        return AsyncLoan(self, tested=tested)

    async def borrow(self, *, tested: bool) -> Lent[AsyncConnection]:
        """As `SyncPool.borrow`."""
        if self._free.locked():
            await self._wait_for_a_place()
        else:
            await self._free.acquire()
        self._in_use += 1
        if not tested and self._watch is None:
            kept = self._idle.take_sound()
            if kept is not None:
                return Lent(kept.connection, kept.opened_at, self._generation)
        try:
            generation = self._generation
            connection, opened_at = await self._checked(tested=tested)
            if self._watch is not None:
                self._begin(connection)
        except BaseException:
            self._leave()
            raise
        return Lent(connection, opened_at, generation)

    async def give_back(self, lent: Lent[AsyncConnection], error: BaseException | None) -> None:
        """As `SyncPool.give_back`."""
        connection, opened_at, generation = lent
        try:
            if self._watch is not None:
                self._end(connection)
            self._counters.add(connection)
            if error is not None:
                self._take_back_after(error, connection, opened_at, generation)
            elif generation == self._generation:
                self._keep(connection, opened_at)
            else:
                await connection.close()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._in_use -= 1
        self._free.release()

    def state(self) -> PoolState:
        """What the pool has now. Any thread may ask."""
        most = min(self._in_use + len(self._idle), self._config.pool_size)  # see `SyncPool.state`
        return PoolState(most, self._in_use, self._waiting)

    async def close(self) -> None:
        """As `SyncPool.close`."""
        if self._watch is not None:
            self._watch.stop()
        self._generation += 1
        kept = self._idle.take_all()
        for one in kept:
            await one.connection.close()
        log_closed((one.connection for one in kept), "the pool was closed")

    def abort(self) -> None:
        """Drop what is idle without a word; for a loop that is closed."""
        if self._watch is not None:
            self._watch.stop()
        self._generation += 1
        self._drop_idle()

    def __del__(self) -> None:
        """Drop what is idle: an event loop keeps open what nobody has any more.

        A pool may be freed at any place of any thread, and transports are not safe to use there, so the event loop does
        it. In a forked child the connections are left alone, as they are the parent's.
        """
        if self._process != os.getpid():
            return
        kept = self._idle.take_all()
        if not kept:
            return
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(_abort, kept)
                return
        _abort(kept)

    async def _wait_for_a_place(self) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._config.pool_timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise pool_timeout(self._config) from None
        finally:
            self._waiting -= 1

    def reap(self) -> None:
        """Close what is idle for too long, and call again when more will be."""
        stale, wait_s = self._idle.take_stale()
        self._watched = wait_s is not None
        if wait_s is not None:
            self._reap_in(wait_s)
        log_closed((one.connection for one in stale), TOO_OLD)
        if stale:
            self._closing = asyncio.get_running_loop().create_task(_close(stale))

    def _keep(self, connection: AsyncConnection, opened_at: float) -> None:
        """Keep a connection, and have it closed when it was not used for too long."""
        if connection.closed:
            return
        self._idle.put(connection, opened_at)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not self._watched:
            self._watched = True
            self._reap_in(self._config.pool_idle_s + _REAP_AFTER_S)

    def _reap_in(self, wait_s: float) -> None:
        asyncio.get_running_loop().call_later(wait_s, _reap, weakref.ref(self))

    def _take_back_after(
        self, error: BaseException, connection: AsyncConnection, opened_at: float, generation: int
    ) -> None:
        current = generation == self._generation
        if current and _is_sound(error):
            self._keep(connection, opened_at)
            return
        connection.abort()
        if self._kills is not None and leaves_a_statement(error):
            self._kills.end(connection)
        others = 0
        if current and _condemns_server(error) and isinstance(connection, AsyncMember):
            self._topology.failed(connection.endpoint, error)
            self._generation += 1
            others = self._drop_idle()
        if _condemns_server(error):
            self._counters.lose(1 + others)
            log_loss(connection, error, others)
        else:
            log_dropped(connection, error)

    async def _checked(self, *, tested: bool) -> tuple[AsyncConnection, float]:
        while True:
            kept, doubtful, stale = self._idle.take()
            if stale:
                for one in stale:
                    await one.connection.close()
                log_closed((one.connection for one in stale), TOO_OLD)
            if kept is None:
                return await self._open(), self._idle.now()
            if not (doubtful or tested):
                return kept.connection, kept.opened_at
            try:
                self._begin(kept.connection)
                try:
                    await kept.connection.ping()
                finally:
                    self._end(kept.connection)
            except DriverError as error:
                kept.connection.abort()
                log_gone(kept.connection, error, self._drop_idle())  # else each of them might cost a time-out
            except BaseException:
                kept.connection.abort()
                raise
            else:
                return kept.connection, kept.opened_at

    async def _open(self) -> AsyncConnection:
        began = time.perf_counter()
        connection = await self._role.connect_async(self._config, self._driver, self._topology)
        self.reached = True
        self._counters.open_one()
        log_opened(connection, time.perf_counter() - began)
        return connection

    def _drop_idle(self) -> int:
        kept = self._idle.take_all()
        _abort(kept)
        return len(kept)

    def _begin(self, connection: AsyncConnection) -> None:
        if self._watch is not None and isinstance(connection, AsyncMember):
            self._watch.begin(connection)

    def _end(self, connection: AsyncConnection) -> None:
        if self._watch is not None and isinstance(connection, AsyncMember):
            self._watch.end(connection)

    async def _look_for_another(self, silent: AsyncMember) -> None:
        role, config = self._role, self._config
        if self._watch is None or not await role.gone_async(config, self._driver, self._topology, silent.endpoint):
            return
        self._generation += 1
        self._drop_idle()
        for one in self._watch.calls.waiting():
            if one.endpoint == silent.endpoint:
                one.abort()


class SyncLoan:
    """A block that has a connection of a pool; made by `SyncPool.connection`.

    As a class it takes a call less to enter and to leave than a generator would, and every call of a store has one.

    Args:
        pool: The pool.
        tested: See `SyncPool.connection`.
    """

    __slots__ = ("_lent", "_pool", "_tested")

    def __init__(self, pool: SyncPool, *, tested: bool) -> None:
        self._pool = pool
        self._tested = tested

    def __enter__(self) -> SyncConnection:
        self._lent = self._pool.borrow(tested=self._tested)
        return self._lent.connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._pool.give_back(self._lent, error)


class AsyncLoan:
    """As `SyncLoan`, in a task."""

    __slots__ = ("_lent", "_pool", "_tested")

    def __init__(self, pool: AsyncPool, *, tested: bool) -> None:
        self._pool = pool
        self._tested = tested

    async def __aenter__(self) -> AsyncConnection:
        self._lent = await self._pool.borrow(tested=self._tested)
        return self._lent.connection

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._pool.give_back(self._lent, error)


def _reap(reference: weakref.ref[AsyncPool]) -> None:
    """Called by an event loop, which keeps no pool alive."""
    pool = reference()
    if pool is not None:
        pool.reap()


def _abort(kept: list[Kept[AsyncConnection]]) -> None:
    for one in kept:
        one.connection.abort()


async def _close(kept: list[Kept[AsyncConnection]]) -> None:
    for one in kept:
        await one.connection.close()
