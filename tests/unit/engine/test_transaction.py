"""A program's transaction when what surrounds a batch fails: nothing is committed in part, or goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, cast

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.drivers.borrowed import Borrowed
from locus_mysql.drivers.interface import Result, ServerError
from locus_mysql.engine.execution import SyncEngine
from locus_mysql.engine.logs import Counters
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.engine.transaction import TransactionExecution
from locus_mysql.errors import LocusMySQLError, TransactionLost, UnsupportedServer

WRITE = Batch((Statement("INSERT INTO t VALUES (1)"), Statement("UPDATE t SET a = 2")))

KILLED = ServerError(1317, "Query execution was interrupted")
DEADLOCK = ServerError(1213, "Deadlock found when trying to get lock")
NO_SAVEPOINT = ServerError(1305, "SAVEPOINT locus_mysql_batch does not exist")


class Scripted:
    """A connection whose answers to some statements are errors.

    Args:
        errors: Pairs of the beginning of a statement and the error, each used once, in this order.
    """

    blocks = True

    def __init__(self, *errors: tuple[str, ServerError], version: tuple[str, str] = ("9.7.0", "MySQL")) -> None:
        self._version = version
        self._errors = list(errors)
        self.sent: list[str] = []
        self.dropped = False

    def query(self, statement: bytes) -> Generator[Callable[[], Any], Any, Result]:
        text = statement.decode()
        answer: Result = yield lambda: self._answer(text)
        return answer

    def drop(self) -> None:
        self.dropped = True

    def has_ended(self) -> bool:
        return False

    def can_commit(self) -> bool:
        return True

    def _answer(self, text: str) -> Result:
        self.sent.append(text.split()[0])
        if self._errors and text.startswith(self._errors[0][0]):
            raise self._errors.pop(0)[1]
        row = (*self._version, "app", "READ-COMMITTED", 1 << 20)
        return Result([row], columns=len(row)) if text.startswith("SELECT VERSION") else Result()


def write(*, ignoring: type[LocusMySQLError] | tuple[()] = ()) -> Operation[str]:
    try:
        yield WRITE
    except ignoring:
        return "ignored"
    return "written"


def run(scripted: Scripted, operation: Operation[str]) -> str:
    config = MySQLConfig(dsn="mysql://u:p@h/app", driver="pymysql")
    execution = TransactionExecution(config, Counters(), cast(Borrowed, scripted), lambda: None)
    return SyncEngine(config, execution=execution).run(operation)


@pytest.mark.parametrize(
    "errors",
    [
        [("SET @@SESSION.", KILLED)],  # settings are not put back
        [("UPDATE", KILLED), ("ROLLBACK", KILLED)],  # the batch is not undone
    ],
)
def test_a_connection_is_dropped_if_it_would_be_left_changed(errors: list[tuple[str, ServerError]]) -> None:
    scripted = Scripted(*errors)
    with pytest.raises(TransactionLost):
        run(scripted, write())
    assert scripted.dropped


@pytest.mark.parametrize("version", [("5.7.25", "OceanBase_CE 4.3.5.3"), ("11.4.2-MariaDB", ""), ("8.0.16", "MySQL")])
def test_other_servers_are_refused(version: tuple[str, str]) -> None:
    scripted = Scripted(version=version)
    with pytest.raises(UnsupportedServer):
        run(scripted, write())
    assert scripted.sent == ["SELECT"]


def test_the_loss_of_the_transaction_is_raised_though_the_operation_ignores_it() -> None:
    scripted = Scripted(("UPDATE", DEADLOCK), ("ROLLBACK", NO_SAVEPOINT))
    with pytest.raises(TransactionLost, match="Deadlock found"):
        run(scripted, write(ignoring=LocusMySQLError))
    assert scripted.sent[-2:] == ["ROLLBACK", "SET"]
