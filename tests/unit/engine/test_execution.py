"""Execution of operations on both sides: statements sent, repeated and rolled back; without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.dialect.schema import Schema, Table
from locus_mysql.dialect.server_roles import (
    MEMBERS,
    VIEW,
    WRITES,
)
from locus_mysql.dialect.variants import NO_TABLE_YET
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError, register_driver
from locus_mysql.engine.bootstrap import VERSION
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.group_commit import BEGIN, COMMIT
from locus_mysql.engine.logs import Counters
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import SchemaMismatch, SetupError

from .scripted import Driver, result_of

SINGLE = MySQLConfig(host="a", driver="scripted", retry_deadline_s=60)
SELECT, INSERT, FIND_OUTCOME = Statement("SELECT 1"), Statement("INSERT INTO t VALUES (1)"), Statement("SELECT outcome")
PAIR = Batch.of(INSERT, SELECT, outcome_query=FIND_OUTCOME)
SENT = (BEGIN, INSERT, SELECT, COMMIT)
TABLES = Schema("agents", 3, (Table("t", "(a INT)"),))
LOST = ConnectionLost("It gives no answer.")
DUPLICATE = ServerError(1062, "Duplicate entry 'c' for key 't.PRIMARY'")

BOTH = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Engine:
    """An engine of one side on a scripted driver: each statement has its answers in order."""

    def __init__(self, awaited: bool, config: MySQLConfig = SINGLE, **script: Any) -> None:
        self.script = script
        self.driver: Any = Driver(self.answer)
        register_driver("scripted", self.driver)
        self.counters = Counters()
        self.engine: Any = (AsyncEngine if awaited else SyncEngine)(config, self.counters)

    def answer(self, endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        for name, answers in self.script.items():
            if answers and any(name in one.sql for one in statements):
                answer = answers.pop(0)
                if isinstance(answer, ConnectionLost):
                    self.driver.opened[-1].dead = True
                if isinstance(answer, BaseException):
                    return answer
        return [self.of(endpoint, one) for one in statements]

    def of(self, endpoint: Endpoint, statement: Statement) -> Result:
        rows: dict[Statement, tuple[Any, ...]] = {
            SELECT: ((7,),),
            WRITES: ((int(endpoint.host != "a"),),),
            MEMBERS: (),
            VIEW: (),
            VERSION: (("9.7.4",),),
        }
        return Result(rows.get(statement, ()))

    async def run(self, operation: Any, *schema: Any) -> Any:
        return await result_of(self.engine.run(operation, *schema))

    async def close(self) -> None:
        await result_of(self.engine.close())

    @property
    def sent(self) -> list[tuple[Statement, ...]]:
        return [statements for _, statements in self.driver.asked]


def once(batch: Batch) -> Operation[Any]:
    """An operation of one batch; returns its results."""
    return (yield batch)


@BOTH
async def test_a_transaction_that_cannot_be_undone_ends_with_its_connection(awaited: bool) -> None:
    engine = Engine(awaited, INSERT=[DUPLICATE], ROLLBACK=[ServerError(1064, "syntax")])
    with pytest.raises(SetupError, match="1062"):
        await engine.run(once(PAIR))
    assert engine.driver.opened[0].ended == "aborted"
    engine = Engine(awaited)
    engine.script["INSERT"] = [DUPLICATE]
    answer = engine.driver.answers

    def closing(endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        if INSERT in statements:
            engine.driver.opened[-1].closed = True  # by the server, with its refusal
        return answer(endpoint, statements)

    engine.driver.answers = closing
    with pytest.raises(SetupError, match="1062"):
        await engine.run(once(PAIR))
    assert engine.sent == [SENT]


@BOTH
async def test_each_batch_looks_for_its_own_first_attempt(awaited: bool) -> None:
    engine = Engine(awaited, INSERT=[LOST, DUPLICATE])

    def twice() -> Operation[None]:
        yield PAIR
        engine.script["INSERT"] = [DUPLICATE]
        yield PAIR

    await engine.run(twice())
    assert engine.sent.count((FIND_OUTCOME,)) == 4
    assert engine.sent.count(SENT) == 5


@BOTH
async def test_a_table_that_another_session_of_oceanbase_is_creating_is_waited_for(awaited: bool) -> None:
    missing = ServerError(NO_TABLE_YET, "Table 'app.t' doesn't exist")
    engine = Engine(awaited, INSERT=[missing, None, missing, None, missing])
    for _ in range(2):  # the first call of the tables, and a later one
        assert len(await engine.run(once(PAIR), TABLES)) == 2
    with pytest.raises(SchemaMismatch):
        await engine.run(once(PAIR))  # of tables that it does not create
    assert engine.counters.retries == 2
