"""Work beside the caller: `result_of` awaits async functions, `in_thread` makes calls that may hang.

There is one event loop in each process, as a client that an application's async functions share belongs to the loop of
its first call. It runs in a daemon thread from the first use until the interpreter exits. Uses only the standard
library.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

#: How long the exit of the interpreter waits for the loop to end its tasks, in seconds.
CLOSE_S = 2.0


class _BackgroundLoop:
    def __init__(self) -> None:
        self.reset_in_child()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reset_in_child)

    def reset_in_child(self) -> None:
        """Forget the loop: a forked child has none of its parent's threads."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    def result_of(self, awaitable: Awaitable[T]) -> T:
        """See `result_of`."""
        if threading.current_thread() is self._thread:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise RuntimeError(
                "A blocking store was called by an async function that another blocking store awaits: each would wait "
                "for the other. Use an asynchronous store in that function, or a blocking function."
            )
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=asyncio.run, args=(self._serve(),), name="locus-mysql background loop", daemon=True
                )
                self._thread.start()
        loop, _ = self._running.result()
        answer = asyncio.run_coroutine_threadsafe(_awaited(awaitable), loop)
        try:
            return answer.result()
        except BaseException:
            answer.cancel()  # the caller was interrupted, as by Ctrl-C
            raise

    def close(self) -> None:
        """Stop the loop, which cancels its tasks."""
        thread = self._thread
        if thread is not None and self._running.done():
            loop, stopped = self._running.result()
            loop.call_soon_threadsafe(stopped.set)
            thread.join(CLOSE_S)

    async def _serve(self) -> None:
        stopped = asyncio.Event()
        self._running.set_result((asyncio.get_running_loop(), stopped))
        await stopped.wait()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


_LOOP = _BackgroundLoop()


def result_of(awaitable: Awaitable[T]) -> T:
    """Await in this process's background loop, and block until the result is there. Safe in a running event loop.

    Raises:
        RuntimeError: The caller runs in that loop itself.
    """
    return _LOOP.result_of(awaitable)


def in_thread(call: Callable[[], T], name: str) -> Future[T]:
    """Call a function in a daemon thread, which keeps neither the caller nor the interpreter waiting if it hangs.

    Args:
        call: The function. It runs in a copy of the caller's context.
        name: The thread's name.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # the caller handles any exception
            answer.set_exception(error)

    threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
    return answer
