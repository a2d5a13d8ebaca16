"""The differences between pools for threads and for tasks of an event loop: `BlockingSide` and `AwaitedSide`.

Idle connections of blocking pools are closed by one thread of the process, the `Reaper`. It sleeps until the next
connection is due, and ends when there is none left. It keeps neither a pool nor the interpreter alive. It also ends
before a fork, because the child would inherit its lock, but not the thread that holds it; the parent starts it again.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..config import ConnectionOptions
from ..drivers.interface import WATCH
from .commands import CommandGenerator
from .connection_slots import AwaitedSlots, BlockingSlots, Slots
from .loops import run_awaited, run_blocking
from .pool import Pool, ServerConnection, abort_all

if TYPE_CHECKING:
    from .cluster.watch import OnSuspect, Watch

#: Maximum time that a fork waits for the thread, in seconds: it may be closing a connection.
_PATIENCE_S = 5.0

_Due: TypeAlias = "tuple[float, int, weakref.ref[Reaped]]"


class Side(Protocol):
    """One way of waiting, for one pool."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """The slots of the pool."""

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """A watch over the pool's calls."""

    def start(self, steps: Callable[[], CommandGenerator[None]]) -> None:
        """Run steps that open a connection, beside the call that waits for it. Never waits."""

    def stop(self) -> None:
        """End such steps, if that needs no waiting."""

    def reap_in(self, pool: Pool, wait_s: float) -> None:
        """Let the pool close connections that are idle for too long, if it still exists after this wait."""

    def end_call(self, connection: Any) -> None:
        """End a call that another user of the pool is making; it then raises `ConnectionLost`. Never waits."""

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """Drop the connections of a pool that is being freed, in any thread and at any point of the code."""


class BlockingSide:
    """Users are threads. One thread of the process closes idle connections, see `Reaper`."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """See `Side.slots`."""
        return BlockingSlots(config, lock, idle)

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """See `Side.watch`."""
        from .cluster.watch import ThreadWatch

        return ThreadWatch(on_suspect)

    def start(self, steps: Callable[[], CommandGenerator[None]]) -> None:
        """See `Side.start`."""

        def run() -> None:
            run_blocking(steps())

        # A function that returns the password may read the caller's context. The caller's watch is not for this thread,
        # which may go on after the call has ended.
        context = copy_context()
        context.run(WATCH.set, None)
        try:
            threading.Thread(target=context.run, args=(run,), name="locus-mysql opening", daemon=True).start()
        except RuntimeError:  # no more threads can be started
            run()

    def stop(self) -> None:
        """See `Side.stop`. A thread cannot be ended."""

    def reap_in(self, pool: Pool, wait_s: float) -> None:
        """See `Side.reap_in`."""
        REAPER.call(pool, wait_s)

    def end_call(self, connection: Any) -> None:
        """See `Side.end_call`. The thread that makes the call closes the socket."""
        connection.interrupt()

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """See `Side.abort_orphans`."""
        abort_all(connections)


class AwaitedSide:
    """Users are tasks of one event loop. Its timers close idle connections."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Tasks that open connections, or close them; an event loop itself does not keep its tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """See `Side.slots`."""
        return AwaitedSlots(config, idle)

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """See `Side.watch`."""
        from .cluster.watch import TimerWatch

        return TimerWatch(on_suspect)

    def start(self, steps: Callable[[], CommandGenerator[None]]) -> None:
        """See `Side.start`."""
        task = asyncio.get_running_loop().create_task(run_awaited(steps()))
        task._log_destroy_pending = False  # type: ignore[attr-defined] # a loop may end without it
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """See `Side.stop`."""
        for task in list(self._tasks):
            with suppress(RuntimeError):  # the event loop is closed
                task.cancel()

    def reap_in(self, pool: Pool, wait_s: float) -> None:
        """See `Side.reap_in`."""
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(wait_s, self._reap, weakref.ref(pool))

    def end_call(self, connection: Any) -> None:
        """See `Side.end_call`."""
        connection.abort()

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """See `Side.abort_orphans`. Transports are not safe to use in any thread, so a running event loop does it."""
        if self._loop is not None and self._loop.is_running():
            with suppress(RuntimeError):  # it was closed meanwhile
                self._loop.call_soon_threadsafe(abort_all, connections)
                return
        abort_all(connections)

    def _reap(self, reference: weakref.ref[Pool]) -> None:
        pool = reference()
        if pool is not None:
            self.start(pool.reap)


class Reaped(Protocol):
    """A pool whose idle connections are closed here."""

    def reap(self) -> CommandGenerator[None]:
        """Close connections that were idle for too long, and call `Reaper.call` if others are still idle."""


class Reaper:
    """Calls pools at the times that they requested, in a thread."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._due: list[_Due] = []
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        self._pausing = False
        self._numbers = count()  # so that two entries are never compared by their pools

    def call(self, pool: Reaped, wait_s: float) -> None:
        """Have ``pool.reap()`` run once, if the pool still exists then.

        Args:
            pool: Kept by a weak reference.
            wait_s: The seconds until then.
        """
        with self._changed:
            heapq.heappush(self._due, (monotonic() + wait_s, next(self._numbers), weakref.ref(pool)))
            self._changed.notify()
            self._start()

    def pause(self) -> None:
        """End the thread, and wait for it."""
        with self._changed:
            thread, self._pausing = self._thread, True
            self._changed.notify()
        if thread is not None:
            thread.join(_PATIENCE_S)

    def resume(self) -> None:
        """Start the thread again if any call is due."""
        with self._changed:
            self._pausing = False
            self._start()

    def reset_in_child(self) -> None:
        """Forget the pools: they are the parent's."""
        self._reset()

    def _start(self) -> None:
        if self._due and self._thread is None and not self._pausing:
            thread = threading.Thread(target=self._work, name="locus-mysql reaper", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is about to end, and its connections with it
                self._due.clear()
            else:
                self._thread = thread

    def _work(self) -> None:
        try:
            while (pool := self._next()) is not None:
                run_blocking(pool.reap())
                del pool  # not kept while waiting
        except BaseException:
            with self._changed:  # an external driver failed to close a connection; the others must still be closed
                self._thread = None
                self._start()
            raise

    def _next(self) -> Reaped | None:
        """Wait for and return the next pool that is due; None when the thread must end."""
        with self._changed:
            while self._due and not self._pausing:
                when, _, reference = self._due[0]
                pool = reference()
                left = when - monotonic()
                if pool is not None and left > 0:
                    del pool
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                    continue
                heapq.heappop(self._due)
                if pool is not None:
                    return pool
            self._thread = None
            return None


#: The reaper of this process.
REAPER = Reaper()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=REAPER.pause, after_in_parent=REAPER.resume, after_in_child=REAPER.reset_in_child)
