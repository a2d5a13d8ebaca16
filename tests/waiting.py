"""`until`: polls a condition that nothing signals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

DEADLINE_S = 180.0


async def until(condition: Callable[[], object], what: str) -> None:
    """Return as soon as the condition holds; fail at the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {DEADLINE_S:g} s"
        await asyncio.sleep(0.01)
