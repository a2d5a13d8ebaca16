"""A timeout for waits on an event loop that does not count the time in which other callbacks block the loop.

A loop that starts thousands of tasks, or calls a function that blocks, reads no answer meanwhile. An ordinary timeout
then ends a wait whose answer may have arrived long ago, and blames a server that was never slow.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

#: The timeout is counted in this number of ticks.
_TICKS = 100


class ResponsiveTimeout:
    """Ends a block of code with `TimeoutError` after some seconds in which the event loop was responsive.

    The limit is divided into a hundred ticks, and a tick that comes late counts once, however late it is. So an idle
    loop ends the block after exactly the limit; a blocked loop takes a hundred turns, in each of which the block can
    continue.

    Args:
        limit_s: The limit, in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._tick_s = limit_s / _TICKS
        self._ticks_left = _TICKS
        self._timeout = asyncio.timeout(None)
        self._late = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._timeout.__aenter__()
        self._due = self._loop.time() + self._tick_s
        self._timer = self._loop.call_at(self._due, self._tick)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def expired(self) -> bool:
        """Check whether the limit has passed."""
        return self._timeout.expired()

    def was_blocked(self) -> bool:
        """Check whether the loop was blocked for more than a tick since the block began, or since the last call.

        False once the limit has passed.
        """
        if self._ticks_left and self._is_late():
            self._timer.cancel()
            self._tick()
        blocked, self._late = self._late, False
        return blocked and self._ticks_left > 0

    def _tick(self) -> None:
        if self._is_late():
            self._late = True
            self._due = self._loop.time()
        self._ticks_left -= 1
        if self._ticks_left == 0:
            self._timeout.reschedule(self._due)
            return
        self._due += self._tick_s
        self._timer = self._loop.call_at(self._due, self._tick)

    def _is_late(self) -> bool:
        return self._loop.time() > self._due + self._tick_s
