"""Housekeeping that no call waits for: `AwaitedBackground` and `BlockingBackground`, one for each pool.

It is done one piece at a time, in a task of the event loop, or in a thread that exists only while there is work. What
is not done, because the process or its event loop ends, or because too much waits, is repeated by a later call: that it
is needed is stored in the tables.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable
from contextvars import Context
from typing import Protocol

from .commands import CommandGenerator
from .logs import HOUSEKEEPING
from .loops import run_awaited, run_blocking

#: A pool that has sent fewer writes may belong to a process or an event loop that ends soon, perhaps without closing
#: it. Its calls do their housekeeping themselves: else none of many short-lived processes might ever do any.
WRITES_BEFORE = 32

#: The maximum number of pieces of work that wait.
MAX_WAITING = 4

#: Maximum time that closing a pool waits for the piece of work in progress, in seconds.
FINISH_S = 3.0


class Background(Protocol):
    """Does the housekeeping of one pool."""

    #: The number of writes that the pool has sent.
    writes: int

    @property
    def ready(self) -> bool:
        """Whether calls leave housekeeping to this."""

    def start(self, work: CommandGenerator[None]) -> None:
        """Run steps soon. Never waits."""

    def finish(self) -> Awaitable[None] | None:
        """Forget the work that waits, and wait up to `FINISH_S` for the work in progress: blocks, or is awaited."""

    def cancel(self) -> None:
        """Forget the work that waits, and end the work in progress if that needs no waiting."""


class _Queue:
    """The work that waits, and the number of writes so far."""

    def __init__(self) -> None:
        self.writes = 0
        self._waiting: deque[CommandGenerator[None]] = deque()

    @property
    def ready(self) -> bool:
        """See `Background.ready`."""
        return self.writes >= WRITES_BEFORE

    def _add(self, work: CommandGenerator[None]) -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(work)


class AwaitedBackground(_Queue):
    """A task of one event loop."""

    _task: asyncio.Task[None] | None = None

    def start(self, work: CommandGenerator[None]) -> None:
        """See `Background.start`."""
        self._add(work)
        if self._task is None or self._task.done():
            # The work belongs to no call: neither to its trace, nor to its limits.
            self._task = Context().run(asyncio.create_task, self._work())
            self._task._log_destroy_pending = False  # type: ignore[attr-defined] # a loop may end without it

    def cancel(self) -> None:
        """See `Background.cancel`."""
        self._waiting.clear()
        if self._task is not None and not self._task.get_loop().is_closed():
            self._task.cancel()

    async def finish(self) -> None:
        """See `Background.finish`. Cancels the work in progress after that time."""
        self._waiting.clear()
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=FINISH_S)
            self._task.cancel()

    async def _work(self) -> None:
        while self._waiting:
            try:
                await run_awaited(self._waiting.popleft())
            except Exception:
                HOUSEKEEPING.exception("Housekeeping in the background failed.")


class BlockingBackground(_Queue):
    """A thread. It does not keep the interpreter alive."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: CommandGenerator[None]) -> None:
        """See `Background.start`."""
        with self._lock:
            self._add(work)
            if self._thread is not None:
                return
            # It waits for the lock, which is held until `_thread` is set.
            thread = threading.Thread(target=self._work, name="locus-mysql housekeeping", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is about to end
                self._waiting.clear()
            else:
                self._thread = thread

    def cancel(self) -> None:
        """See `Background.cancel`. A thread cannot be ended."""
        with self._lock:
            self._waiting.clear()

    def finish(self) -> None:
        """See `Background.finish`."""
        self.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(FINISH_S)

    def _work(self) -> None:
        while (work := self._next()) is not None:
            try:
                run_blocking(work)
            except Exception:
                HOUSEKEEPING.exception("Housekeeping in the background failed.")

    def _next(self) -> CommandGenerator[None] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            return None
