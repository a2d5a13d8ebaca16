"""The differences between pools for threads and for tasks of an event loop: `BlockingSide` and `AwaitedSide`."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ..config import ConnectionOptions
from .background import AwaitedBackground, Background, BlockingBackground
from .connection_slots import AwaitedSlots, BlockingSlots, Slots
from .loops import run_awaited
from .reaper import REAPER
from .servers import ServerConnection
from .watch import OnSuspect, ThreadWatch, TimerWatch, Watch

if TYPE_CHECKING:
    from .pool import Pool


class Side(Protocol):
    """One way of waiting, for one pool."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock) -> Slots:
        """The slots of the pool."""

    def background(self) -> Background:
        """What does the pool's housekeeping."""

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """A watch over the pool's calls."""

    def reap_in(self, pool: Pool, wait_s: float) -> None:
        """Let the pool close connections that are idle for too long, if it still exists after this wait."""

    def end_call(self, connection: Any) -> None:
        """End a call that another user of the pool is making; it then raises `ConnectionLost`. Never waits."""

    def abort_orphans(self, connections: Sequence[ServerConnection]) -> None:
        """Drop the connections of a pool that is being freed, in any thread and at any point of the code."""


class BlockingSide:
    """Users are threads. One thread of the process closes idle connections, see `reaper`."""

    def slots(self, config: ConnectionOptions, lock: threading.RLock) -> Slots:
        """See `Side.slots`."""
        return BlockingSlots(config, lock)

    def background(self) -> BlockingBackground:
        """See `Side.background`."""
        return BlockingBackground()

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """See `Side.watch`."""
        return ThreadWatch(on_suspect)

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
        self._closing: asyncio.Task[None] | None = None

    def slots(self, config: ConnectionOptions, lock: threading.RLock) -> Slots:
        """See `Side.slots`."""
        return AwaitedSlots(config)

    def background(self) -> AwaitedBackground:
        """See `Side.background`."""
        return AwaitedBackground()

    def watch(self, on_suspect: OnSuspect) -> Watch:
        """See `Side.watch`."""
        return TimerWatch(on_suspect)

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
            self._closing = asyncio.ensure_future(run_awaited(pool.reap()))


def abort_all(connections: Sequence[ServerConnection]) -> None:
    """Drop connections at once."""
    for one in connections:
        one.connection.abort()
