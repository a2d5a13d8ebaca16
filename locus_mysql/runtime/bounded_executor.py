"""Work that takes long, done in few threads of its own: `BoundedExecutor`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class BoundedExecutor:
    """Threads that keep long work off the event loop, and off the threads that others use.

    Args:
        name: What they are called.
        threads: How many there are, for each event loop; what is more waits.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        #: By event loop, as a forked child has other loops, and none of its parent's threads.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function with these arguments. Who is cancelled before it began has it left undone."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = ThreadPoolExecutor(self.threads, self.name)
        return await loop.run_in_executor(pool, work, *arguments)
