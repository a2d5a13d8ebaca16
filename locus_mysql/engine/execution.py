"""Runs operations: `SyncEngine` in threads, `AsyncEngine` in tasks, and `Execution`, by which both do it.

Who calls whom:

    run                   an operation, on one of the two `loops`
      _drive              its batches, one after another
        _send             a batch, once: the short way, in which each call of another function is an exception
        _repeat           a batch that failed, until it succeeds or cannot succeed
      _ensure_and_drive   creates or checks the tables of the operation before, the first time
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakSet

from ..config import ConnectionOptions, Endpoint
from ..dialect import Schema, Statement
from ..drivers.interface import DriverError, Result, ServerError, find_driver
from ..errors import CorruptCheckpoint, ReadOnlyServer, SchemaMismatch
from .bootstrap import DDLMode, ensure_schema, find_other_layout
from .commands import CommandGenerator, Compute, Execute, Shielded, Sleep
from .connection_slots import Slot
from .group_commit import BEGIN, COMMIT, QueuedWrite, SendAlone, roll_back, send_with_others
from .logs import Counters, PoolState
from .loops import run_awaited, run_blocking
from .operation import Batch, Computation, Operation, Pause, Results, Undone
from .pool import Pool, ServerConnection
from .retry import Retry, unexpected
from .servers import servers_of
from .sides import AwaitedSide, BlockingSide, Side

T = TypeVar("T")

#: The attribute of an event loop that has its pools.
_ATTRIBUTE = "_locus_mysql_pools"


class SyncEngine:
    """Runs operations. It may be used from any number of threads.

    Args:
        config: The options.
        counters: The counters, if they are shared.
        execution: Runs the operations, if not on the server of the options.
    """

    def __init__(
        self, config: ConnectionOptions, counters: Counters | None = None, execution: Execution | None = None
    ) -> None:
        self._execution = execution or Execution(config, counters or Counters())
        self._pool = self._execution.open_pool(BlockingSide())
        self._abandoned: list[object] = []

    def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Carry out an operation.

        Args:
            operation: The operation.
            schema: The tables it needs. They are created or checked before the first operation that needs them.
            ddl_mode: Whether they may be created; see `ensure_schema`.

        Raises:
            LocusMySQLError: The operation failed. The message has the remedy.
        """
        return run_blocking(self._execution.run(self._pool, operation, schema, ddl_mode))

    @property
    def server(self) -> Endpoint:
        """The server that calls are sent to, if known."""
        return self._execution.servers.current

    def pools(self) -> tuple[PoolState]:
        """The state of the pool."""
        return (self._pool.state(),)

    def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        run_blocking(self._pool.close())

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's pool alone. Freeing it might send something on its connections."""
        self._abandoned.append(self._pool)
        self._pool = self._execution.open_pool(BlockingSide())


class AsyncEngine:
    """Runs operations, in any number of tasks, threads and event loops. Each loop has its own pool.

    Args:
        config: The options.
        counters: The counters, if they are shared.
        execution: Runs the operations, if not on the server of the options.
    """

    def __init__(
        self, config: ConnectionOptions, counters: Counters | None = None, execution: Execution | None = None
    ) -> None:
        self._execution = execution or Execution(config, counters or Counters())
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._abandoned: list[object] = []
        # Guards _loops: the event loops of other threads open pools of their own at the same time.
        self._lock = threading.Lock()

    async def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Like `SyncEngine.run`."""
        return await run_awaited(self._execution.run(self._pool_here(), operation, schema, ddl_mode))

    @property
    def server(self) -> Endpoint:
        """The server that calls are sent to, if known."""
        return self._execution.servers.current

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
            pool = by_engine[self] = self._execution.open_pool(AwaitedSide())
            with self._lock:
                self._loops.add(loop)
        return pool

    def _all_pools(self) -> list[tuple[asyncio.AbstractEventLoop, Pool]]:
        """Return all event loops with a pool of this engine, and the pools."""
        with self._lock:
            loops = list(self._loops)
        found = [(loop, _pools_by_engine(loop).get(self)) for loop in loops]
        return [(loop, pool) for loop, pool in found if pool is not None]


class Execution:
    """Runs operations as generators of commands. Threads and event loops may share it.

    Args:
        config: The options.
        counters: The counters.
    """

    def __init__(self, config: ConnectionOptions, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self.servers = servers_of(config, find_driver(config.driver))
        self._read_only = config.read_only
        self._ready: set[tuple[Schema, DDLMode]] = set()
        # The schema of the last operation, compared by identity, because a look-up hashes the whole schema.
        self._last: tuple[Schema | None, DDLMode] = (None, "create")
        self._reached = False

    def open_pool(self, side: Side) -> Pool:
        """Return a new pool without connections."""
        return Pool(self._config, side, self.servers, self._counters)

    def run(self, pool: Pool, operation: Operation[T], schema: Schema | None, ddl_mode: DDLMode) -> CommandGenerator[T]:
        """Carry out an operation. The arguments are those of `SyncEngine.run`."""
        if schema is not None and ddl_mode == "off":
            return self._drive_unchecked(pool, operation, schema)
        last_schema, last_mode = self._last
        if schema is None or (schema is last_schema and ddl_mode == last_mode):
            return self._drive(pool, operation, creates_tables=schema is not None and ddl_mode == "create")
        return self._ensure_and_drive(pool, operation, schema, ddl_mode)

    def _drive(self, pool: Pool, operation: Operation[T], *, creates_tables: bool = False) -> CommandGenerator[T]:
        """Run an operation: execute each batch it yields and send back the results."""
        began, reached = time.monotonic(), self._reached
        retry: Retry | None = None
        try:
            batch = next(operation)
            while True:
                try:
                    if retry is not None:
                        retry.begin_batch()
                    try:
                        if batch.statements:
                            results = yield from self._send(pool, batch, retry)
                        else:
                            results = yield from _without_statements(batch)
                    except DriverError as error:
                        if retry is None:
                            retry = Retry(
                                self._config, reached_before=reached, creates_tables=creates_tables, began=began
                            )
                        results = yield from self._repeat(pool, batch, retry, error)
                except Exception as error:
                    batch = operation.throw(error)
                else:
                    batch = operation.send(results)
        except StopIteration as done:
            returned: T = done.value
            return returned
        except Undone as undone:
            raise unexpected(undone, self._config) from undone.__cause__
        finally:
            operation.close()

    def _send(
        self, pool: Pool, batch: Batch, retry: Retry | None = None, *, tested: bool = False, alone: bool = False
    ) -> CommandGenerator[Results]:
        """Send a batch once: lend a connection, send one packet, read its answer, give the connection back.

        Args:
            pool: The connections.
            batch: The batch.
            retry: The failures of the operation so far.
            tested: Ping the connection first.
            alone: Do not send it together with other calls' writes.

        Raises:
            ReadOnlyServer: It writes, and the options say ``read_only``.
        """
        self._check_writable(batch)
        slot, fate_unknown, results = Slot(), retry is not None and retry.fate_unknown, None
        try:
            lent = None if tested else pool.borrow_at_once(slot)
            if lent is None:
                if batch.lock and self._config.pipeline and not (tested or alone or fate_unknown):
                    slot.write = QueuedWrite(batch)
                lent = yield from _wait_for_connection(pool, slot, tested=tested)
            self._reached = True
            if lent is None:
                return (yield from self._outcome_of(slot, pool, batch, retry))
            if retry is not None and fate_unknown:
                results = yield from _earlier_attempt(lent, batch, retry)
            if results is None:
                begins = batch.atomic and len(batch.statements) > 1
                statements = (BEGIN, *batch.statements, COMMIT) if begins else batch.statements
                on_disk, directly = lent.on_disk, lent.sends_directly
                try:
                    if directly:
                        found = yield Execute(lent.connection, statements)
                    else:
                        found = yield from lent.execute(statements)
                except ServerError as error:
                    if directly:
                        lent.refused(error)
                    found = yield from _after_refusal(lent, statements, error, on_disk=on_disk)
                results = Results(found[1:-1] if begins else found, batch, fate_unknown=fate_unknown)
            if not pool.give_back_at_once(slot, lent):
                yield from pool.close_outdated(slot, lent)
        except BaseException as error:
            if slot.sending is None or not slot.sending.continues:
                pool.give_back_after(slot, error)
            raise
        return results

    def _check_writable(self, batch: Batch) -> None:
        if self._read_only and not batch.only_reads:
            raise ReadOnlyServer(
                "Nothing is written here: this Database was opened with read_only=True. Write through another one."
            )

    def _outcome_of(self, slot: Slot, pool: Pool, batch: Batch, retry: Retry | None) -> CommandGenerator[Results]:
        """Return the results of a write that was sent in a group; send it alone if it was not carried out there."""
        outcome = None if slot.write is None else slot.write.outcome
        if isinstance(outcome, DriverError):
            raise outcome
        if outcome is None or isinstance(outcome, SendAlone):
            return (yield from self._send(pool, batch, retry, alone=True))
        return Results(outcome, batch)

    def _repeat(self, pool: Pool, batch: Batch, retry: Retry, error: DriverError) -> CommandGenerator[Results]:
        """Send a batch again, after a wait, until it succeeds or cannot succeed.

        Raises:
            Duplicate: A unique key exists, and the batch was undone.
            Outdated: A guard of the batch failed, and it was undone.
            LocusMySQLError: Repeating cannot help, or the deadline has passed.
        """
        while True:
            wait_s = retry.wait_after(error)
            self._counters.retry()
            yield Sleep(wait_s)
            try:
                return (yield from self._send(pool, batch, retry, tested=True))
            except DriverError as again:
                error = again

    def _ensure_and_drive(
        self, pool: Pool, operation: Operation[T], schema: Schema, ddl_mode: DDLMode
    ) -> CommandGenerator[T]:
        creates = ddl_mode == "create"
        if (schema, ddl_mode) not in self._ready:
            yield from self._drive(pool, ensure_schema(self._config, schema, ddl_mode), creates_tables=creates)
            self._ready.add((schema, ddl_mode))
        self._last = schema, ddl_mode
        return (yield from self._drive(pool, operation, creates_tables=creates))

    def _drive_unchecked(self, pool: Pool, operation: Operation[T], schema: Schema) -> CommandGenerator[T]:
        """Carry out an operation without checking its tables first.

        If rows or tables are not as expected, check whether another version made them: then nothing is damaged.
        """
        try:
            return (yield from self._drive(pool, operation))
        except (CorruptCheckpoint, SchemaMismatch):
            yield from self._drive(pool, find_other_layout(self._config, schema))
            raise


def _wait_for_connection(pool: Pool, slot: Slot, *, tested: bool) -> CommandGenerator[ServerConnection | None]:
    """Return the first connection that is free; None if the slot's write was sent in a group, whoever sent it."""
    lent = yield from pool.borrow(slot, tested=tested)
    if lent is None or not pool.share_packet(slot):
        return lent
    slot.sending = Shielded(send_with_others(pool, slot, lent))
    yield slot.sending
    return None


def _earlier_attempt(lent: ServerConnection, batch: Batch, retry: Retry) -> CommandGenerator[Results | None]:
    """Return the results of a batch if an attempt whose answer was lost has carried it out."""
    retry.check_deadline()
    if batch.outcome_query is None:
        return None
    (found,) = yield from lent.execute((batch.outcome_query,))
    return Results((), batch, earlier_attempt=found.rows[0]) if found.rows else None


def _after_refusal(
    lent: ServerConnection, statements: Sequence[Statement], error: ServerError, *, on_disk: bool
) -> CommandGenerator[list[Result]]:
    """Undo a refused transaction. If it lacked memory for temporary tables, send it again with these on disk.

    Args:
        lent: The connection.
        statements: What was refused.
        error: The refusal.
        on_disk: Whether temporary tables went to disk already.
    """
    while True:
        if statements[0] is BEGIN and not lent.connection.closed:
            yield from roll_back(lent)
        if on_disk or not lent.on_disk or lent.connection.closed:
            raise error
        on_disk = True
        try:
            return (yield from lent.execute(statements))
        except ServerError as again:
            error = again


def _without_statements(batch: Batch) -> CommandGenerator[Results]:
    """Carry out a step that sends nothing."""
    if isinstance(batch, Pause):
        yield Sleep(batch.seconds)
    elif isinstance(batch, Computation):
        yield Compute(batch.work)
    return Results((), batch)


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
