"""The differences between pools for threads and for tasks of an event loop: `BlockingSide` and `AwaitedSide`."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Protocol

from ..config import ConnectionOptions
from .cluster.watch import OnSuspect, ThreadWatch, TimerWatch, Watch
from .commands import CommandGenerator
from .connection_slots import AwaitedSlots, BlockingSlots, Slots
from .loops import run_awaited, run_blocking
from .pool import Pool, ServerConnection, abort_all
from .reaper import REAPER


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
    """Users are threads. One thread of the process closes idle connections, see `reaper`."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock, idle: list[ServerConnection]) -> Slots:
        """See `Side.slots`."""
        return BlockingSlots(config, lock, idle)

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """See `Side.watch`."""
        return ThreadWatch(on_suspect)

    def start(self, steps: Callable[[], CommandGenerator[None]]) -> None:
        """See `Side.start`."""

        def run() -> None:
            run_blocking(steps())

        try:
            threading.Thread(target=copy_context().run, args=(run,), name="locus-mysql opening", daemon=True).start()
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
