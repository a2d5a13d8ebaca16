"""Connections that break while the server carries out a packet, so that it fails to send the answers.

After the first such failure, ROW_COUNT() is -1 in the next statement of the packet. Each call is repeated,
and must return and store the same as without the break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pymysql
import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import LocusMySQLError
from locus_mysql.families.checkpoints.statements.tables import table_names
from locus_mysql.families.graphs.statements.tables import table_names as graph_tables
from locus_mysql.families.working.calls import Reply

from ..integration.conftest import MakeConfig
from ..integration.connecting import connect
from ..integration.interleavings.late import FAMILIES
from ..integration.interleavings.late.checkpoints import checkpoints_left
from ..integration.interleavings.late.graphs import replaced
from ..integration.interleavings.late.stores import Stores, Tables
from ..integration.interleavings.stage import BLOCKING, Process
from ..integration.proxy import WireProxy
from ..waiting import until
from .test_every_fault import connected

pytestmark = pytest.mark.slow

#: Every write of every family.
WRITES = [(family, name) for family, declared in FAMILIES.items() for name in declared.writes]

#: Those that find rows.
AFTER_OTHERS = [(family, name) for family, name in WRITES if FAMILIES[family].writes[name][0] is not None]


class Made:
    """A call that is made once its result is needed."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.finish = call


class Unstaged:
    """Stands in for a stage, and lets each call run from beginning to end.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._opened: list[Any] = []

    def store(self, kind: str = "store") -> Process:
        self._opened.append(BLOCKING[kind](self._config))
        stage: Any = self
        return Process(stage, self._opened[-1])

    def begin(self, title: str, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Made:
        return Made(partial(method, *args, **options))

    def afresh(self, method: str, *args: Any) -> Any:
        return getattr(self.store(), method)(*args)

    def close(self) -> None:
        for store in self._opened:
            store.close()


class Writer:
    """Makes one write again and again, with the same rows before it.

    Args:
        side: The process.
        raw: A connection that has the schema selected.
        family: The family.
        name: The write's name.
    """

    def __init__(self, side: Stores, raw: pymysql.Connection[Any], family: str, name: str) -> None:
        self._side = side
        self._family = FAMILIES[family]
        self._prepare, self._begin = self._family.writes[name]
        self._tables = Tables(side, self._family.prefix, raw)

    def prepare(self) -> None:
        self._tables.empty()
        self._side.begin_anew()
        if self._prepare is not None:
            self._prepare(self._side)

    def call(self) -> Any:
        try:
            return comparable(self._begin(self._side).finish())
        except LocusMySQLError as error:
            return type(error).__name__

    def left(self) -> Any:
        return self._family.left(self._side)


def comparable(result: Any) -> Any:
    """Return what is the same each time of a result: no times, and no random ids."""
    if isinstance(result, Reply):
        return [comparable(one) for one in result.results]
    if isinstance(result, Mapping):
        return sorted(repr(comparable(one)) for one in result.values())
    if isinstance(result, list):
        return [comparable(one) for one in result]
    for name in ("summary", "name", "url", "text", "added", "content"):
        if hasattr(result, name):
            return getattr(result, name)
    if isinstance(result, int) and result > 10**15:  # a revision, the server's clock in microseconds
        return "a revision"
    return result if isinstance(result, bool | int | str | bytes | None) else type(result).__name__


@pytest.fixture
def side(through_proxy: MakeConfig) -> Iterator[Stores]:
    """Yield a process whose server is behind the proxy."""
    stage: Any = Unstaged(through_proxy(driver="pymysql"))
    yield Stores(stage)
    stage.close()


@pytest.fixture
def raw(make_config: MakeConfig, database: str) -> Iterator[pymysql.Connection[Any]]:
    with connect(make_config(), database) as connection:
        yield connection


@pytest.mark.parametrize(("family", "name"), WRITES)
def test_a_call_whose_connection_breaks_while_a_packet_runs_returns_what_it_did(
    side: Stores, raw: pymysql.Connection[Any], proxy: WireProxy, family: str, name: str
) -> None:
    writer = Writer(side, raw, family, name)
    writer.prepare()
    with proxy.counting() as undisturbed:
        expected = writer.call()
    after = writer.left()
    for packet in range(1, undisturbed.commands + 1):
        writer.prepare()
        proxy.drop_while_running(packet)
        assert writer.call() == expected, packet
        assert writer.left() == after, packet


@pytest.mark.parametrize(("family", "name"), AFTER_OTHERS)
async def test_a_call_whose_connection_breaks_while_its_packet_waits_for_a_lock_returns_what_it_did(
    side: Stores,
    raw: pymysql.Connection[Any],
    make_config: MakeConfig,
    server_dsn: str,
    database: str,
    proxy: WireProxy,
    family: str,
    name: str,
) -> None:
    """The waiting statement can send its answer, so the batch gets further than in the test above."""
    writer = Writer(side, raw, family, name)
    writer.prepare()
    expected, after = writer.call(), writer.left()
    writer.prepare()
    with connect(make_config(), database) as blocker, connected(server_dsn) as observer, ThreadPoolExecutor() as pool:
        lock_every_row(blocker, database)
        calling = pool.submit(writer.call)
        await until(lambda: calling.done() or waiting(observer, database) == 1, "the call ends or waits")
        if not calling.done():
            proxy.drop_all()
            await until(lambda: waiting(observer, database) == 2, "the call is repeated, and waits too")
        blocker.rollback()
        assert calling.result() == expected
    assert writer.left() == after


async def test_a_copy_whose_connection_breaks_before_it_creates_the_thread_can_be_loaded(
    side: Stores, raw: pymysql.Connection[Any], server_dsn: str, database: str, proxy: WireProxy
) -> None:
    for number in range(3):
        side.store.save("source", {"said": [f"turn {number}", "word " * 1_000]}, f"c{number}")
    side.store.save("copy", {"said": ["what has expired"]})
    threads = table_names("locus_", "dicts")["threads"]
    with connected(server_dsn) as observer:
        with raw.cursor() as cursor:
            cursor.execute(f"UPDATE {threads} SET expires_at = '2000-01-01' WHERE thread_id = 'copy'")
        add_gate(raw, f"BEFORE DELETE ON {threads} FOR EACH ROW UPDATE gate SET passed = passed + 1")
        copying = partial(side.store.copy_thread, "source", "copy")
        assert await broken_at_gate(copying, raw, observer, database, proxy) is True
    copied = checkpoints_left(side)
    assert copied["copy"] == copied["source"]


async def test_a_replacing_save_whose_connection_breaks_before_it_is_recorded_is_recorded(
    side: Stores, raw: pymysql.Connection[Any], server_dsn: str, database: str, proxy: WireProxy
) -> None:
    def records() -> int:
        with raw.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {names['ledger']}")
            ((count,),) = cursor.fetchall()
        return int(count)

    names = graph_tables("locus_")
    side.saver.count()
    replaced(side, run_id="run").finish()
    takes_number = "IF NEW.last_seq <> OLD.last_seq THEN UPDATE gate SET passed = passed + 1; END IF"
    add_gate(raw, f"BEFORE UPDATE ON {names['threads']} FOR EACH ROW {takes_number}")
    before = records()
    with connected(server_dsn) as observer:
        await broken_at_gate(replaced(side, "nut", run_id="run").finish, raw, observer, database, proxy)
    assert records() == before + 1


def add_gate(connection: pymysql.Connection[Any], trigger: str) -> None:
    """Create a table with one row, and a trigger that updates it: while the row is locked, the call waits."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE gate (passed INT NOT NULL)")
        cursor.execute("INSERT INTO gate VALUES (0)")
        cursor.execute(f"CREATE TRIGGER at_gate {trigger}")


async def broken_at_gate(
    call: Callable[[], Any],
    blocker: pymysql.Connection[Any],
    observer: pymysql.Connection[Any],
    database: str,
    proxy: WireProxy,
) -> Any:
    """Return the result of a call whose connection breaks while it waits at the gate.

    The server sends the waiting statement's answer to the broken connection. The next answer is the first that
    it fails to send.
    """
    with ThreadPoolExecutor() as pool, blocker.cursor() as cursor:
        blocker.begin()
        cursor.execute("SELECT 1 FROM gate FOR UPDATE")
        calling = pool.submit(call)
        await until(lambda: waiting(observer, database) == 1, "the call waits")
        proxy.drop_all()
        await until(lambda: waiting(observer, database) == 2, "the call is repeated, and waits too")
        blocker.rollback()
        return calling.result()


def lock_every_row(connection: pymysql.Connection[Any], database: str) -> None:
    """Lock the rows of every table, but no gaps between them."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (database,))
        tables = [table for (table,) in cursor.fetchall()]
        connection.begin()
        for table in tables:
            cursor.execute(f"SELECT 1 FROM `{database}`.`{table}` FOR UPDATE")


def waiting(connection: pymysql.Connection[Any], database: str) -> int:
    """Return the number of transactions that wait for a row lock in the schema."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(DISTINCT w.requesting_engine_transaction_id) FROM performance_schema.data_lock_waits w"
            " JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id"
            " WHERE l.object_schema = %s",
            (database,),
        )
        ((count,),) = cursor.fetchall()
        return int(count)
