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
from typing import NamedTuple, TypeVar

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
from .counters import Counters
from .execution import Execution, without_statements
from .failures import NO_TABLE, explain, may_pass
from .operation import IN_TRANSACTION, Batch, Operation, Results, Undone
from .pool import Pool
from .retry import undone_by, unexpected

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


class _Session(NamedTuple):
    """The session of the connection, at the first call."""

    version: str
    comment: str
    database: str | None
    isolation: str
    max_allowed_packet: int


class TransactionExecution(Execution):
    """Runs operations in a program's transaction, one at a time; uses no pool, and creates no tables.

    Args:
        config: The options.
        counters: The counters.
        borrowed: The program's connection.
        forget: Clears the caches. Called before each operation, since the program may have undone what they hold.
    """

    def __init__(
        self, config: ConnectionOptions, counters: Counters, borrowed: Borrowed, forget: Callable[[], None]
    ) -> None:
        super().__init__(config, counters)
        self._borrowed, self._forget = borrowed, forget
        self._lock = threading.Lock() if borrowed.blocks else asyncio.Lock()
        self._session: _Session | None = None
        self._lost: TransactionLost | None = None

    def run(self, pool: Pool, operation: Operation[T], schema: Schema | None, ddl_mode: DDLMode) -> CommandGenerator[T]:
        """Carry out an operation.

        Raises:
            TransactionLost: The transaction has ended, and nothing of it is stored.
            ConfigError: The connection has no open transaction, or one that does not fit.
            LocusMySQLError: The operation failed; what it did is undone, and the transaction is still open.
        """
        yield Wait(self._lock.acquire)
        self._lost = None
        try:
            self._forget()
            IN_TRANSACTION.set(True)
            batch = next(operation)
            while True:
                try:
                    results = yield from self._step(batch)
                except Exception as error:
                    batch = operation.throw(error)
                else:
                    batch = operation.send(results)
        except StopIteration as done:
            if self._lost is not None:  # in a part whose failure the operation ignores
                raise self._lost from None
            returned: T = done.value
            return returned
        except Undone as undone:
            raise unexpected(undone, self._config) from undone.__cause__
        finally:
            operation.close()
            IN_TRANSACTION.set(False)
            self._lock.release()

    def _step(self, batch: Batch) -> CommandGenerator[Results]:
        if not batch.statements:
            return (yield from without_statements(batch))
        self._check_writable(batch)
        try:
            session = self._session or (yield from self._inspect())
            writes = not batch.only_reads
            if writes and session.isolation not in _READS_NEWEST:
                raise ConfigError(
                    f"Nothing was written: the isolation of the session is {session.isolation}, in which conditions of "
                    "writes would be checked on old rows. Before the transaction begins, SET SESSION TRANSACTION "
                    "ISOLATION LEVEL READ COMMITTED; with SQLAlchemy, create_engine(…, isolation_level="
                    "'READ COMMITTED')."
                )
            statements = packets(batch.statements, pipeline=False, limit_bytes=session.max_allowed_packet)
            return Results((yield from self._send_batch(statements, writes=writes)), batch)
        except DriverError as error:
            raise self._explained(error) from error

    def _inspect(self) -> CommandGenerator[_Session]:
        """Check that statements of this package work in the session."""
        found = yield from self._call(_INSPECT.encode())
        self._session = session = _Session._make(found.rows[0])
        variant = variant_of(f"{session.version} {session.comment}")
        if variant is not None:
            raise UnsupportedServer(f"The server is no MySQL ({session.version}): it takes no writes in a transaction.")
        check_server_version(session.version)
        if (session.database or "").casefold() != self._config.database.casefold():
            self._session = None
            raise ConfigError(
                f"The connection's database is {session.database!r}, and that of the Database is "
                f"{self._config.database!r}. Connect to that one, or make a Database for the other."
            )
        return session

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
        calls = self._borrowed.query(statement)
        try:
            call = next(calls)
            while True:
                try:
                    outcome = yield Wait(call)
                except BaseException as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(outcome)
        except StopIteration as done:
            result: Result = done.value
            return result
        except Exception as error:
            raise translate(error, self._config.endpoints[0]) from None
        except BaseException:
            self._borrowed.drop()
            raise

    def _explained(self, error: DriverError) -> Undone | LocusMySQLError:
        """Return the exception to raise in the operation."""
        undone = undone_by(error)
        if undone is not None:
            return undone
        if self._lost is not None:
            return self._lost
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
