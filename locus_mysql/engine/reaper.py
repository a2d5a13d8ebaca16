"""Closing idle connections of blocking pools: one thread for all pools of a process.

The thread sleeps until the next connection is due, and ends when there is none left. It keeps neither a pool nor
the interpreter alive. It also ends before a fork, because the child would inherit its lock, but not the thread that
holds it; the parent starts it again.
"""

from __future__ import annotations

import heapq
import os
import threading
import weakref
from itertools import count
from time import monotonic
from typing import Protocol, TypeAlias

from .commands import CommandGenerator
from .loops import run_blocking

#: Maximum time that a fork waits for the thread, in seconds: it may be closing a connection.
_PATIENCE_S = 5.0


class Reaped(Protocol):
    """A pool whose idle connections are closed here."""

    def reap(self) -> CommandGenerator[None]:
        """Close connections that were idle for too long, and call `Reaper.call` if others are still idle."""


_Due: TypeAlias = "tuple[float, int, weakref.ref[Reaped]]"


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
