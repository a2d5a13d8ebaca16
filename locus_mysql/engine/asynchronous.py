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
from .execution import Execution, Pools
from .loops import run_awaited
from .operation import Operation
from .sides import AwaitedSide

T = TypeVar("T")

#: The attribute of an event loop that has its pools.
_ATTRIBUTE = "_locus_mysql_pools"


class AsyncEngine:
    """Runs operations, in any number of tasks, threads and event loops, also after a fork. Each loop has its own pools.

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
        return await run_awaited(self._execution.run(self._pools_here(), operation, schema, ddl_mode))

    @property
    def server(self) -> Endpoint:
        """The server that calls are sent to, if known."""
        return self._execution.topology.order()[0]

    def pools(self) -> tuple[PoolState, ...]:
        """The combined state of all event loops' pools, those to secondaries included."""
        return tuple(primary.state() + secondary.state() for _, (primary, secondary) in self._all_pools())

    async def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        here = asyncio.get_running_loop()
        for loop, pool in [(loop, pool) for loop, both in self._all_pools() for pool in both]:
            if loop is here:
                await run_awaited(pool.close())
            elif loop.is_closed():
                pool.abort()
            else:
                loop.call_soon_threadsafe(pool.abort)
        await self._execution.session_killer.finish_async()

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's pools alone, and the lock, which a thread of the parent may hold for ever.

        The pools are not freed, because freeing them might make a library send something on their connections.
        """
        loops, self._loops = list(self._loops), WeakSet()
        self._abandoned += [_pools_by_engine(loop).pop(self, None) for loop in loops]
        self._lock = threading.Lock()

    def _pools_here(self) -> Pools:
        """Return the running loop's pools. Pools of closed loops are dropped."""
        loop = asyncio.get_running_loop()
        by_engine = _pools_by_engine(loop)
        pools = by_engine.get(self)
        if pools is None:
            for other, stale in self._all_pools():
                if other.is_closed():
                    for pool in stale:
                        pool.abort()
                    _pools_by_engine(other).pop(self, None)
            pools = by_engine[self] = self._execution.open_pools(AwaitedSide)
            with self._lock:
                self._loops.add(loop)
        return pools

    def _all_pools(self) -> list[tuple[asyncio.AbstractEventLoop, Pools]]:
        """Return all event loops with pools of this engine, and the pools."""
        with self._lock:
            loops = list(self._loops)
        found = [(loop, _pools_by_engine(loop).get(self)) for loop in loops]
        return [(loop, pools) for loop, pools in found if pools is not None]


def _pools_by_engine(loop: asyncio.AbstractEventLoop) -> WeakKeyDictionary[AsyncEngine, Pools]:
    """Return the pools of an event loop.

    They are an attribute of the loop, because their connections refer to it: in a dictionary of the engine, they would
    keep a loop that was dropped without being closed, and its sockets, for as long as the engine exists.
    """
    try:
        pools: WeakKeyDictionary[AsyncEngine, Pools] = vars(loop)[_ATTRIBUTE]
    except KeyError:
        pools = vars(loop).setdefault(_ATTRIBUTE, WeakKeyDictionary())
    return pools
