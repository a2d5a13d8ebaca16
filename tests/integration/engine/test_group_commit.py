"""Calls that wait for a connection share a packet and a commit, and each keeps its own outcome."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.group_commit import MAX_WRITES
from locus_mysql.engine.logs import Counters
from locus_mysql.engine.operation import Batch, Duplicate, Operation, Outdated
from locus_mysql.errors import PoolTimeout

from ..conftest import EACH_WAY, EVERY_SIDE, MakeConfig
from ..connecting import connect

RunSQL = Callable[..., tuple[Any, ...]]

#: Maximum time that a test waits for anything, in seconds.
SOON_S = 30.0

GUARD = Statement("SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)")


class Crowd:
    """Runs operations at the same time, in tasks of an event loop or in threads.

    Args:
        side: The driver, and ``async`` or ``sync``.
        config: The options.
    """

    def __init__(self, side: str, config: MySQLConfig) -> None:
        self.awaited = side.endswith("-async")
        self.counters = Counters()
        self.engine: Any = (AsyncEngine if self.awaited else SyncEngine)(config, self.counters)
        self.threads = ThreadPoolExecutor(24)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def begin(self, operation: Operation[Any]) -> Future[Any]:
        """Start an operation."""
        if self.awaited:
            return asyncio.run_coroutine_threadsafe(self.engine.run(operation), self.loop)
        return self.threads.submit(self.engine.run, operation)

    def run(self, operation: Operation[Any]) -> Any:
        """Run an operation to its end."""
        return self.begin(operation).result(SOON_S)

    def behind(self, first: Operation[Any], *others: Operation[Any]) -> list[Future[Any]]:
        """Start an operation, which takes the only connection, and then others, one after another, which wait."""
        begun = [self.begin(first)]
        self.wait_until(lambda: self.state.in_use == 1)
        for number, other in enumerate(others):
            begun.append(self.begin(other))
            self.wait_until(lambda number=number: self.state.waiting == number + 1)  # type: ignore[misc]
        return begun

    @property
    def state(self) -> Any:
        return sum(self.engine.pools()[1:], *self.engine.pools()[:1])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SOON_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.005)

    def close(self) -> None:
        if self.awaited:
            asyncio.run_coroutine_threadsafe(self.engine.close(), self.loop).result(SOON_S)
        else:
            self.engine.close()
        self.threads.shutdown()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(SOON_S)
        self.loop.close()


def sleeping(seconds: float) -> Operation[None]:
    """Keep a connection for some time."""
    yield Batch.of(Statement(f"SELECT SLEEP({seconds})"))


def write(key: str, *steps: Statement, size: int = 0) -> Operation[Any]:
    """Insert a row; return what the batch itself read, and the row that showed an earlier attempt."""
    token = os.urandom(16)
    echo = Statement("SELECT %s", (key,))
    results = yield Batch.of(
        Statement("INSERT INTO rows_written VALUES (%s, %s, %s)", (key, token, "x" * size)),
        steps,
        echo,
        outcome_query=Statement("SELECT k FROM rows_written WHERE token = %s", (token,)),
        lock=("rows_written", key),
    )
    if results.earlier_attempt is not None:
        return results.earlier_attempt[0]
    assert results[0].affected == 1
    return results.of(echo).rows[0][0]


def catching(operation: Operation[Any]) -> Operation[Any]:
    """Return the error of a batch that was undone."""
    try:
        return (yield from operation)
    except (Duplicate, Outdated) as error:
        return type(error).__name__


@pytest.fixture
def rows(run_sql: RunSQL, database: str) -> Callable[[], list[str]]:
    """Return a function that returns the keys of all rows."""
    run_sql(
        f"CREATE TABLE {database}.rows_written (k VARCHAR(40) COLLATE utf8mb4_bin PRIMARY KEY, "
        "token BINARY(16) NOT NULL UNIQUE, filling MEDIUMTEXT)"
    )
    return lambda: [key for (key,) in run_sql(f"SELECT k FROM {database}.rows_written ORDER BY k")]


@pytest.fixture
def crowd(make_config: MakeConfig, rows: object) -> Iterator[Callable[..., Crowd]]:
    """Return ``crowd(side, **options)``; the pool has one connection, unless the options say otherwise."""
    made = []

    def make(side: str, **options: Any) -> Crowd:
        given = {"driver": side.rpartition("-")[0], "pool_size": 1, **options}
        made.append(Crowd(side, make_config(**given)))
        made[-1].run(sleeping(0))  # opens the connection
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("side", EVERY_SIDE)
def test_calls_that_wait_share_one_packet(
    side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    many = crowd(side)
    begun = many.behind(sleeping(0.5), *(write(f"row {n}") for n in range(MAX_WRITES)))
    before = many.counters.total.round_trips
    assert [one.result(SOON_S) for one in begun[1:]] == [f"row {n}" for n in range(MAX_WRITES)]
    assert rows() == [f"row {n}" for n in range(MAX_WRITES)]
    many.run(sleeping(0))
    assert many.counters.total.round_trips - before == 3, "that of the sleep, one of all writes, and the last one"


@pytest.mark.parametrize("side", EACH_WAY)
def test_calls_that_do_not_wait_are_sent_alone(side: str, crowd: Callable[..., Crowd]) -> None:
    many = crowd(side, pool_size=4)
    while many.counters.opened < 4:
        for one in [many.begin(sleeping(0.2)) for _ in range(4)]:
            one.result(SOON_S)
    before = many.counters.total.round_trips
    begun = [many.begin(write(f"row {n}", Statement("SELECT SLEEP(0.2)"))) for n in range(4)]
    assert [one.result(SOON_S) for one in begun] == [f"row {n}" for n in range(4)]
    assert many.counters.total.round_trips - before == 4


@pytest.mark.parametrize("side", EACH_WAY)
def test_without_pipeline_calls_are_sent_alone(side: str, crowd: Callable[..., Crowd]) -> None:
    many = crowd(side, pipeline=False)
    begun = many.behind(sleeping(0.5), *(write(f"row {n}") for n in range(3)))
    before = many.counters.total.round_trips
    assert [one.result(SOON_S) for one in begun[1:]] == ["row 0", "row 1", "row 2"]
    many.run(sleeping(0))
    assert many.counters.total.round_trips - before == 1 + 3 * 4 + 1


@pytest.mark.parametrize("side", EVERY_SIDE)
def test_each_call_keeps_its_outcome(side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]) -> None:
    """A duplicate, a guard that fails and an error of the server undo nothing of their neighbours."""
    many = crowd(side)
    many.run(write("taken"))
    failing = Statement("UPDATE rows_written SET filling = 1 WHERE k = 'none'"), GUARD
    begun = many.behind(
        sleeping(0.5),
        catching(write("a")),
        catching(write("taken")),
        catching(write("b")),
        catching(write("undone", *failing)),
        catching(write("c", Statement("INSERT INTO no_table VALUES (1)"))),
        catching(write("d")),
    )
    outcomes = [one.exception(SOON_S) or one.result() for one in begun[1:]]
    assert outcomes[:4] + outcomes[5:] == ["a", "Duplicate", "b", "Outdated", "d"]
    assert "no_table" in str(outcomes[4])
    assert rows() == ["a", "b", "d", "taken"]


@pytest.mark.parametrize("driver", ["mysql-connector", "pymysql"])
@pytest.mark.parametrize("cancelled", [0, 2])
def test_a_cancelled_call_takes_nothing_from_the_others(
    driver: str, cancelled: int, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    """The first call sends the packet; the others wait for it. Nothing may be repeated."""
    many = crowd(f"{driver}-async", retry_deadline_s=0)
    begun = many.behind(sleeping(0.3), *(write(f"row {n}", Statement("DO SLEEP(0.2)")) for n in range(4)))
    begun[0].result(SOON_S)
    before = many.counters.opened
    time.sleep(0.1)
    begun[1 + cancelled].cancel()
    outcomes = [one.result(SOON_S) for number, one in enumerate(begun[1:]) if number != cancelled]
    assert outcomes == [f"row {n}" for n in range(4) if n != cancelled]
    with pytest.raises(CancelledError):
        begun[1 + cancelled].result(SOON_S)
    assert rows() == [f"row {n}" for n in range(4)]
    many.wait_until(lambda: many.state.in_use == 0)
    assert many.counters.opened == before, "the connection was not dropped"


def test_random_cancellations_leave_the_pool_whole_and_each_answer_true(
    crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    source = random.Random(7)
    many = crowd("mysql-connector-async", pool_size=2, retry_deadline_s=0)
    pauses = (Statement("DO SLEEP(0.01)"), Statement("DO SLEEP(0.05)"))
    begun = {f"row {n}": many.begin(write(f"row {n}", source.choice(pauses))) for n in range(80)}
    for key in source.sample(sorted(begun), 40):
        time.sleep(source.uniform(0, 0.03))
        begun[key].cancel()
    answered = []
    for key, one in begun.items():
        with suppress(CancelledError):
            answered.append(one.result(SOON_S))
            assert answered[-1] == key
    assert set(answered) <= set(rows())
    assert len(answered) >= 40
    many.wait_until(lambda: (many.state.in_use, many.state.waiting) == (0, 0))
    assert many.counters.opened <= 2 + 40, "only a call that is alone in its packet drops its connection"


@pytest.mark.parametrize("side", EACH_WAY)
def test_a_call_waits_for_a_connection_only_as_long_as_it_may(
    side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    many = crowd(side, pool_timeout_s=0.5)
    begun = many.behind(sleeping(1.5), write("a"), write("b"))
    for one in begun[1:]:
        with pytest.raises(PoolTimeout):
            one.result(SOON_S)
    begun[0].result(SOON_S)
    assert rows() == []


@pytest.mark.parametrize("side", EACH_WAY)
def test_the_wait_for_a_connection_ends_when_another_call_takes_the_batch(
    side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    many = crowd(side, pool_timeout_s=0.8)
    begun = many.behind(sleeping(0.4), *(write(f"row {n}", Statement("DO SLEEP(0.4)")) for n in range(4)))
    assert [one.result(SOON_S) for one in begun[1:]] == [f"row {n}" for n in range(4)]
    assert rows() == [f"row {n}" for n in range(4)]


@pytest.mark.parametrize("side", EACH_WAY)
def test_a_row_that_another_session_writes_delays_the_packet(
    side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    many, other = crowd(side), crowd(side)
    brief = Statement("SELECT SLEEP(0.6)")
    holding = other.begin(write("b", brief, brief))
    time.sleep(0.2)
    begun = many.behind(sleeping(0.3), *(catching(write(key)) for key in ("a", "b", "c")))
    assert [one.result(SOON_S) for one in begun[1:]] == ["a", "Duplicate", "c"]
    assert holding.result(SOON_S) == "b"
    assert rows() == ["a", "b", "c"]


def ended_waits(run_sql: RunSQL, database: str) -> int:
    """Return the number of waits for locks that the server has ended in the sessions of a schema."""
    errors = "performance_schema.events_errors_summary_by_thread_by_error"
    ((number,),) = run_sql(
        f"SELECT SUM(sum_error_raised) FROM {errors} JOIN performance_schema.threads USING (thread_id)"
        " WHERE processlist_db = %s AND error_number = 1205",
        database,
    )
    return int(number or 0)


def waiting(run_sql: RunSQL, database: str) -> int:
    """Return the number of sessions of a schema that wait for a lock, by the limit of a call, not that of a packet."""
    waits = (
        "SELECT requesting_thread_id AS thread_id, 'innodb_lock_wait_timeout' AS variable_name"
        " FROM performance_schema.data_lock_waits UNION SELECT owner_thread_id, 'lock_wait_timeout'"
        " FROM performance_schema.metadata_locks WHERE lock_status = 'PENDING'"
    )
    ((number,),) = run_sql(
        f"SELECT COUNT(*) FROM ({waits}) AS w JOIN performance_schema.threads USING (thread_id)"
        " JOIN performance_schema.variables_by_thread USING (thread_id, variable_name)"
        " WHERE processlist_db = %s AND variable_value > 1",
        database,
    )
    return int(number)


@pytest.mark.parametrize("locked", [("b",), ("a", "b", "c", "d", "f")], ids=["one", "most"])
@pytest.mark.parametrize("side", EACH_WAY)
def test_rows_that_are_locked_for_long_delay_the_others_by_seconds_at_most(
    side: str,
    locked: tuple[str, ...],
    crowd: Callable[..., Crowd],
    rows: Callable[[], list[str]],
    make_config: MakeConfig,
    run_sql: RunSQL,
    database: str,
) -> None:
    """Nor are they ended early themselves: the limit of the packet is not theirs."""
    many = crowd(side, pool_size=7, retry_deadline_s=0)
    with connect(make_config(), database, autocommit=False) as holder, holder.cursor() as cursor:
        for key in locked:
            cursor.execute("INSERT INTO rows_written VALUES (%s, %s, '')", (key, os.urandom(16)))
        for opened in [many.begin(sleeping(0.5)) for _ in range(7)]:  # logins can take longer than what follows
            opened.result(SOON_S)
        for _ in range(6):  # so that one connection is free
            many.begin(sleeping(0.8))
        many.wait_until(lambda: many.state.in_use == 6)
        begun = many.begin(sleeping(0.6))
        many.wait_until(lambda: many.state.in_use == 7)
        writes = {key: many.begin(catching(write(key))) for key in "abcdef"}
        begun.result(SOON_S)
        free = [key for key in "abcdef" if key not in locked]
        assert [writes[key].result(SOON_S) for key in free] == free
        assert ended_waits(run_sql, database) <= 2, "the others wait for each locked row"
        many.wait_until(lambda: waiting(run_sql, database) == len(locked))
        assert not any(writes[key].done() for key in locked)
        holder.commit()
        assert [writes[key].result(SOON_S) for key in locked] == ["Duplicate"] * len(locked)
    assert rows() == list("abcdef")


@pytest.mark.parametrize("side", EACH_WAY)
def test_a_locked_table_delays_only_the_writes_to_it(
    side: str,
    crowd: Callable[..., Crowd],
    rows: Callable[[], list[str]],
    make_config: MakeConfig,
    run_sql: RunSQL,
    database: str,
) -> None:
    """As by ALTER TABLE, for which `lock_wait_timeout` counts."""
    run_sql(f"CREATE TABLE {database}.locked_table (n INT)")
    many = crowd(side, pool_size=2)
    many.begin(sleeping(0.6))
    many.wait_until(lambda: many.state.in_use == 1)
    with connect(make_config(), database) as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES locked_table WRITE")
        first = many.begin(sleeping(0.4))
        many.wait_until(lambda: many.state.in_use == 2)
        insert = Statement("INSERT INTO locked_table VALUES (1)")
        begun = [many.begin(write(key, *([insert] if key == "b" else []))) for key in "abc"]
        first.result(SOON_S)
        assert [begun[0].result(SOON_S), begun[2].result(SOON_S)] == ["a", "c"]
        assert ended_waits(run_sql, database) <= 1, "each write waits for the table"
        many.wait_until(lambda: waiting(run_sql, database) == 1)
        assert not begun[1].done()
        cursor.execute("UNLOCK TABLES")
        assert begun[1].result(SOON_S) == "b"
    assert rows() == ["a", "b", "c"]


@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure"])
@pytest.mark.parametrize("side", EACH_WAY)
def test_a_session_keeps_its_own_limits_of_waits(
    side: str, fails: bool, crowd: Callable[..., Crowd], rows: Callable[[], list[str]]
) -> None:
    many = crowd(side)

    def limits(*first: Statement) -> Operation[Any]:
        query = Statement("SELECT @@innodb_lock_wait_timeout, @@lock_wait_timeout")
        return (yield Batch((*first, query), atomic=False)).of(query).rows[0]

    many.run(limits(Statement("SET innodb_lock_wait_timeout = 7, lock_wait_timeout = 77")))
    begun = many.behind(sleeping(0.3), catching(write("a")), catching(write("a" if fails else "b")))
    assert [one.result(SOON_S) for one in begun[1:]] == ["a", "Duplicate" if fails else "b"]
    assert tuple(many.run(limits())) == (7, 77)


@pytest.mark.parametrize("side", EACH_WAY)
def test_processes_that_write_the_same_rows_in_groups_do_not_disturb_each_other(
    side: str, crowd: Callable[..., Crowd], rows: Callable[[], list[str]], run_sql: RunSQL, database: str
) -> None:
    run_sql(f"CREATE TABLE {database}.counted (k INT PRIMARY KEY, n INT NOT NULL)")
    run_sql(f"INSERT INTO {database}.counted VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)")
    many = [crowd(side, pool_size=2) for _ in range(2)]

    def add(k: int) -> Operation[Any]:
        token = os.urandom(16)
        raised = Statement("UPDATE counted SET n = n + 1 WHERE k = %s", (k,))
        insert = Statement("INSERT INTO rows_written VALUES (%s, %s, '')", (token.hex(), token))
        outcome_query = Statement("SELECT k FROM rows_written WHERE token = %s", (token,))
        yield Batch.of(raised, insert, outcome_query=outcome_query, lock=("counted", str(k)))

    source = random.Random(3)
    begun = [one.begin(add(source.randrange(5))) for _ in range(100) for one in many]
    for call in begun:
        call.result(SOON_S)
    ((total,),) = run_sql(f"SELECT SUM(n) FROM {database}.counted")
    assert total == len(rows()) == len(begun)
