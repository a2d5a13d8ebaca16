"""Being asked to stop, by Ctrl-C or a signal. Needs nothing but the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any


class StopRequested(KeyboardInterrupt):
    """A signal asks the process to stop.

    A ``KeyboardInterrupt``, as asyncio lets only that and ``SystemExit`` out of a callback; others it logs and goes on.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


@contextlib.contextmanager
def stop_signals_raise() -> Iterator[None]:
    """Make SIGINT, SIGTERM or SIGHUP raise :class:`StopRequested`, once: nothing disturbs the stop."""
    # One that is ignored stays so: nohup ignores SIGHUP, and a shell ignores SIGINT for its background jobs.
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
    """Do some work of several tasks until a signal asks the process to stop: it is cancelled then, in order.

    An exception raised by a handler would come up in whatever task runs just then, and be logged by the others.

    Returns:
        The signal that asked; None if the work was done before.
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
