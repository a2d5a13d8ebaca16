"""Running operations in tasks: `AsyncEngine`."""

from __future__ import annotations

import asyncio
import threading
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakSet

from ..config import ConnectionOptions, Endpoint
from ..dialect import Schema
from .at_fork import reset_at_fork
from .bootstrap import DDLMode
from .counters import Counters, PoolState
from .execution import Execution
from .loops import run_awaited
from .operation import Operation
from .pool import Pool
from .sides import AwaitedSide

T = TypeVar("T")

#: The attribute of an event loop that has its pools.
_ATTRIBUTE = "_locus_mysql_pools"


class AsyncEngine:
    """Runs operations, in any number of tasks, threads and event loops, also after a fork. Each loop has its own pool.

    Args:
        config: The options.
        counters: The counters, if they are shared.
    """

    def __init__(self, config: ConnectionOptions, counters: Counters | None = None) -> None:
        self._execution = Execution(config, counters or Counters())
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._abandoned: list[object] = []
        # Guards _loops: the event loops of other threads open pools of their own at the same time.
        self._lock = threading.Lock()
        reset_at_fork(self)

    async def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Like `SyncEngine.run`."""
        return await run_awaited(self._execution.run(self._pool_here(), operation, schema, ddl_mode))

    @property
    def server(self) -> Endpoint:
        """The server that calls are sent to, if known."""
        return self._execution.topology.order()[0]

    def pools(self) -> tuple[PoolState, ...]:
        """The state of each event loop's pool."""
        return tuple(pool.state() for _, pool in self._all_pools())

    async def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        here = asyncio.get_running_loop()
        for loop, pool in self._all_pools():
            if loop is here:
                await run_awaited(pool.close())
            elif loop.is_closed():
                pool.abort()
            else:
                loop.call_soon_threadsafe(pool.abort)

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's pools alone, and the lock, which a thread of the parent may hold for ever.

        The pools are not freed, because freeing them might make a library send something on their connections.
        """
        loops, self._loops = list(self._loops), WeakSet()
        self._abandoned += [_pools_by_engine(loop).pop(self, None) for loop in loops]
        self._lock = threading.Lock()

    def _pool_here(self) -> Pool:
        """Return the running loop's pool. Pools of closed loops are dropped."""
        loop = asyncio.get_running_loop()
        by_engine = _pools_by_engine(loop)
        pool = by_engine.get(self)
        if pool is None:
            for other, stale in self._all_pools():
                if other.is_closed():
                    stale.abort()
                    _pools_by_engine(other).pop(self, None)
            pool = by_engine[self] = self._execution.open_pool(AwaitedSide)
            with self._lock:
                self._loops.add(loop)
        return pool

    def _all_pools(self) -> list[tuple[asyncio.AbstractEventLoop, Pool]]:
        """Return all event loops with a pool of this engine, and the pools."""
        with self._lock:
            loops = list(self._loops)
        found = [(loop, _pools_by_engine(loop).get(self)) for loop in loops]
        return [(loop, pool) for loop, pool in found if pool is not None]


def _pools_by_engine(loop: asyncio.AbstractEventLoop) -> WeakKeyDictionary[AsyncEngine, Pool]:
    """Return the pools of an event loop.

    They are an attribute of the loop, because their connections refer to it: in a dictionary of the engine, they would
    keep a loop that was dropped without being closed, and its sockets, for as long as the engine exists.
    """
    try:
        pools: WeakKeyDictionary[AsyncEngine, Pool] = vars(loop)[_ATTRIBUTE]
    except KeyError:
        pools = vars(loop).setdefault(_ATTRIBUTE, WeakKeyDictionary())
    return pools
