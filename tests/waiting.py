"""`until`: polls a condition that nothing signals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

DEADLINE_S = 180.0


async def until(condition: Callable[[], object | Awaitable[object]], what: str) -> None:
    """Return as soon as the condition, which may be awaited, holds; fail at the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not (await holds if isawaitable(holds := condition()) else holds):
        assert time.monotonic() < end, f"{what}: not within {DEADLINE_S:g} s"
        await asyncio.sleep(0.01)
