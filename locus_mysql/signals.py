"""Being asked to stop, by Ctrl-C or a signal. Needs nothing but the standard library."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


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
