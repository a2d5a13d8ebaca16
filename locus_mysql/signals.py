"""Stopping a process in order, at Ctrl-C or a signal. Uses only the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any


class StopRequested(KeyboardInterrupt):
    """A signal asks the process to stop.

    A ``KeyboardInterrupt``, because asyncio logs all other exceptions of callbacks, except ``SystemExit``.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


@contextlib.contextmanager
def stop_signals_raise() -> Iterator[None]:
    """Make SIGINT, SIGTERM or SIGHUP raise :class:`StopRequested`, once: later signals are ignored."""
    # Ignored signals stay ignored: nohup ignores SIGHUP, and a shell ignores SIGINT for its background jobs.
    candidates = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signals = [one for one in candidates if signal.getsignal(one) is not signal.SIG_IGN]

    def request_stop(signum: int, _frame: FrameType | None) -> None:
        for one in signals:
            signal.signal(one, signal.SIG_IGN)
        raise StopRequested(signum)

    before = {one: signal.signal(one, request_stop) for one in signals}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


async def until_stopped(work: Coroutine[Any, Any, object]) -> int | None:
    """Run a coroutine; cancel it in order when a signal asks the process to stop.

    An exception raised by a signal handler would be raised in whatever task runs at that moment, and logged by others.

    Returns:
        The number of the signal; None if the coroutine ended by itself.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    stopped: list[int] = []

    def stop(signum: int) -> None:
        if not stopped:
            stopped.append(signum)
            task.cancel()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is not signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
                loop.add_signal_handler(one, stop, one)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
    return stopped[0] if stopped else None
