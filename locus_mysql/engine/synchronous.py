"""Running operations in threads, without an event loop: `SyncEngine`."""

from __future__ import annotations

import os
import threading
import time
from typing import TypeVar

from ..config import MySQLConfig
from ..drivers.base import DriverError, Result, ServerError, SyncConnection
from ..drivers.registry import find_driver
from .bootstrap import HasTables, ensure_schema
from .operation import Batch, Operation
from .pool import SyncPool
from .retry import Retry
from .transaction import ROLLBACK, is_transaction, to_return, to_send

T = TypeVar("T")


class SyncEngine:
    """Runs operations. It may be used from any number of threads, and after a fork.

    Args:
        config: The options.
        dialect: The statements that make and check the tables.
    """

    def __init__(self, config: MySQLConfig, dialect: HasTables) -> None:
        self._config = config
        self._dialect = dialect
        self._driver = find_driver(config.driver)
        self._pool = SyncPool(config, self._driver)
        self._abandoned: list[object] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._ready = False

    def run(self, operation: Operation[T]) -> T:
        """Carry out an operation; the first one makes sure of the tables.

        Raises:
            LocusMySQLError: What to do is in the message.
        """
        if not self._ready:
            self._drive(ensure_schema(self._config, self._dialect))
            self._ready = True
        return self._drive(operation)

    def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        self._current_pool().close()

    def _drive(self, operation: Operation[T]) -> T:
        retry = Retry(self._config, reached_before=self._current_pool().reached)
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
        finally:
            operation.close()

    def _execute(self, batch: Batch, retry: Retry) -> list[Result]:
        retry.begin_batch()
        tested = False
        while True:
            try:
                with self._current_pool().connection(tested=tested) as connection:
                    if retry.fate_unknown and batch.landed is not None:
                        found = connection.execute((batch.landed,))
                        if found[0].rows:
                            return found
                    return _carry_out(connection, batch)
            except DriverError as error:
                wait_s = retry.wait_after(error)
            tested = True
            time.sleep(wait_s)

    def _current_pool(self) -> SyncPool:
        """This process's pool; that of a parent process is left alone."""
        if self._process == os.getpid():  # without the lock: a fork must not find it held by another thread
            return self._pool
        with self._lock:
            if self._process != os.getpid():
                self._abandoned.append(self._pool)  # not freed: freeing might speak on the parent's connections
                self._pool = SyncPool(self._config, self._driver)
                self._process = os.getpid()  # last: others then go on without the lock
            return self._pool


def _carry_out(connection: SyncConnection, batch: Batch) -> list[Result]:
    try:
        return to_return(batch, connection.execute(to_send(batch)))
    except ServerError:
        if is_transaction(batch):
            connection.execute((ROLLBACK,))
        raise
