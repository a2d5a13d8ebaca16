"""The differences between pools for threads and for tasks of an event loop: `BlockingSide` and `AwaitedSide`.

What a pool does later, such as closing idle connections, is done for tasks by timers of their event loop, and for
threads by one thread of the process, the `Scheduler`. It sleeps until the next work is due, and ends when there is none
left. It keeps neither a pool nor the interpreter alive. It also ends before a fork, because the child would inherit its
lock, but not the thread that holds it; the parent starts it again.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from time import monotonic
from typing import Any, Protocol, TypeAlias
from weakref import WeakMethod

from ..config import ConnectionOptions
from ..drivers.interface import WATCH
from .commands import CommandGenerator
from .connection_slots import AwaitedSlots, BlockingSlots, Slots
from .loops import run_awaited, run_blocking
from .pool import ServerConnection, abort_all

#: Maximum time that a fork waits for the thread, in seconds: it may be closing a connection.
_PATIENCE_S = 5.0

#: A method without arguments that returns steps.
Work: TypeAlias = Callable[[], CommandGenerator[None]]


class Side(Protocol):
    """One way of waiting, for one pool."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """Return the slots of the pool."""

    def start(self, work: Work) -> None:
        """Run steps that open connections, beside the users of the pool. Never waits."""

    def stop(self) -> None:
        """End such steps, if that needs no waiting."""

    def call_later(self, work: Work, wait_s: float) -> None:
        """Run the steps of a method once, after a wait, if its object still exists then: it is not kept."""

    def end_call(self, connection: Any) -> None:
        """End a call that another user of the pool is making; it then raises `ConnectionLost`. Never waits."""

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """Drop the connections of a pool that is being freed, in any thread and at any point of the code."""


class BlockingSide:
    """Users are threads."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """Return slots for threads."""
        return BlockingSlots(config, lock, idle)

    def start(self, work: Work) -> None:
        """Run steps in a thread of their own; in this one if no more threads can be started."""

        def run() -> None:
            run_blocking(work())

        # A function that returns the password may read the caller's context. The caller's watch is not for this thread,
        # which may go on after the call has ended.
        context = copy_context()
        context.run(WATCH.set, None)
        try:
            threading.Thread(target=context.run, args=(run,), name="locus-mysql opening", daemon=True).start()
        except RuntimeError:
            run()

    def stop(self) -> None:
        """Do nothing: a thread cannot be ended."""

    def call_later(self, work: Work, wait_s: float) -> None:
        """Let the thread of the process do it."""
        SCHEDULER.call(work, wait_s)

    def end_call(self, connection: Any) -> None:
        """Wake the thread that makes the call, which closes the socket."""
        connection.interrupt()

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """Drop the connections here: sockets may be closed by any thread."""
        abort_all(connections)


class AwaitedSide:
    """Users are tasks of one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Tasks that open connections, or close them; an event loop itself does not keep its tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """Return slots for tasks."""
        return AwaitedSlots(config, idle)

    def start(self, work: Work) -> None:
        """Run steps in a task of their own."""
        task = asyncio.get_running_loop().create_task(run_awaited(work()))
        task._log_destroy_pending = False  # type: ignore[attr-defined] # a loop may end without it
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Cancel the tasks."""
        for task in list(self._tasks):
            with suppress(RuntimeError):  # the event loop is closed
                task.cancel()

    def call_later(self, work: Work, wait_s: float) -> None:
        """Set a timer. It is not a sleeping task, because an event loop that is closed warns about pending tasks."""
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(wait_s, self._call, WeakMethod(work))

    def end_call(self, connection: Any) -> None:
        """Drop the connection: its task is of this event loop."""
        connection.abort()

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """Let a running event loop drop the connections, as transports are not safe to use in any thread."""
        if self._loop is not None and self._loop.is_running():
            with suppress(RuntimeError):  # it was closed meanwhile
                self._loop.call_soon_threadsafe(abort_all, connections)
                return
        abort_all(connections)

    def _call(self, reference: WeakMethod[Work]) -> None:
        work = reference()
        if work is not None:
            self.start(work)


class Scheduler:
    """Runs work at the times that were requested, in one thread."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._due: list[tuple[float, int, WeakMethod[Work]]] = []
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        self._pausing = False
        self._numbers = count()  # so that two entries are never compared by their methods

    def call(self, work: Work, wait_s: float) -> None:
        """Run the steps of a method once, if its object still exists then.

        Args:
            work: A method; its object is kept by a weak reference.
            wait_s: The seconds until then.
        """
        with self._changed:
            heapq.heappush(self._due, (monotonic() + wait_s, next(self._numbers), WeakMethod(work)))
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
        """Start the thread again if any work is due."""
        with self._changed:
            self._pausing = False
            self._start()

    def reset_in_child(self) -> None:
        """Forget all work: it is the parent's."""
        self._reset()

    def _start(self) -> None:
        if self._due and self._thread is None and not self._pausing:
            thread = threading.Thread(target=self._run, name="locus-mysql scheduler", daemon=True)
            with suppress(RuntimeError):  # no more threads can be started; the next call tries again
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                run_blocking(work())
                del work  # its object is not kept while waiting
        except BaseException:
            with self._changed:  # an external driver failed to close a connection; the others must still be closed
                self._thread = None
                self._start()
            raise

    def _next(self) -> Work | None:
        """Wait for and return the next work that is due; None when the thread must end."""
        with self._changed:
            while self._due and not self._pausing:
                when, _, reference = self._due[0]
                work = reference()
                left = when - monotonic()
                if work is not None and left > 0:
                    del work
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                    continue
                heapq.heappop(self._due)
                if work is not None:
                    return work
            self._thread = None
            return None


#: The scheduler of this process.
SCHEDULER = Scheduler()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=SCHEDULER.pause, after_in_parent=SCHEDULER.resume, after_in_child=SCHEDULER.reset_in_child
    )
