"""Running operations in tasks: `AsyncEngine`."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ..config import ConnectionOptions, Endpoint
from ..dialect import Schema, Statement
from ..dialect.servers import CARRIED_OUT
from ..drivers.interface import AsyncConnection, DriverError, Result, ServerError
from ..drivers.registry import find_driver
from .at_fork import tell_at_fork
from .bootstrap import DDLMode, ensure_schema
from .counters import Counters, PoolState
from .gtid_tracker import GtidTracker
from .kills import Kills
from .operation import Batch, Operation, Results, Undone
from .pool import AsyncPool
from .primary import PRIMARY
from .reading import READ_LIMIT, ReadLimit
from .retry import Retry, unexpected
from .secondaries import Question, Secondaries
from .secondary import SECONDARY
from .topology import Topology
from .transaction import ROLLBACK, is_transaction, to_return, to_send

T = TypeVar("T")


class _Pools(NamedTuple):
    """Those of one event loop."""

    primary: AsyncPool
    secondary: AsyncPool


class AsyncEngine:
    """Runs operations, in any number of tasks, threads and event loops, also after a fork. Each loop has its own pools.

    Args:
        config: The options.
        counters: Where it is counted what happens, if others count there too.
    """

    def __init__(self, config: ConnectionOptions, counters: Counters | None = None) -> None:
        self._config = config
        self._counters = counters or Counters()
        self._driver = find_driver(config.driver)
        self._topology = Topology(config.endpoints)
        self._kills = Kills(config, self._driver)
        self._secondaries = Secondaries(config)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pools] = WeakKeyDictionary()
        self._abandoned: list[object] = []
        self._lock = (
            threading.Lock()
        )  # guards _pools: the event loops of other threads open pools of their own at the same time
        self._ready: set[tuple[Schema, DDLMode]] = set()
        # The one asked for last, told by identity: to look a schema up is to hash all of it.
        self._last: tuple[Schema | None, DDLMode] = (None, "create")
        self._reached = False
        tell_at_fork(self)

    async def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Carry out an operation.

        Args:
            operation: What to do.
            schema: The tables it needs. They are made or checked before the first operation that needs them.
            ddl_mode: Whether they may be made; see `ensure_schema`.

        Raises:
            LocusMySQLError: Its message says what to do.
        """
        last_schema, last_mode = self._last
        if schema is not None and (schema is not last_schema or ddl_mode != last_mode):
            if (schema, ddl_mode) not in self._ready:
                await self._drive(ensure_schema(self._config, schema, ddl_mode))
                self._ready.add((schema, ddl_mode))
            self._last = schema, ddl_mode
        return await self._drive(operation)

    @property
    def server(self) -> Endpoint:
        """The server that calls go to, as far as that is known."""
        return self._topology.order()[0]

    def pools(self) -> tuple[PoolState, ...]:
        """The state of each event loop's pool, and of that to secondaries, as one."""
        with self._lock:
            pools = list(self._pools.values())
        return tuple(primary.state() + secondary.state() for primary, secondary in pools)

    async def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        here = asyncio.get_running_loop()
        with self._lock:
            pools = [(loop, pool) for loop, both in self._pools.items() for pool in both]
        for loop, pool in pools:
            if loop is here:
                await pool.close()
            elif loop.is_closed():
                pool.abort()
            else:
                loop.call_soon_threadsafe(pool.abort)
        await self._kills.finish_async()

    def begin_in_child(self) -> None:
        """After a fork: leave the parent's pools alone, and the lock, which a thread of the parent may hold for ever.

        The pools are not freed, because a library might send something on their connections when these are freed.
        """
        self._abandoned.append(self._pools)
        self._pools = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def _drive(self, operation: Operation[T]) -> T:
        retry = Retry(self._config, reached_before=self._reached)
        step = operation.send
        value: Results | None = None
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
        except Undone as undone:
            raise unexpected(undone, self._config) from undone.__cause__
        finally:
            operation.close()

    async def _execute(self, batch: Batch, retry: Retry) -> Results:
        seen, limit = None, READ_LIMIT.get()
        if self._secondaries.matter:
            self._secondaries.check(batch)
            question = self._secondaries.question(batch)
            if question is not None:
                answer = await self._ask_a_secondary(question, batch, limit)
                if answer is not None:
                    return answer
            seen = self._secondaries.seen
        retry.begin_batch()
        tested = False
        while True:
            pool = self._pool().primary
            if limit is not None:
                await limit.enter()
            try:
                async with pool.connection(tested=tested) as connection:
                    self._reached = True
                    if limit is not None:
                        limit.set_at(connection, batch)
                    if retry.fate_unknown:
                        retry.check_deadline()
                        if batch.landed is not None:
                            (found,) = await _execute(connection, (batch.landed,), seen)
                            if found.rows:
                                return Results((), {}, landed=found.rows[0])
                    results = await _carry_out(connection, batch, retry, seen)
                    if limit is not None:
                        limit.count(connection)
                    return results
            except DriverError as error:
                wait_s = retry.wait_after(error)
                self._counters.retry()
            finally:
                if limit is not None:
                    limit.leave()
            tested = True
            await asyncio.sleep(wait_s)

    async def _ask_a_secondary(self, question: Question, batch: Batch, limit: ReadLimit | None) -> Results | None:
        """What a secondary answers; None if it cannot, so that the primary is to."""
        if limit is not None:
            await limit.enter()
        try:
            async with self._pool().secondary.connection() as connection:
                if limit is not None:
                    limit.set_at(connection, batch)
                results = await question.ask_async(connection)
                if limit is not None:
                    limit.count(connection)
        except DriverError as error:
            self._secondaries.rest(error)
            return None
        finally:
            if limit is not None:
                limit.leave()
        self._secondaries.answered()
        return results

    def _pool(self) -> _Pools:
        """The running loop's pools. Pools of closed loops are dropped."""
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            with self._lock:
                for other, stale in list(self._pools.items()):
                    if other.is_closed():
                        for pool in stale:
                            pool.abort()
                        del self._pools[other]
                pools = self._pools[loop] = _Pools(
                    *(
                        AsyncPool(self._config, self._driver, self._topology, self._counters, role, self._kills)
                        for role in (PRIMARY, SECONDARY)
                    )
                )
        return pools


async def _carry_out(connection: AsyncConnection, batch: Batch, retry: Retry, seen: GtidTracker | None) -> Results:
    try:
        return to_return(batch, await _execute(connection, to_send(batch), seen), fate_unknown=retry.fate_unknown)
    except ServerError:
        if is_transaction(batch) and not connection.closed:
            try:
                await connection.execute((ROLLBACK,))
            except DriverError:  # the transaction may still be open, and nobody else may go on in it
                connection.abort()
        raise


async def _execute(
    connection: AsyncConnection, statements: tuple[Statement, ...], seen: GtidTracker | None
) -> list[Result]:
    """Send statements to the primary, and take note of what the answer shows if anybody wants to know."""
    if seen is None:
        return await connection.execute(statements)
    begun = seen.begin()
    try:
        results = await connection.execute((*statements, CARRIED_OUT))
    except BaseException:
        seen.doubt()
        raise
    seen.learn(results.pop(), begun, primary=True)
    return results
