"""Runs operations: sends and repeats their batches. See `Execution`.

The engines `synchronous.SyncEngine` and `asynchronous.AsyncEngine` run its generators by one of the two `loops`.
Who calls whom:

    run                   an operation
      _ensure_and_drive   creates or checks its tables, the first time
        _drive            its batches, one after another
          _execute        a batch: by which way
            _execute_write    a write, in a group with others if it must wait for a connection
            _execute_alone    anything else, and what was refused in a group; repeats it
              _attempt        one attempt on a connection that was lent
"""

from __future__ import annotations

from typing import TypeVar

from ..config import ConnectionOptions
from ..dialect import Schema
from ..drivers.interface import DriverError, Result, ServerError
from ..drivers.registry import find_driver
from ..errors import CorruptCheckpoint, ReadOnlyServer, SchemaMismatch
from .bootstrap import DDLMode, ensure_schema, find_other_layout
from .commands import CommandGenerator, Compute, Sleep
from .counters import Counters
from .group_commit import QueuedWrite, SendAlone
from .operation import Batch, Computation, Deferred, Operation, Pause, Results, Undone
from .pool import Pool
from .retry import Retry, unexpected
from .servers import ServerConnection
from .sides import Side
from .topology import Topology
from .transaction import own_results, roll_back, to_send

T = TypeVar("T")


class Execution:
    """Runs operations. Threads and event loops may share it.

    Args:
        config: The options.
        counters: The counters.
    """

    def __init__(self, config: ConnectionOptions, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self._driver = find_driver(config.driver)
        self.topology = Topology(config.endpoints)
        self._read_only = config.read_only
        self._ready: set[tuple[Schema, DDLMode]] = set()
        # The schema of the last operation, compared by identity, because a look-up hashes the whole schema.
        self._last: tuple[Schema | None, DDLMode] = (None, "create")
        self._reached = False

    def open_pool(self, side: type[Side]) -> Pool:
        """Return a new pool without connections."""
        return Pool(self._config, self._driver, side(), self.topology, self._counters)

    def run(
        self,
        pool: Pool,
        operation: Operation[T],
        schema: Schema | None,
        ddl_mode: DDLMode,
    ) -> CommandGenerator[T]:
        """Carry out an operation.

        Args:
            pool: The connections.
            operation: The operation.
            schema: The tables it needs. They are created or checked before the first operation that needs them.
            ddl_mode: Whether they may be created; see `ensure_schema`.
        """
        if schema is not None and ddl_mode == "off":
            return self._drive_unchecked(pool, operation, schema)
        last_schema, last_mode = self._last
        if schema is None or (schema is last_schema and ddl_mode == last_mode):
            return self._drive(pool, operation, creates_tables=schema is not None and ddl_mode == "create")
        return self._ensure_and_drive(pool, operation, schema, ddl_mode)

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

    def _drive(self, pool: Pool, operation: Operation[T], *, creates_tables: bool = False) -> CommandGenerator[T]:
        """Run an operation: execute each batch it yields and send back the results."""
        retry = Retry(self._config, reached_before=self._reached, creates_tables=creates_tables)
        try:
            batch = next(operation)
            while True:
                try:
                    if batch.statements:
                        results = yield from self._execute(pool, batch, retry)
                    else:
                        results = yield from self._without_statements(pool, batch)
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

    def _without_statements(self, pool: Pool, batch: Batch) -> CommandGenerator[Results]:
        """Carry out a step that sends nothing."""
        if isinstance(batch, Pause):
            yield Sleep(batch.seconds)
        elif isinstance(batch, Computation):
            yield Compute(batch.work)
        elif isinstance(batch, Deferred) and batch.work is not None:
            work, background = self._drive(pool, batch.work), pool.background
            if background.ready:
                background.start(work)
            else:
                yield from work
        return Results((), batch)

    def _execute(self, pool: Pool, batch: Batch, retry: Retry) -> CommandGenerator[Results]:
        """Send a batch, and repeat it if it may succeed later.

        Raises:
            ReadOnlyServer: It writes, and the options say ``read_only``.
        """
        if self._read_only and not batch.only_reads:
            raise ReadOnlyServer(
                "Nothing is written here: this Database was opened with read_only=True. Write through another one."
            )
        retry.begin_batch()
        if batch.outcome_query is not None:
            pool.background.writes += 1
        if batch.lock and self._config.pipeline and not retry.fate_unknown:
            return (yield from self._execute_write(pool, batch, retry))
        return (yield from self._execute_alone(pool, batch, retry))

    def _execute_write(self, pool: Pool, batch: Batch, retry: Retry) -> CommandGenerator[Results]:
        """Send a write; in one transaction with others if it, or they, must wait for a connection."""
        write, wait_s = QueuedWrite(batch), None
        try:
            results = yield from pool.lend(lambda lent: self._attempt(lent, batch, retry), write=write)
        except DriverError as error:
            wait_s = self._wait_after(retry, error)
        else:
            if results is not None:
                return results
            self._reached = True
            outcome = write.outcome
            if isinstance(outcome, DriverError):
                wait_s = self._wait_after(retry, outcome)
            elif outcome is not None and not isinstance(outcome, SendAlone):
                return Results(outcome, batch)
        return (yield from self._execute_alone(pool, batch, retry, wait_s))

    def _execute_alone(
        self,
        pool: Pool,
        batch: Batch,
        retry: Retry,
        wait_s: float | None = None,
    ) -> CommandGenerator[Results]:
        """Send a batch after a wait, if it failed before, until it succeeds or cannot succeed."""
        while True:
            if wait_s is not None:
                yield Sleep(wait_s)
            try:
                return (
                    yield from pool.lend(
                        lambda lent: self._attempt(lent, batch, retry),
                        tested=wait_s is not None,
                    )
                )
            except DriverError as error:
                wait_s = self._wait_after(retry, error)

    def _wait_after(self, retry: Retry, error: DriverError) -> float:
        wait_s = retry.wait_after(error)
        self._counters.retry()
        return wait_s

    def _attempt(
        self,
        lent: ServerConnection,
        batch: Batch,
        retry: Retry,
    ) -> CommandGenerator[Results]:
        """Execute a batch once. If an earlier attempt may have been executed, check that first.

        If it failed for lack of memory for temporary tables, it is executed again with these on disk.
        """
        self._reached = True
        if retry.fate_unknown:
            retry.check_deadline()
            if batch.outcome_query is not None:
                (found,) = yield from lent.execute((batch.outcome_query,))
                if found.rows:
                    return Results((), batch, earlier_attempt=found.rows[0])
        results: list[Result] | None = None
        while results is None:
            on_disk = lent.on_disk
            try:
                results = yield from lent.execute(to_send(batch))
            except ServerError:
                if batch.is_transaction and not lent.connection.closed:
                    yield from roll_back(lent)
                if on_disk or not lent.on_disk or lent.connection.closed:
                    raise
        return own_results(batch, results, fate_unknown=retry.fate_unknown)
