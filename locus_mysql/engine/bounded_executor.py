"""Runs long work in a few dedicated threads: `BoundedExecutor`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class BoundedExecutor:
    """Dedicated threads for long work, so that it blocks neither the event loop nor other users' threads.

    Args:
        name: The prefix of the threads' names.
        threads: The number of threads per event loop; further work waits.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        #: By event loop. A forked child has other loops, so it does not use its parent's threads.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function with these arguments in a thread, unless the caller is cancelled before it begins."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = ThreadPoolExecutor(self.threads, self.name)
        return await loop.run_in_executor(pool, work, *arguments)
