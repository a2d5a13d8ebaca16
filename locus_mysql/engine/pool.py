"""Connections kept for reuse: `Pool`, which lends each `ServerConnection` to one user at a time.

A call takes the first connection that is free, newly opened or given back: while others are in use, a new one is opened
beside the call, which waits for whichever comes first. A connection in an unknown state is dropped, never reused. A
connection that was idle for a while is pinged before it is lent; one in steady use is not. When a server is found dead,
or has lost its role, all connections to it are dropped, so that only one call is delayed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, TypeGuard
from weakref import ref

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..drivers.interface import ConnectionLost, DriverError, Result, ServerError, Traffic
from ..errors import LocusMySQLError
from . import logs
from .cluster.topology import LeadsToSecondary
from .commands import Close, CommandGenerator, Connection, Execute, Ping, Wait
from .connection_slots import Slot
from .failures import READ_ONLY, lacks_temporary_table
from .group_commit import CommitGroup
from .logs import CONNECTIONS, Counters, PoolState, loggable

if TYPE_CHECKING:
    from .servers import Servers
    from .sides import Side

#: A connection idle for longer is pinged before use, in seconds.
PING_AFTER_S = 5.0

#: Idle connections are inspected this long after the first one exceeds its idle limit, in seconds.
REAP_AFTER_S = 0.05

#: The session's temporary tables go to disk at once. Needs no privilege. Making one takes 0.1 ms longer (9.7.4).
_ON_DISK = Statement("SET SESSION big_tables = 1")


class ServerConnection:
    """An open connection of a pool.

    Args:
        connection: The driver's.
        endpoint: The server it leads to.
    """

    #: Whether packets are always sent by `execute`, as it does more than send them.
    wraps = False

    def __init__(self, connection: Connection, endpoint: Endpoint) -> None:
        self.connection = connection
        self.endpoint = endpoint
        #: Whether the next packet can be sent without `execute`, which makes each call a little faster.
        self.sends_directly = not self.wraps
        #: Set by the pool: its generation when this was opened, and times by its clock.
        self.generation = 0
        self.opened_at = self.idle_since = 0.0
        #: Whether temporary tables go to disk, because a statement failed for lack of memory for them.
        self.on_disk = False
        self._unsent: tuple[Statement, ...] = ()

    def execute(self, statements: Sequence[Statement]) -> CommandGenerator[list[Result]]:
        """Send statements in one packet.

        If it fails for lack of memory for temporary tables, the next packet sends them to disk: see `on_disk`.
        """
        unsent, self._unsent = self._unsent, ()
        self.sends_directly = not self.wraps
        try:
            results: list[Result] = yield Execute(self.connection, (*unsent, *statements) if unsent else statements)
        except ServerError as error:
            self.refused(error)
            if error.statement_index is not None:
                error.statement_index -= len(unsent)
            raise
        return results[len(unsent) :] if unsent else results

    def refused(self, error: ServerError) -> None:
        """Note why the server refused a packet: it may have lacked memory for temporary tables."""
        if not self.on_disk and lacks_temporary_table(error):
            self.on_disk, self._unsent, self.sends_directly = True, (_ON_DISK,), False

    def ping(self) -> CommandGenerator[None]:
        """Check that the server answers. Raises `ConnectionLost` if it does not."""
        yield Ping(self.connection)


class Pool:
    """Connections for the threads of this process, or for the tasks of one event loop.

    A pool that is freed without being closed drops its connections.

    Args:
        config: Size, timeouts and ages.
        side: The way in which users of the pool wait.
        servers: Opens connections.
        counters: The counters, if they are shared.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        config: ConnectionOptions,
        side: Side,
        servers: Servers,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self.side = side
        self._servers = servers
        self._counters = counters or Counters()
        self._clock = clock
        self._process = os.getpid()
        # Reentrant, because the garbage collector may end an abandoned call of a task, which gives its connection back,
        # while the same thread holds the lock.
        self._lock = threading.RLock()
        #: The connections that are not in use, the last used one last; the same list for as long as the pool exists.
        self._idle: list[ServerConnection] = []
        self._sound_until = inf  # no idle connection is too old before
        self._slots = side.slots(config, self._lock, self._idle)
        self._reaping = False
        self._generation = 0

    def borrow_at_once(self, slot: Slot) -> ServerConnection | None:
        """Lend a connection in steady use, if one is free.

        A signal handler may raise an exception at almost any point. So `give_back_after` cleans up after any of the
        steps of a call, and may be called repeatedly.
        """
        idle, taken = self._idle, self._slots.taken
        with self._lock:
            if not idle or len(taken) >= self._config.pool_size:
                return None
            lent, now = idle[-1], self._clock()
            if now >= self._sound_until or now - lent.idle_since > PING_AFTER_S:
                return None
            taken.add(ref(slot, taken.discard))
            slot.lent = lent
            del idle[-1]
        return lent

    def borrow(self, slot: Slot, *, tested: bool = False) -> CommandGenerator[ServerConnection | None]:
        """Lend the first connection that is free, given back or newly opened.

        Args:
            slot: The user's.
            tested: Ping an idle connection first, however briefly it was idle.

        Returns:
            The connection; None if the slot's write was sent by another call meanwhile.

        Raises:
            PoolTimeout: No connection became free in time.
            DriverError: No connection could be opened.
        """
        with self._lock:
            has_slot = self._slots.take(slot)
        if not has_slot:
            self._open_for_others(1)
            try:
                yield Wait(partial(self._slots.wait, slot))
            except BaseException:
                self._return_unused(slot)
                raise
            if slot.write is not None and slot.write.taken:
                return None
            if slot.lent is None:  # it opens a connection itself, as no other user has one
                self._open_for_others(len(self._slots.waiters))
        return (yield from self._sound(slot, tested=tested))

    def give_back_at_once(self, slot: Slot, lent: ServerConnection) -> bool:
        """Take back a connection whose call succeeded; False if it is outdated, for `close_outdated`."""
        self._count(lent.connection)
        with self._lock:
            if lent.generation != self._generation:
                return False
            self._keep(lent)
            slot.lent = None
            slots = self._slots
            slots.taken.discard(ref(slot))
            if slots.waiters:
                slots.wake()
        return True

    def close_outdated(self, slot: Slot, lent: ServerConnection) -> CommandGenerator[None]:
        """Close a connection that was returned after its pool was closed, or its server abandoned."""
        yield Close(lent.connection)
        slot.lent = None
        self._leave(slot)

    def give_back_after(self, slot: Slot, error: BaseException) -> None:
        """Take back a slot, and its connection if it has one, after a call ended with an error. Never waits."""
        try:
            self._give_back_after(slot, error)
        except BaseException as second:
            self._give_back_after(slot, second)
            raise

    def share_packet(self, slot: Slot) -> bool:
        """Let a call that has a connection send the writes of those that wait for one; False if it sends none.

        They are in `Slot.group`.
        """
        if slot.write is None or slot.lent is None or not self._slots.waiters:
            return False
        if not getattr(slot.lent.connection, "supports_group_commit", False):
            return False
        group = slot.group = CommitGroup(slot.write)  # before others rely on it, so that it is abandoned in any case
        with self._lock:
            self._slots.gather(group)
        return len(group.writes) > 1

    def state(self) -> PoolState:
        """Return the pool's current usage. Any thread may call this."""
        with self._lock:
            # A connection that is being lent or returned now may be in both.
            idle, in_use, waiting = len(self._idle), len(self._slots.taken), len(self._slots.waiters)
        return PoolState(min(idle + in_use, self._config.pool_size), in_use, waiting)

    def close(self) -> CommandGenerator[None]:
        """Close idle connections now, and lent ones when they are returned. The pool can be used again."""
        self.side.stop()
        yield from self._close(self.outdate(), "the pool was closed")

    def abort(self) -> None:
        """Drop idle connections at once, for a closed event loop; close lent ones when they are returned."""
        self.side.stop()
        abort_all(self.outdate())

    def outdate(self) -> list[ServerConnection]:
        """Keep no connection opened so far; return the idle ones, to be closed or dropped."""
        with self._lock:
            idle, self._generation = self._take_all(), self._generation + 1
        return idle

    def reap(self) -> CommandGenerator[None]:
        """Close connections that are idle for too long. The pool schedules another call for the others."""
        with self._lock:
            now = self._clock()
            stale = self._take_stale(now)
            self._reaping = bool(self._idle)
            if self._reaping:
                self.side.call_later(self.reap, self._sound_until - now + REAP_AFTER_S)
        yield from self._close(stale, logs.TOO_OLD)

    def __del__(
        self, getpid: Callable[[], int] = os.getpid, is_finalizing: Callable[[], bool] = sys.is_finalizing
    ) -> None:
        """Drop idle connections: an event loop keeps unused transports open.

        In a forked child the connections are left alone, as they are the parent's. When the interpreter ends, it
        may have emptied the modules whose functions drop them; then the operating system does it.
        """
        try:
            if self._process == getpid() and self._idle:
                self.side.abort_orphans(self._take_all())
        except Exception:
            if not is_finalizing():
                raise

    def _sound(self, slot: Slot, *, tested: bool) -> CommandGenerator[ServerConnection]:
        """Return the slot's connection, or another idle one, if it works; else a new one, which is lent to the slot."""
        while True:
            with self._lock:
                now = self._clock()
                kept, stale = slot.lent, self._take_stale(now)
                if kept is not None and now > self._stale_at(kept):
                    stale.append(kept)
                    slot.lent = kept = self._idle.pop() if self._idle else None
            if stale:
                yield from self._close(stale, logs.TOO_OLD)
            if kept is None:
                slot.lent = opened = yield from self._open()
                return opened
            if now - kept.idle_since <= PING_AFTER_S and not tested:
                return kept
            if (yield from self._answers(kept)):
                return kept
            with self._lock:
                slot.lent = self._idle.pop() if self._idle else None

    def _answers(self, kept: ServerConnection) -> CommandGenerator[bool]:
        """Ping a connection. If that fails, drop all idle ones, because each of them might time out as well."""
        try:
            yield from kept.ping()
        except DriverError as error:
            kept.connection.abort()
            with self._lock:
                others = self._take_all()
            abort_all(others)
            CONNECTIONS.info(  # no call has failed because of it
                "A connection to MySQL at %s was gone when it was to be used again; it and %d idle ones were dropped: "
                "%s.",
                *(kept.endpoint, len(others), loggable(error)),
            )
            return False
        except BaseException:
            kept.connection.abort()
            raise
        return True

    def _open(self) -> CommandGenerator[ServerConnection]:
        began, generation = time.perf_counter(), self._generation
        opened = yield from self._servers.connect(self)
        opened.generation, opened.opened_at = generation, self._clock()
        self._counters.open_one()
        version, took_ms = opened.connection.server_version, (time.perf_counter() - began) * 1_000
        logs.warn_about(version)
        CONNECTIONS.debug("Opened a connection to MySQL %s at %s in %.0f ms.", version, opened.endpoint, took_ms)
        return opened

    def _open_for_others(self, count: int) -> None:
        """Open up to this number of connections for calls that wait, if there are as many free slots."""
        for _ in range(count):
            with self._lock:
                slot = self._slots.take_to_open()
            if slot is None:
                return
            self.side.start(partial(self._open_beside, slot))

    def _open_beside(self, slot: Slot) -> CommandGenerator[None]:
        """Open a connection for the call that has waited the longest, if none is given back to it meanwhile."""
        try:
            slot.lent = opened = yield from self._open()
            if not self.give_back_at_once(slot, opened):
                yield from self.close_outdated(slot, opened)
        except BaseException as error:
            if isinstance(error, Exception):
                with self._lock:
                    self._slots.fail_first(error)
            self.give_back_after(slot, error)
            if not isinstance(error, DriverError | LocusMySQLError):
                raise

    def _return_unused(self, slot: Slot) -> None:
        """Keep the connection of a user that was interrupted before it knew of it."""
        with self._lock:
            lent = slot.lent
            if lent is not None and lent.generation == self._generation:
                self._idle.append(lent)
                slot.lent = None

    def _count(self, connection: Connection) -> None:
        """Add the traffic of a connection since this was last called for it."""
        traffic: Traffic | None = getattr(connection, "traffic", None)
        if traffic is None:  # an external driver may not count its traffic
            return
        with self._counters.lock:
            total = self._counters.total
            total.round_trips += traffic.round_trips
            total.sent_bytes += traffic.sent_bytes
            total.received_bytes += traffic.received_bytes
        traffic.clear()

    def _keep(self, lent: ServerConnection) -> None:
        """Keep a connection, with the lock held, and schedule its closing after too long without use."""
        if lent.connection.closed:
            return
        config, lent.idle_since = self._config, self._clock()
        self._idle.append(lent)
        self._sound_until = min(
            self._sound_until, lent.idle_since + config.pool_idle_s, lent.opened_at + config.pool_max_age_s
        )
        if not self._reaping:
            self.side.call_later(self.reap, config.pool_idle_s + REAP_AFTER_S)
            self._reaping = True

    def _give_back_after(self, slot: Slot, error: BaseException) -> None:
        lent = slot.lent
        try:
            if slot.group is not None:
                slot.group.abandon()
            if lent is not None:
                self._count(lent.connection)
                self._keep_or_drop(lent, error)
                slot.lent = None
        finally:
            self._leave(slot)

    def _keep_or_drop(self, lent: ServerConnection, error: BaseException) -> None:
        """Keep or drop a connection whose call failed; also drop those to the same server if the server failed."""
        others: list[ServerConnection] = []
        with self._lock:
            if any(one is lent for one in self._idle):  # a signal interrupted its lending, or its return
                return
            current = lent.generation == self._generation
            if current and _is_sound(error):
                self._keep(lent)
                return
            # Of several concurrent callers, only the first drops idle connections: the others might drop new ones.
            if current and _affects_whole_server(error) and self._servers.left(lent.endpoint, error):
                others = self.outdate()
        lent.connection.abort()
        abort_all(others)
        if _affects_whole_server(error):
            self._counters.lose(1 + len(others))
            message = "Lost a connection to MySQL at %s in use, and dropped %d idle ones: %s."
            CONNECTIONS.warning(message, lent.endpoint, len(others), loggable(error))
        else:  # the call ended for another reason, such as the cancellation of its task
            CONNECTIONS.debug("Dropped a connection to MySQL at %s in use: %s.", lent.endpoint, loggable(error))

    def _take_all(self) -> list[ServerConnection]:
        everything = self._idle[:]
        self._idle.clear()
        return everything

    def _take_stale(self, now: float) -> list[ServerConnection]:
        """Return the idle connections that are too old or idle for too long, which are kept no more."""
        stale = [one for one in self._idle if now > self._stale_at(one)]
        if stale:
            self._idle[:] = [one for one in self._idle if one not in stale]
        self._sound_until = min(map(self._stale_at, self._idle), default=inf)
        return stale

    def _stale_at(self, connection: ServerConnection) -> float:
        config = self._config
        return min(connection.opened_at + config.pool_max_age_s, connection.idle_since + config.pool_idle_s)

    def _leave(self, slot: Slot) -> None:
        with self._lock:
            self._slots.taken.discard(ref(slot))
            self._slots.wake()

    def _close(self, connections: Sequence[ServerConnection], why: str) -> CommandGenerator[None]:
        try:
            for one in connections:
                yield Close(one.connection)
        except BaseException:
            abort_all(connections)
            raise
        for one in connections:
            CONNECTIONS.debug("Closed a connection to MySQL at %s: %s.", one.endpoint, why)


def abort_all(connections: Sequence[ServerConnection]) -> None:
    """Drop connections at once."""
    for one in connections:
        one.connection.abort()


def _is_sound(error: BaseException) -> bool:
    """Check whether a connection can be used again after this."""
    return isinstance(error, ServerError) and error.errno not in READ_ONLY


def _affects_whole_server(error: BaseException) -> TypeGuard[DriverError]:
    """Check whether an error of one connection makes all other connections to its server unreliable."""
    return isinstance(error, ConnectionLost | LeadsToSecondary) or (
        isinstance(error, ServerError) and error.errno in READ_ONLY
    )
