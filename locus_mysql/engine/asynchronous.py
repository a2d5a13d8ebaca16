"""Running operations in tasks: `AsyncEngine`."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TypeVar
from weakref import WeakKeyDictionary

from ..config import MySQLConfig
from ..drivers.base import AsyncConnection, DriverError, Result, ServerError
from ..drivers.registry import find_driver
from .bootstrap import HasTables, ensure_schema
from .operation import Batch, Operation
from .pool import AsyncPool
from .retry import Retry
from .transaction import ROLLBACK, is_transaction, to_return, to_send

T = TypeVar("T")


class AsyncEngine:
    """Runs operations, in any number of tasks, threads and event loops, also after a fork. Each loop has its own pool.

    Args:
        config: The options.
        dialect: The statements that make and check the tables.
    """

    def __init__(self, config: MySQLConfig, dialect: HasTables) -> None:
        self._config = config
        self._dialect = dialect
        self._driver = find_driver(config.driver)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool] = WeakKeyDictionary()
        self._abandoned: list[object] = []
        self._lock = threading.Lock()  # of _pools: loops of other threads open theirs meanwhile
        self._process = os.getpid()
        self._ready = False
        self._reached = False

    async def run(self, operation: Operation[T]) -> T:
        """Carry out an operation; the first one makes sure of the tables.

        Raises:
            LocusMySQLError: What to do is in the message.
        """
        if not self._ready:
            await self._drive(ensure_schema(self._config, self._dialect))
            self._ready = True
        return await self._drive(operation)

    async def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        here = asyncio.get_running_loop()
        with self._lock:
            pools = list(self._pools.items())
        for loop, pool in pools:
            if loop is here:
                await pool.close()
            elif loop.is_closed():
                pool.abort()
            else:
                loop.call_soon_threadsafe(pool.abort)

    async def _drive(self, operation: Operation[T]) -> T:
        retry = Retry(self._config, reached_before=self._reached)
        step = operation.send
        value: list[Result] | None = None
        try:
            batch = next(operation)
            while True:
                try:
                    value = await self._execute(batch, retry)
                except Exception as error:
                    batch = operation.throw(error)
                else:
                    batch = step(value)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()

    async def _execute(self, batch: Batch, retry: Retry) -> list[Result]:
        retry.begin_batch()
        tested = False
        while True:
            pool = self._pool()
            try:
                async with pool.connection(tested=tested) as connection:
                    self._reached = True
                    if retry.fate_unknown and batch.landed is not None:
                        found = await connection.execute((batch.landed,))
                        if found[0].rows:
                            return found
                    return await _carry_out(connection, batch)
            except DriverError as error:
                wait_s = retry.wait_after(error)
            tested = True
            await asyncio.sleep(wait_s)

    def _pool(self) -> AsyncPool:
        """The running loop's pool. Pools of closed loops are dropped; those of a parent process are left alone."""
        if self._process != os.getpid():
            self._abandoned.append(self._pools)  # not freed: freeing might speak on the parent's connections
            self._pools = WeakKeyDictionary()
            self._process = os.getpid()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            with self._lock:
                for other, stale in list(self._pools.items()):
                    if other.is_closed():
                        stale.abort()
                        del self._pools[other]
                pool = self._pools[loop] = AsyncPool(self._config, self._driver)
        return pool


async def _carry_out(connection: AsyncConnection, batch: Batch) -> list[Result]:
    try:
        return to_return(batch, await connection.execute(to_send(batch)))
    except ServerError:
        if is_transaction(batch):
            await connection.execute((ROLLBACK,))
        raise
