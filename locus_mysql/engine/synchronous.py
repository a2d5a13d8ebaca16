"""Running operations in threads, without an event loop: `SyncEngine`."""

from __future__ import annotations

import time
from typing import TypeVar

from ..config import ConnectionOptions, Endpoint
from ..dialect import Schema, Statement
from ..dialect.servers import CARRIED_OUT
from ..drivers.interface import DriverError, Result, ServerError, SyncConnection
from ..drivers.registry import find_driver
from .at_fork import tell_at_fork
from .bootstrap import DDLMode, ensure_schema
from .counters import Counters, PoolState
from .gtid_tracker import GtidTracker
from .kills import Kills
from .operation import Batch, Operation, Results, Undone
from .pool import SyncPool
from .primary import PRIMARY
from .retry import Retry, unexpected
from .secondaries import Question, Secondaries
from .secondary import SECONDARY
from .topology import Topology
from .transaction import ROLLBACK, is_transaction, to_return, to_send

T = TypeVar("T")


class SyncEngine:
    """Runs operations. It may be used from any number of threads, and after a fork.

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
        self._open_pools()
        self._abandoned: list[object] = []
        self._ready: set[tuple[Schema, DDLMode]] = set()
        # The one asked for last, told by identity: to look a schema up is to hash all of it.
        self._last: tuple[Schema | None, DDLMode] = (None, "create")
        tell_at_fork(self)

    def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
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
                self._drive(ensure_schema(self._config, schema, ddl_mode))
                self._ready.add((schema, ddl_mode))
            self._last = schema, ddl_mode
        return self._drive(operation)

    @property
    def server(self) -> Endpoint:
        """The server that calls go to, as far as that is known."""
        return self._topology.order()[0]

    def pools(self) -> tuple[PoolState]:
        """The state of the pool, and of that to secondaries, as one."""
        return (self._pool.state() + self._secondary_pool.state(),)

    def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        self._pool.close()
        self._secondary_pool.close()
        self._kills.finish()

    def begin_in_child(self) -> None:
        """After a fork: leave the parent's pools alone. They are not freed: that might speak on their connections."""
        self._abandoned += [self._pool, self._secondary_pool]
        self._open_pools()

    def _open_pools(self) -> None:
        self._pool, self._secondary_pool = (
            SyncPool(self._config, self._driver, self._topology, self._counters, role, self._kills)
            for role in (PRIMARY, SECONDARY)
        )

    def _drive(self, operation: Operation[T]) -> T:
        retry = Retry(self._config, reached_before=self._pool.reached)
        try:
            batch = next(operation)
            while True:
                try:
                    value = self._execute(batch, retry)
                except Exception as error:
                    batch = operation.throw(error)
                else:
                    batch = operation.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
        except Undone as undone:
            raise unexpected(undone, self._config) from undone.__cause__
        finally:
            operation.close()

    def _execute(self, batch: Batch, retry: Retry) -> Results:
        seen = None
        if self._secondaries.matter:
            self._secondaries.check(batch)
            question = self._secondaries.question(batch)
            if question is not None:
                results = self._ask_a_secondary(question)
                if results is not None:
                    return results
            seen = self._secondaries.seen
        retry.begin_batch()
        tested = False
        while True:
            try:
                with self._pool.connection(tested=tested) as connection:
                    if retry.fate_unknown:
                        retry.check_deadline()
                        if batch.landed is not None:
                            (found,) = _execute(connection, (batch.landed,), seen)
                            if found.rows:
                                return Results((), {}, landed=found.rows[0])
                    return _carry_out(connection, batch, retry, seen)
            except DriverError as error:
                wait_s = retry.wait_after(error)
                self._counters.retry()
            tested = True
            time.sleep(wait_s)

    def _ask_a_secondary(self, question: Question) -> Results | None:
        """What a secondary answers; None if it cannot, so that the primary is to."""
        try:
            with self._secondary_pool.connection() as connection:
                results = question.ask(connection)
        except DriverError as error:
            self._secondaries.rest(error)
            return None
        self._secondaries.answered()
        return results


def _carry_out(connection: SyncConnection, batch: Batch, retry: Retry, seen: GtidTracker | None) -> Results:
    try:
        return to_return(batch, _execute(connection, to_send(batch), seen), fate_unknown=retry.fate_unknown)
    except ServerError:
        if is_transaction(batch) and not connection.closed:
            try:
                connection.execute((ROLLBACK,))
            except DriverError:  # the transaction may still be open, and nobody else may go on in it
                connection.abort()
        raise


def _execute(connection: SyncConnection, statements: tuple[Statement, ...], seen: GtidTracker | None) -> list[Result]:
    """Send statements to the primary, and take note of what the answer shows if anybody wants to know."""
    if seen is None:
        return connection.execute(statements)
    begun = seen.begin()
    try:
        results = connection.execute((*statements, CARRIED_OUT))
    except BaseException:
        seen.doubt()
        raise
    seen.learn(results.pop(), begun, primary=True)
    return results
