"""Runs operations in a transaction that a program has begun, on its connection: `TransactionExecution`.

A batch is sent statement by statement, and never repeated:

    SET         settings of the session that statements rely on; the program's are kept in user variables
    SAVEPOINT   and a ROLLBACK to it, which fails if no transaction is open; both only if the batch writes
    …           the statements of the batch; if one is refused, a ROLLBACK to the savepoint undoes those before it
    SET         the program's settings

If that cannot be completed, the connection is dropped: so neither a part of a batch can be committed, nor does the
program continue with other settings than its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..config import ConnectionOptions
from ..dialect import Schema
from ..dialect.variants import variant_of
from ..drivers.borrowed import Borrowed
from ..drivers.failures import translate
from ..drivers.interface import ConnectionLost, DriverError, Result, ServerError
from ..drivers.wire.literals import packets
from ..drivers.wire.session import SETTINGS, SETTINGS_OF_MYSQL, check_server_version
from ..errors import ConfigError, LocusMySQLError, SchemaMismatch, TransactionLost, Unavailable, UnsupportedServer
from .bootstrap import DDLMode
from .commands import CommandGenerator, Wait
from .execution import Execution
from .failures import NO_TABLE, explain, may_pass
from .logs import Counters
from .operation import IN_TRANSACTION, Batch, Operation, Results, Undone
from .pool import Pool
from .retry import Retry, undone_by

T = TypeVar("T")

#: Settings that are left as they are: those of the transaction, limits of waits, and one for making indexes.
_LEFT = {
    *("timestamp", "autocommit", "completion_type", "transaction_isolation", "transaction_read_only"),
    *("innodb_lock_wait_timeout", "lock_wait_timeout", "net_read_timeout", "net_write_timeout"),
    "innodb_ft_enable_stopword",
}
_SET = {name: value for name, value in {**SETTINGS, **SETTINGS_OF_MYSQL}.items() if name not in _LEFT} | {
    "character_set_client": "'utf8mb4'",
    "character_set_results": "'utf8mb4'",
    "collation_connection": "'utf8mb4_0900_bin'",
}

# MySQL evaluates all values of a SET before it assigns the first one.
_ENTER = ", ".join([f"@locus_{name} = @@SESSION.{name}" for name in _SET])
_ENTER = f"SET {_ENTER}, {', '.join(f'@@SESSION.{name} = {value}' for name, value in _SET.items())}"
_LEAVE = f"SET {', '.join(f'@@SESSION.{name} = @locus_{name}' for name in _SET)}"

_MARK, _BACK = "SAVEPOINT locus_mysql_batch", "ROLLBACK TO SAVEPOINT locus_mysql_batch"

#: "SAVEPOINT does not exist": there is no transaction, or it has ended.
_NO_SAVEPOINT = 1305

_DEADLOCK = 1213

_INSPECT = "SELECT VERSION(), @@version_comment, DATABASE(), @@SESSION.transaction_isolation, @@max_allowed_packet"

#: Where each statement reads what was committed before it. With REPEATABLE READ, conditions of writes, such as
#: `expected`, would be checked on the rows of a time before the lock was taken.
_READS_NEWEST = {"READ-COMMITTED", "SERIALIZABLE"}


class TransactionExecution(Execution):
    """Runs operations in a program's transaction, one at a time; uses no pool, and creates no tables.

    Args:
        config: The options.
        counters: The counters.
        borrowed: The program's connection.
        empty_caches: Called before each operation, since the program may have undone what they hold.
    """

    def __init__(
        self, config: ConnectionOptions, counters: Counters, borrowed: Borrowed, empty_caches: Callable[[], None]
    ) -> None:
        super().__init__(config, counters)
        self._borrowed, self._empty_caches = borrowed, empty_caches
        self._lock = threading.Lock() if borrowed.blocks else asyncio.Lock()
        self._isolation, self._limit_bytes = "", 0
        self._lost: TransactionLost | None = None

    def run(self, pool: Pool, operation: Operation[T], schema: Schema | None, ddl_mode: DDLMode) -> CommandGenerator[T]:
        """Carry out an operation.

        Raises:
            TransactionLost: The transaction has ended. Unless the program committed it, nothing of it is stored.
            ConfigError: The connection has no open transaction, or one that does not fit.
            LocusMySQLError: The operation failed; what it did is undone, and the transaction is still open.
        """
        yield Wait(self._lock.acquire)
        self._lost = None
        try:
            self._empty_caches()
            IN_TRANSACTION.set(True)
            returned = yield from self._drive(pool, operation)
            if self._lost is not None:  # in a part whose failure the operation ignores
                raise self._lost
            return returned
        finally:
            IN_TRANSACTION.set(False)
            self._lock.release()

    def _send(
        self, pool: Pool, batch: Batch, retry: Retry | None = None, *, tested: bool = False, alone: bool = False
    ) -> CommandGenerator[Results]:
        """Send a batch once. Raises no `DriverError`, after which it would be repeated."""
        self._check_writable(batch)
        writes = not batch.only_reads
        if self._borrowed.has_ended():
            self._lost = TransactionLost(
                "The transaction of this `using` has ended: it was committed or rolled back, or its connection was "
                "closed. This call did nothing. Make one `using` for each transaction."
            )
            raise self._lost
        if writes and not self._borrowed.can_commit():
            raise ConfigError(
                "Nothing was written: SQLAlchemy has no transaction open on the connection, so its commit() would do "
                "nothing. Begin one, such as by connection.begin()."
            )
        try:
            if not self._isolation:
                yield from self._inspect()
            if writes and self._isolation not in _READS_NEWEST:
                raise ConfigError(
                    f"Nothing was written: the isolation of the session is {self._isolation}, in which conditions of "
                    "writes would be checked on old rows. Before the transaction begins, SET SESSION TRANSACTION "
                    "ISOLATION LEVEL READ COMMITTED; with SQLAlchemy, create_engine(…, isolation_level="
                    "'READ COMMITTED')."
                )
            statements = packets(batch.statements, pipeline=False, limit_bytes=self._limit_bytes)
            return Results((yield from self._send_batch(statements, writes=writes)), batch)
        except DriverError as error:
            raise self._explained(error) from error

    def _inspect(self) -> CommandGenerator[None]:
        """Check that statements of this package work in the session."""
        (row,) = (yield from self._call(_INSPECT.encode())).rows
        version, comment, database, isolation, limit_bytes = map(str, row)
        if variant_of(f"{version} {comment}") is not None:
            raise UnsupportedServer(f"Stores write in a transaction of your own on MySQL only, not on {version}.")
        check_server_version(version)
        if database.casefold() != self._config.database.casefold():
            raise ConfigError(
                f"The database of the connection is {database}, and that of the Database is {self._config.database}. "
                "Connect to that one, or make a Database for the other."
            )
        self._isolation, self._limit_bytes = isolation, int(limit_bytes)

    def _send_batch(self, statements: Sequence[bytes], *, writes: bool) -> CommandGenerator[list[Result]]:
        yield from self._call(_ENTER.encode())
        failure, results = None, []
        try:
            results = yield from self._write(statements) if writes else self._send_each(statements)
        except ConnectionLost:
            raise
        except Exception as error:
            failure = error
        try:
            yield from self._call(_LEAVE.encode())
        except ServerError as error:
            raise ConnectionLost(f"The session's settings could not be put back: {error}.") from error
        if failure is not None:
            raise failure
        return results

    def _write(self, statements: Sequence[bytes]) -> CommandGenerator[list[Result]]:
        yield from self._call(_MARK.encode())
        if not (yield from self._go_back()):
            raise ConfigError(
                "Nothing was written: the connection has no transaction open, and autocommit is on. Begin one, such as "
                "by connection.begin() or START TRANSACTION, or switch autocommit off."
            )
        try:
            return (yield from self._send_each(statements))
        except ServerError as error:
            if not (yield from self._go_back()):
                self._end(f"MySQL undid the whole transaction: {error}")
            raise

    def _go_back(self) -> CommandGenerator[bool]:
        """Undo everything after the savepoint; return False if there is no transaction."""
        try:
            yield from self._call(_BACK.encode())
        except ServerError as error:
            if error.errno == _NO_SAVEPOINT:
                return False
            raise ConnectionLost(f"A write could not be undone: {error}.") from error
        return True

    def _send_each(self, statements: Sequence[bytes]) -> CommandGenerator[list[Result]]:
        results = []
        for statement in statements:
            results.append((yield from self._call(statement)))
        return results

    def _call(self, statement: bytes) -> CommandGenerator[Result]:
        """Send a statement; the connection is dropped if its answer was not read."""
        try:
            return (yield from self._borrowed.query(statement, Wait))
        except Exception as error:
            raise translate(error, self._config.endpoints[0]) from None
        except BaseException:
            self._borrowed.drop()
            raise

    def _explained(self, error: DriverError) -> Undone | LocusMySQLError:
        """Return the exception to raise in the operation."""
        if self._lost is not None:
            return self._lost
        undone = undone_by(error)
        if undone is not None:
            return undone
        if isinstance(error, ConnectionLost):
            self._borrowed.drop()
            return self._end(f"The connection was dropped. {error}")
        message = str(error).rstrip(".")
        number = error.errno if isinstance(error, ServerError) else 0
        if number == _DEADLOCK:
            return self._end(f"MySQL undid the whole transaction: {error}")
        if may_pass(error, self._config):
            return Unavailable(
                f"MySQL did not carry out a statement in your transaction: {message}. What the call did was undone; "
                "the transaction is still open. Call again, or roll back."
            )
        if number == NO_TABLE:
            return SchemaMismatch(
                f"A table is missing in database {self._config.database!r}: {message}. To create it would commit your "
                "transaction: run `locus-mysql schema`, or call a store of the Database itself first."
            )
        return explain(error, self._config)

    def _end(self, reason: str) -> TransactionLost:
        """Remember, and return, that the transaction has ended."""
        self._lost = TransactionLost(f"{reason.rstrip('.')}. Nothing of the transaction is stored. Run it again.")
        return self._lost
