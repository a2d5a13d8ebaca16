"""Runs operations: sends and repeats their batches, and chooses the server that answers. See `Execution`.

The engines `synchronous.SyncEngine` and `asynchronous.AsyncEngine` run its generators by one of the two `loops`.
Who calls whom:

    run                   an operation
      _ensure_and_drive   creates or checks its tables, the first time
        _drive            its batches, one after another
          _execute        a batch: which server, and by which way
            _ask_secondary    a read that a secondary may answer
            _execute_write    a write, in a group with others if it must wait for a connection
            _execute_alone    anything else, and what was refused in a group; repeats it
              _ask_primary    one attempt on a connection that was lent
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ..config import ConnectionOptions
from ..dialect import Schema, Statement
from ..dialect.server_roles import CARRIED_OUT
from ..drivers.interface import DriverError, Result, ServerError
from ..drivers.registry import find_driver
from ..errors import CorruptCheckpoint, SchemaMismatch
from .bootstrap import DDLMode, ensure_schema, find_other_layout
from .commands import CommandGenerator, Compute, Sleep
from .counters import Counters
from .group_commit import QueuedWrite, SendAlone
from .gtid_tracker import GtidTracker
from .operation import Batch, Computation, Deferred, Operation, Pause, Results, Undone
from .pool import Pool
from .primary import PRIMARY
from .retry import Retry, unexpected
from .secondaries import Secondaries, SecondaryRead
from .secondary import SECONDARY
from .servers import ServerConnection
from .session_killer import SessionKiller
from .sides import Side
from .topology import Topology
from .transaction import own_results, roll_back, to_send

T = TypeVar("T")


class Pools(NamedTuple):
    """The pools of an engine, or of one event loop of an engine."""

    primary: Pool
    secondary: Pool


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
        self.session_killer = SessionKiller(config, self._driver)
        self._secondaries = Secondaries(config)
        self._ready: set[tuple[Schema, DDLMode]] = set()
        # The schema of the last operation, compared by identity, because a look-up hashes the whole schema.
        self._last: tuple[Schema | None, DDLMode] = (None, "create")
        self._reached = False

    def open_pools(self, side: type[Side]) -> Pools:
        """New pools without connections."""
        config, driver, topology = self._config, self._driver, self.topology
        return Pools(
            *(
                Pool(config, driver, side(), topology, self._counters, role, self.session_killer)
                for role in (PRIMARY, SECONDARY)
            )
        )

    def run(
        self,
        pools: Pools,
        operation: Operation[T],
        schema: Schema | None,
        ddl_mode: DDLMode,
    ) -> CommandGenerator[T]:
        """Carry out an operation.

        Args:
            pools: The pools of connections.
            operation: The operation.
            schema: The tables it needs. They are created or checked before the first operation that needs them.
            ddl_mode: Whether they may be created; see `ensure_schema`.
        """
        if schema is not None and ddl_mode == "off":
            return self._drive_unchecked(pools, operation, schema)
        last_schema, last_mode = self._last
        if schema is None or (schema is last_schema and ddl_mode == last_mode):
            return self._drive(pools, operation)
        return self._ensure_and_drive(pools, operation, schema, ddl_mode)

    def _ensure_and_drive(
        self, pools: Pools, operation: Operation[T], schema: Schema, ddl_mode: DDLMode
    ) -> CommandGenerator[T]:
        if (schema, ddl_mode) not in self._ready:
            yield from self._drive(pools, ensure_schema(self._config, schema, ddl_mode))
            self._ready.add((schema, ddl_mode))
        self._last = schema, ddl_mode
        return (yield from self._drive(pools, operation))

    def _drive_unchecked(self, pools: Pools, operation: Operation[T], schema: Schema) -> CommandGenerator[T]:
        """Carry out an operation without checking its tables first.

        If rows or tables are not as expected, check whether another version made them: then nothing is damaged.
        """
        try:
            return (yield from self._drive(pools, operation))
        except (CorruptCheckpoint, SchemaMismatch):
            yield from self._drive(pools, find_other_layout(self._config, schema))
            raise

    def _drive(self, pools: Pools, operation: Operation[T]) -> CommandGenerator[T]:
        """Run an operation: execute each batch it yields and send back the results."""
        retry = Retry(self._config, reached_before=self._reached)
        try:
            batch = next(operation)
            while True:
                try:
                    if batch.statements:
                        results = yield from self._execute(pools, batch, retry)
                    else:
                        results = yield from self._without_statements(pools, batch)
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

    def _without_statements(self, pools: Pools, batch: Batch) -> CommandGenerator[Results]:
        """Carry out a step that sends nothing."""
        if isinstance(batch, Pause):
            yield Sleep(batch.seconds)
        elif isinstance(batch, Computation):
            yield Compute(batch.work)
        elif isinstance(batch, Deferred) and batch.work is not None:
            work, background = self._drive(pools, batch.work), pools.primary.background
            if background.ready:
                background.start(work)
            else:
                yield from work
        return Results((), batch)

    def _execute(self, pools: Pools, batch: Batch, retry: Retry) -> CommandGenerator[Results]:
        """Send a batch to a secondary or the primary. On the primary, it is repeated if it may succeed later."""
        tracker = None
        if self._secondaries.must_check:
            self._secondaries.check(batch)
            secondary_read = self._secondaries.secondary_read(batch)
            if secondary_read is not None:
                answer = yield from self._ask_secondary(pools.secondary, secondary_read, batch)
                if answer is not None:
                    return answer
            tracker = self._secondaries.gtid_tracker
        retry.begin_batch()
        if batch.outcome_query is not None:
            pools.primary.background.writes += 1
        if batch.lock and self._config.pipeline and tracker is None and not retry.fate_unknown:
            return (yield from self._execute_write(pools, batch, retry))
        return (yield from self._execute_alone(pools, batch, retry, tracker))

    def _execute_write(self, pools: Pools, batch: Batch, retry: Retry) -> CommandGenerator[Results]:
        """Send a write to the primary; in one transaction with others if it, or they, must wait for a connection."""
        write, wait_s = QueuedWrite(batch), None
        try:
            results = yield from pools.primary.lend(
                lambda primary: self._ask_primary(primary, batch, retry, None), write=write
            )
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
        return (yield from self._execute_alone(pools, batch, retry, None, wait_s))

    def _execute_alone(
        self,
        pools: Pools,
        batch: Batch,
        retry: Retry,
        tracker: GtidTracker | None,
        wait_s: float | None = None,
    ) -> CommandGenerator[Results]:
        """Send a batch to the primary after a wait, if it failed before, until it succeeds or cannot succeed."""
        while True:
            if wait_s is not None:
                yield Sleep(wait_s)
            try:
                return (
                    yield from pools.primary.lend(
                        lambda primary: self._ask_primary(primary, batch, retry, tracker),
                        tested=wait_s is not None,
                    )
                )
            except DriverError as error:
                wait_s = self._wait_after(retry, error)

    def _wait_after(self, retry: Retry, error: DriverError) -> float:
        wait_s = retry.wait_after(error)
        self._counters.retry()
        return wait_s

    def _ask_secondary(
        self, pool: Pool, secondary_read: SecondaryRead, batch: Batch
    ) -> CommandGenerator[Results | None]:
        """Return the answer of a secondary; None if it cannot answer, so that the primary must."""
        try:
            results = yield from pool.lend(secondary_read.execute)
        except DriverError as error:
            self._secondaries.record_failure(error)
            return None
        self._secondaries.record_answer()
        return results

    def _ask_primary(
        self,
        primary: ServerConnection,
        batch: Batch,
        retry: Retry,
        tracker: GtidTracker | None,
    ) -> CommandGenerator[Results]:
        """Execute a batch once. If an earlier attempt may have been executed, check that first.

        If it failed for lack of memory for temporary tables, it is executed again with these on disk.
        """
        self._reached = True
        if retry.fate_unknown:
            retry.check_deadline()
            if batch.outcome_query is not None:
                (found,) = yield from _send(primary, (batch.outcome_query,), tracker)
                if found.rows:
                    return Results((), batch, earlier_attempt=found.rows[0])
        results: list[Result] | None = None
        while results is None:
            on_disk = primary.on_disk
            try:
                results = yield from _send(primary, to_send(batch), tracker)
            except ServerError:
                if batch.is_transaction and not primary.connection.closed:
                    yield from roll_back(primary)
                if on_disk or not primary.on_disk or primary.connection.closed:
                    raise
        return own_results(batch, results, fate_unknown=retry.fate_unknown)


def _send(
    primary: ServerConnection, statements: tuple[Statement, ...], tracker: GtidTracker | None
) -> CommandGenerator[list[Result]]:
    """Send statements to the primary. With reads from secondaries, record the transactions that the answer shows."""
    return primary.execute(statements) if tracker is None else _send_and_learn(primary, statements, tracker)


def _send_and_learn(
    primary: ServerConnection, statements: tuple[Statement, ...], tracker: GtidTracker
) -> CommandGenerator[list[Result]]:
    begun = tracker.begin()
    try:
        results = yield from primary.execute((*statements, CARRIED_OUT))
    except BaseException:
        tracker.record_incomplete()
        raise
    tracker.record(results.pop(), begun, primary=True)
    return results
