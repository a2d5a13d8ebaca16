"""Connections kept for reuse: `Pool`.

A connection is lent to one user at a time. A connection in an unknown state is dropped, never reused. A connection that
was idle for a while is pinged before it is lent; one in steady use is not. All of them lead to the primary:
when it is found dead, or has lost that role, all are dropped, so that only one call is delayed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeGuard, TypeVar, overload

from ..config import ConnectionOptions
from ..drivers.interface import ConnectionLost, Driver, DriverError, ServerError
from . import connection_logs as logs
from .commands import Close, CommandGenerator, Ping, Shielded, Wait
from .connection_slots import Slot
from .counters import Counters, PoolState
from .failures import READ_ONLY
from .group_commit import CommitGroup, QueuedWrite
from .idle import REAP_AFTER_S, IdleConnections
from .primary import PRIMARY
from .servers import Role, ServerConnection
from .sides import Side, abort_all
from .topology import LeadsToSecondary, Topology

T = TypeVar("T")


class Pool:
    """Connections for the threads of this process, or for the tasks of one event loop.

    A pool that is freed without being closed drops its connections.

    Args:
        config: Size, timeouts and ages.
        driver: Opens connections.
        side: The way in which users of the pool wait.
        topology: The known state of the servers, if it is shared.
        counters: The counters, if they are shared.
        role: The role of the servers that the connections lead to.
    """

    def __init__(
        self,
        config: ConnectionOptions,
        driver: Driver,
        side: Side,
        topology: Topology | None = None,
        counters: Counters | None = None,
        role: Role = PRIMARY,
    ) -> None:
        self._config = config
        self._driver = driver
        self._side = side
        self._topology = topology or Topology(config.endpoints)
        self._counters = counters or Counters()
        self._role = role
        self._process = os.getpid()
        # Reentrant, because the garbage collector may end an abandoned call of a task, which gives its connection back,
        # while the same thread holds the lock.
        self._lock = threading.RLock()
        self._slots = side.slots(config, self._lock)
        self._idle = IdleConnections(config)
        self.background = side.background()
        self._watch = side.watch(self._look_for_another) if self._topology.several else None
        self._reaping = False
        self._generation = 0

    @overload
    def lend(
        self, use: Callable[[ServerConnection], CommandGenerator[T]], *, tested: bool = False
    ) -> CommandGenerator[T]: ...

    @overload
    def lend(
        self, use: Callable[[ServerConnection], CommandGenerator[T]], *, write: QueuedWrite
    ) -> CommandGenerator[T | None]: ...

    def lend(
        self,
        use: Callable[[ServerConnection], CommandGenerator[T]],
        *,
        tested: bool = False,
        write: QueuedWrite | None = None,
    ) -> CommandGenerator[T | None]:
        """Lend a connection to a generator, and return what it returns; None if the write was sent in a group.

        A signal handler may raise an exception at almost any point. So `give_back_after` cleans up after any of the
        steps, and may be called repeatedly.

        Args:
            use: Called with the connection.
            tested: Ping the connection first, however briefly it was idle.
            write: The call's write, if it may be sent in a group: with writes of waiting calls, or by another call.

        Raises:
            PoolTimeout: No connection became free in time.
            DriverError: No connection could be opened.
        """
        slot, sending = Slot(write), None
        try:
            lent = None if tested else self.borrow_at_once(slot)
            if lent is None:
                lent = yield from self.borrow(slot, tested=tested)
                if lent is None:
                    return None
            if write is not None and self._gather(slot, write, lent):
                sending = Shielded(self._send_group(slot, lent))
                yield sending
                return None
            result = yield from use(lent)
            if not self.give_back_at_once(slot, lent):
                yield from self.close_outdated(slot, lent)
        except BaseException as error:
            if sending is None or not sending.continues:
                self._clean_up(slot, error)
            raise
        return result

    def _gather(self, slot: Slot, write: QueuedWrite, lent: ServerConnection) -> bool:
        """Let a call that has a connection send the writes of those that wait; False if it sends none."""
        if not self._slots.waiting or not getattr(lent.connection, "supports_group_commit", False):
            return False
        slot.group = group = CommitGroup(write)
        with self._lock:
            self._slots.gather(group)
        return len(group.writes) > 1

    def _send_group(self, slot: Slot, lent: ServerConnection) -> CommandGenerator[None]:
        """Send a group of writes, and give the connection back. Each call finds its outcome in its write."""
        try:
            if slot.group is not None:
                yield from slot.group.send(lent)
            if not self.give_back_at_once(slot, lent):
                yield from self.close_outdated(slot, lent)
        except BaseException as error:
            self._clean_up(slot, error)
            if not isinstance(error, DriverError):
                raise

    def _clean_up(self, slot: Slot, error: BaseException) -> None:
        try:
            self.give_back_after(slot, error)
        except BaseException as second:
            self.give_back_after(slot, second)
            raise

    def borrow_at_once(self, slot: Slot) -> ServerConnection | None:
        """Lend a connection in steady use, if there is one and a free slot."""
        with self._lock:
            if not (self._idle.has_sound() and self._slots.take(slot)):
                return None
            slot.lent = lent = self._idle.last()
            self._idle.remove_last()
        if self._watch is not None:
            self._watch.begin(lent)
        return lent

    def borrow(self, slot: Slot, *, tested: bool = False) -> CommandGenerator[ServerConnection | None]:
        """Wait for a slot, and lend a connection, tested or opened if needed. Raises as `lend` does.

        Returns:
            The connection; None if the slot's write was sent by another call meanwhile.
        """
        with self._lock:
            has_slot = self._slots.take(slot)
        if not has_slot:
            yield Wait(partial(self._slots.wait, slot))
            if slot.write is not None and slot.write.taken:
                return None
        lent = yield from self._sound(slot, tested=tested)
        if self._watch is not None:
            self._watch.begin(lent)
        return lent

    def give_back_at_once(self, slot: Slot, lent: ServerConnection) -> bool:
        """Take back a connection whose call succeeded; False if it is outdated, for `close_outdated`."""
        if self._watch is not None:
            self._watch.end(lent)
        self._counters.add(lent.connection)
        with self._lock:
            if lent.generation != self._generation:
                return False
            self._keep(lent)
            slot.lent = None
            self._slots.free(slot)
        return True

    def close_outdated(self, slot: Slot, lent: ServerConnection) -> CommandGenerator[None]:
        """Close a connection that was returned after its pool was closed, or its server abandoned."""
        yield Close(lent.connection)
        slot.lent = None
        self._leave(slot)

    def give_back_after(self, slot: Slot, error: BaseException) -> None:
        """Take back a slot, and its connection if it has one, after a call ended with an error. Never waits."""
        lent = slot.lent
        try:
            if slot.group is not None:
                slot.group.abandon()
            if lent is not None:
                if self._watch is not None:
                    self._watch.end(lent)
                self._counters.add(lent.connection)
                self._keep_or_drop(lent, error)
                slot.lent = None
        finally:
            self._leave(slot)

    def state(self) -> PoolState:
        """Return the pool's current usage. Any thread may call this."""
        with self._lock:
            # A connection that is being lent or returned now may be in both.
            most = min(self._slots.in_use + len(self._idle), self._config.pool_size)
            return PoolState(most, self._slots.in_use, self._slots.waiting)

    def close(self) -> CommandGenerator[None]:
        """Close idle connections now, and lent ones when they are returned. The pool can be used again."""
        yield Wait(self.background.finish)
        yield from self._close(self._take_all_to_end(), "the pool was closed")

    def abort(self) -> None:
        """Drop idle connections at once, for a closed event loop; close lent ones when they are returned."""
        self.background.cancel()
        abort_all(self._take_all_to_end())

    def reap(self) -> CommandGenerator[None]:
        """Close connections that are idle for too long. The pool schedules another call for the others."""
        with self._lock:
            stale, wait_s = self._idle.take_stale()
            if wait_s is not None:
                self._side.reap_in(self, wait_s)
            self._reaping = wait_s is not None
        yield from self._close(stale, logs.TOO_OLD)

    def __del__(
        self, getpid: Callable[[], int] = os.getpid, is_finalizing: Callable[[], bool] = sys.is_finalizing
    ) -> None:
        """Drop idle connections: an event loop keeps unused transports open.

        In a forked child the connections are left alone, as they are the parent's. When the interpreter ends, it
        may have emptied the modules whose functions drop them; then the operating system does it.
        """
        try:
            if self._process == getpid():
                orphans = self._idle.take_all()
                if orphans:
                    self._side.abort_orphans(orphans)
        except Exception:
            if not is_finalizing():
                raise

    def _sound(self, slot: Slot, *, tested: bool) -> CommandGenerator[ServerConnection]:
        """An idle connection that works, or a new one; it is lent to the slot."""
        while True:
            with self._lock:
                slot.lent, doubtful, stale = self._idle.take()
            if stale:
                yield from self._close(stale, logs.TOO_OLD)
            kept = slot.lent
            if kept is None:
                slot.lent = opened = yield from self._open()
                return opened
            if not (doubtful or tested) or (yield from self._answers(kept)):
                return kept

    def _answers(self, kept: ServerConnection) -> CommandGenerator[bool]:
        """Ping a connection. If that fails, drop all idle ones, because each of them might time out as well."""
        if self._watch is not None:
            self._watch.begin(kept)
        try:
            yield Ping(kept.connection)
        except DriverError as error:
            kept.connection.abort()
            with self._lock:
                others = self._idle.take_all()
            abort_all(others)
            logs.log_gone(kept, error, len(others))
            return False
        except BaseException:
            kept.connection.abort()
            raise
        finally:
            if self._watch is not None:
                self._watch.end(kept)
        return True

    def _open(self) -> CommandGenerator[ServerConnection]:
        began, generation = time.perf_counter(), self._generation
        opened = yield from self._role.connect(self._config, self._driver, self._topology)
        opened.generation, opened.opened_at = generation, self._idle.now()
        self._counters.open_one()
        logs.log_opened(opened, time.perf_counter() - began)
        return opened

    def _keep(self, lent: ServerConnection) -> None:
        """Keep a connection, with the lock held, and schedule its closing after too long without use."""
        if lent.connection.closed:
            return
        self._idle.put(lent)
        if not self._reaping:
            self._side.reap_in(self, self._config.pool_idle_s + REAP_AFTER_S)
            self._reaping = True

    def _keep_or_drop(self, lent: ServerConnection, error: BaseException) -> None:
        """Keep or drop a connection whose call failed; also drop those to the same server if the server failed."""
        others: list[ServerConnection] = []
        with self._lock:
            if self._idle.holds(lent):  # a signal interrupted its lending, or its return
                return
            current = lent.generation == self._generation
            if current and _is_sound(error):
                self._keep(lent)
                return
            # Of several concurrent callers, only the first drops idle connections: the others might drop new ones.
            if (
                current
                and _affects_whole_server(error)
                and (self._topology.several or isinstance(error, LeadsToSecondary))
            ):
                self._topology.failed(lent.endpoint, error)
                others = self._start_generation()
        lent.connection.abort()
        abort_all(others)
        if _affects_whole_server(error):
            self._counters.lose(1 + len(others))
            logs.log_loss(lent, error, len(others))
        else:
            logs.log_dropped(lent, error)

    def _look_for_another(self, silent: ServerConnection) -> CommandGenerator[None]:
        """Abandon a server that does not answer if it has lost its role: end all calls to it."""
        gone = yield from self._role.is_gone(self._config, self._driver, self._topology, silent.endpoint)
        if self._watch is None or not gone:
            return
        with self._lock:
            idle = self._start_generation()
        abort_all(idle)
        for one in self._watch.calls.waiting():
            if one.endpoint == silent.endpoint:
                self._side.end_call(one.connection)

    def _take_all_to_end(self) -> list[ServerConnection]:
        if self._watch is not None:
            self._watch.stop()
        with self._lock:
            return self._start_generation()

    def _start_generation(self) -> list[ServerConnection]:
        """Outdate all connections, with the lock held, and return the idle ones, which must be closed or dropped."""
        self._generation += 1
        return self._idle.take_all()

    def _leave(self, slot: Slot) -> None:
        with self._lock:
            self._slots.free(slot)

    def _close(self, connections: Sequence[ServerConnection], why: str) -> CommandGenerator[None]:
        try:
            for one in connections:
                yield Close(one.connection)
        except BaseException:
            abort_all(connections)
            raise
        logs.log_closed(connections, why)


def _is_sound(error: BaseException) -> bool:
    """Check whether a connection can be used again after this."""
    return isinstance(error, ServerError) and error.errno not in READ_ONLY


def _affects_whole_server(error: BaseException) -> TypeGuard[DriverError]:
    """Check whether an error of one connection makes all other connections to its server unreliable."""
    return isinstance(error, ConnectionLost | LeadsToSecondary) or (
        isinstance(error, ServerError) and error.errno in READ_ONLY
    )
