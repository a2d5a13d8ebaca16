"""Stores that write in a program's own transaction (`Database.using`), on connections of every library."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable
from typing import Any, NamedTuple

import aiomysql
import asyncmy
import mysql.connector
import mysql.connector.aio
import pymysql
import pytest
import sqlalchemy
from mysql.connector.constants import ClientFlag
from sqlalchemy.ext.asyncio import create_async_engine

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLCheckpointer,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointer,
    WorkingMemory,
)
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import (
    ConfigError,
    Conflict,
    LocusMySQLError,
    ReadOnlyServer,
    SchemaMismatch,
    TransactionLost,
    Unavailable,
)

from ...either_side import AnyStore
from ...waiting import until
from ..conftest import MakeConfig
from ..contract.samples import SAMPLES
from ..engines import LOCK_WAITS

RunSQL = Callable[..., tuple[Any, ...]]

FOUND_ROWS = 2

#: Settings under which statements of this package would fail, or store something else.
HOSTILE = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT', time_zone = '+05:30', sql_select_limit = 1",
    "SET sql_safe_updates = 1, sql_auto_is_null = 1, group_concat_max_len = 4, lc_messages = 'de_DE'",
    "SET NAMES latin1 COLLATE latin1_german1_ci",
)
SETTINGS = (
    "SELECT @@sql_mode, @@time_zone, @@sql_select_limit, @@sql_safe_updates, @@sql_auto_is_null, @@lc_messages,"
    " @@character_set_client, @@character_set_results, @@collation_connection, @@group_concat_max_len,"
    " @@optimizer_switch, @@cte_max_recursion_depth, @@autocommit"
)

#: Each character that a literal, or a character set, could lose.
STATE = {"text": 'it\'s "a\\b" 100 % ☃ ü', "step": 1}


class Lent:
    """A program's connection, whose methods are awaited whatever the library does.

    Args:
        given: What `Database.using` receives.
        raw: The connection of the client library.
    """

    def __init__(self, given: Any, raw: Any) -> None:
        self.given, self._raw = given, raw
        self.awaited = "aio" in type(raw).__module__ or "asyncmy" in type(raw).__module__

    async def sql(self, statement: str) -> list[Any]:
        """Run a statement, and return its rows."""
        cursor = self._raw.cursor()
        cursor = await cursor if isawaitable(cursor) else cursor
        entered = await cursor.__aenter__() if self.awaited else cursor
        await _done(entered.execute(statement))
        rows = await _done(entered.fetchall()) if entered.description else []
        await _done(entered.close())
        return list(rows)

    async def commit(self) -> None:
        await _done(self._raw.commit())

    async def rollback(self) -> None:
        await _done(self._raw.rollback())

    def store(self, database: Database, of: tuple[type, type] = (CheckpointStore, SyncCheckpointStore)) -> AnyStore:
        """Return a store that writes in the transaction."""
        return AnyStore(of[not self.awaited](database.using(self.given)))


async def _done(outcome: Any) -> Any:
    return await outcome if isawaitable(outcome) else outcome


def _address(config: MySQLConfig) -> dict[str, Any]:
    (endpoint,) = config.endpoints
    return {"host": endpoint.host, "port": endpoint.port, "user": config.user, "password": config.password_text}


async def _of_library(name: str, config: MySQLConfig) -> Any:
    address, database = _address(config), config.database
    match name:
        case "pymysql":
            return pymysql.connect(**address, database=database, client_flag=FOUND_ROWS)
        case "mysql-connector":
            return mysql.connector.connect(
                **address, database=database, use_pure=True, client_flags=[ClientFlag.FOUND_ROWS]
            )
        case "aiomysql":
            return await aiomysql.connect(**address, db=database, client_flag=FOUND_ROWS)
        case "asyncmy":
            return await asyncmy.connect(**address, database=database, client_flag=FOUND_ROWS)
        case _:
            return await mysql.connector.aio.connect(**address, database=database)


LIBRARIES = ("pymysql", "mysql-connector", "aiomysql", "asyncmy", "mysql-connector-aio")
SQLALCHEMY = ("sqlalchemy+pymysql", "sqlalchemy+mysqlconnector", "sqlalchemy+aiomysql", "sqlalchemy+asyncmy")


class Place(NamedTuple):
    """A database with a table of orders, and a way to connect to it.

    Args:
        database: The database, whose tables of plain dicts exist.
        lend: Opens a connection of a library.
        orders: Returns the ids of the committed orders.
    """

    database: Database
    lend: Callable[[str], Awaitable[Lent]]
    orders: Callable[[], list[int]]

    async def stored(self, thread: str = "t") -> Any:
        """Return the committed state of a thread."""
        return await AnyStore(CheckpointStore(self.database)).load(thread)


@pytest.fixture
async def place(make_config: MakeConfig, run_sql: RunSQL, database: str) -> AsyncIterator[Place]:
    config = make_config(driver="pymysql")
    run_sql(f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, note VARCHAR(99) NOT NULL DEFAULT '')")
    closing: list[Callable[[], Any]] = []

    async def lend(name: str) -> Lent:
        kind, _, library = name.partition("+")
        if not library:
            raw = await _of_library(kind, config)
            closing.append(raw.close)
            return Lent(raw, raw)
        url = sqlalchemy.URL.create(
            f"mysql+{library}",
            username=config.user,
            **{key: value for key, value in _address(config).items() if key != "user"},
            database=config.database,
        )
        if library in {"aiomysql", "asyncmy"}:
            engine = create_async_engine(url, isolation_level="READ COMMITTED")
            connection = await engine.connect()
            await connection.begin()
            closing.extend((engine.dispose, connection.invalidate))
            return Lent(connection, (await connection.get_raw_connection()).driver_connection)
        blocking = sqlalchemy.create_engine(url, isolation_level="READ COMMITTED")
        opened = blocking.connect()
        opened.begin()
        closing.extend((blocking.dispose, opened.invalidate))
        return Lent(opened, opened.connection.driver_connection)

    def orders() -> list[int]:
        return [row[0] for row in run_sql(f"SELECT id FROM {database}.orders ORDER BY id")]

    async with Database(config) as db:
        await CheckpointStore(db).load("t")  # creates the tables
        yield Place(db, lend, orders)
        for close in reversed(closing):
            with suppress(Exception):  # tests break connections on purpose
                await _done(close())


@pytest.mark.parametrize("library", [*LIBRARIES, *SQLALCHEMY])
async def test_a_step_and_the_order_that_it_placed_are_one_commit(place: Place, library: str) -> None:
    lent = await place.lend(library)
    for statement in HOSTILE:
        await lent.sql(statement)
    await lent.commit()
    settings = await lent.sql(SETTINGS)
    await lent.sql("INSERT INTO orders (id) VALUES (7)")
    store, notes = lent.store(place.database), lent.store(place.database, (MemoryStore, SyncMemoryStore))
    with pytest.raises(SchemaMismatch, match=r"would commit your transaction: run `locus-mysql schema`"):
        await notes.get(("n",), "k")
    first = await store.save("t", STATE, metadata={"kind": "first"})
    await store.save("t", {**STATE, "step": 2}, expected=first)
    with pytest.raises(Conflict):
        await store.save("t", {**STATE, "step": 3}, expected=first)
    assert await store.load("t") == {**STATE, "step": 2}
    assert [entry["metadata"] for entry in await store.history("t")] == [{}, {"kind": "first"}]
    assert await lent.sql(SETTINGS) == settings
    assert (place.orders(), await place.stored()) == ([], None)
    await lent.commit()
    assert (place.orders(), await place.stored()) == ([7], {**STATE, "step": 2})
    with pytest.raises(TransactionLost, match="Make one `using` for each transaction"):
        await store.delete("t")
    assert await lent.store(place.database).delete("t")
    await lent.rollback()
    assert await place.stored() == {**STATE, "step": 2}


@pytest.mark.parametrize("library", ["mysql-connector", "asyncmy"])
async def test_what_was_rolled_back_is_forgotten_by_the_same_store(place: Place, library: str) -> None:
    lent = await place.lend(library)
    await lent.sql(HOSTILE[0])
    store = lent.store(place.database)
    other = AnyStore(CheckpointStore(place.database))
    await other.save("t", {"step": 1})
    await lent.sql("SAVEPOINT earlier")
    await store.save("t", {"step": 2})
    await lent.sql("ROLLBACK TO SAVEPOINT earlier")
    assert await store.load("t") == {"step": 1}
    await store.save("t", {"step": 3})
    await lent.commit()
    assert await other.load("t") == {"step": 3}


async def test_a_using_of_sqlalchemy_ends_with_its_transaction(place: Place) -> None:
    url = (await place.lend("sqlalchemy+aiomysql")).given.engine.url
    engine = create_async_engine(url, isolation_level="READ COMMITTED", pool_size=1, max_overflow=0)
    async with engine.connect() as connection:
        with pytest.raises(ConfigError, match=r"its commit\(\) would do nothing"):
            await CheckpointStore(place.database.using(connection)).save("t", STATE)
        within = CheckpointStore(place.database.using(connection))
        async with connection.begin():
            await within.save("t", STATE)
        async with connection.begin():
            with pytest.raises(TransactionLost):
                await within.save("t", {"step": 2})
    async with engine.begin() as connection:
        late = CheckpointStore(place.database.using(connection))
        await late.save("t", {"step": 3})
    async with engine.begin() as other:  # another request, on the pool's only connection
        await other.execute(sqlalchemy.text("INSERT INTO orders (id) VALUES (7)"))
        for call in (late.save("t", {"step": 4}), late.load("t")):
            with pytest.raises(TransactionLost):
                await call
    await engine.dispose()
    assert (place.orders(), await place.stored()) == ([7], {"step": 3})


@pytest.mark.parametrize("library", ["pymysql", "mysql-connector-aio"])
async def test_all_stores_take_part_in_one_transaction(place: Place, library: str) -> None:
    lent = await place.lend(library)
    await lent.sql(HOSTILE[0])
    await lent.commit()
    samples = [sample for sample in SAMPLES.values() if sample.family != "working"]
    outside = {sample: sample.open(place.database, "async") for sample in samples}

    async def committed() -> list[list[int]]:
        return [await sample.steps(store, "t") for sample, store in outside.items()]

    for sample, store in outside.items():
        await sample.write(store, "t", 0)
    for end, expected in ((lent.rollback, [0]), (lent.commit, [0, 1, 2])):
        ours = place.database.using(lent.given)
        for sample in samples:
            store = sample.open(ours, "async" if lent.awaited else "sync")
            await sample.write(store, "t", 1)
            await sample.write(store, "t", 2)
            assert await sample.steps(store, "t") == [0, 1, 2]
        assert await committed() == [[0]] * len(samples)
        await end()
        assert await committed() == [expected] * len(samples)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("moment", ["between the writes", "before the commit"])
async def test_a_connection_that_is_killed_leaves_nothing(
    place: Place, library: str, moment: str, run_sql: RunSQL
) -> None:
    lent = await place.lend(library)
    await lent.sql(HOSTILE[0])
    ((number,),) = await lent.sql("SELECT CONNECTION_ID()")
    await lent.sql("INSERT INTO orders (id) VALUES (7)")
    store = lent.store(place.database)
    if moment == "before the commit":
        await store.save("t", STATE)
    run_sql(f"KILL {number}")
    with pytest.raises(TransactionLost if moment == "between the writes" else Exception):
        await (store.save("t", STATE) if moment == "between the writes" else lent.commit())
    with pytest.raises(TransactionLost):
        await store.load("t")
    assert (place.orders(), await place.stored()) == ([], None)


PROCESS = """
import sys, pymysql
from locus_mysql import Database, SyncCheckpointStore
db = Database(sys.argv[1], driver="pymysql")
(at,) = db.config.endpoints
lent = pymysql.connect(
    host=at.host, port=at.port, user=db.config.user, password=db.config.password_text, database=db.config.database
)
with lent.cursor() as cursor:
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    cursor.execute("INSERT INTO orders (id) VALUES (7)")
    SyncCheckpointStore(db.using(lent)).save("t", {"step": 1})
print(lent.thread_id(), flush=True)
sys.stdin.read()
"""


async def test_a_process_that_is_killed_before_its_commit_leaves_nothing(place: Place, run_sql: RunSQL) -> None:
    config = place.database.config
    (at,) = config.endpoints
    dsn = f"mysql://{config.user}:{config.password_text}@{at.host}:{at.port}/{config.database}"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROCESS, dsn, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    connection = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    left = "SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_id = %s"
    await until(lambda: run_sql(left, connection) == ((0,),), "The server notices that the process has ended")
    assert (place.orders(), await place.stored()) == ([], None)


async def test_a_deadlock_ends_the_transaction_and_is_not_repeated(place: Place) -> None:
    first, second = await place.lend("pymysql"), await place.lend("pymysql")
    for one in (first, second):
        await one.sql(HOSTILE[0])
    await AnyStore(CheckpointStore(place.database)).save("t", STATE)
    for number in range(100):  # InnoDB undoes the transaction that changed fewer rows
        await first.sql(f"INSERT INTO orders (id) VALUES ({number})")
    await first.store(place.database).save("t", {"step": 2})
    await second.sql("INSERT INTO orders (id) VALUES (1000)")
    failures: list[BaseException] = []

    def save() -> None:
        try:
            SyncCheckpointStore(place.database.using(second.given)).save("t", {"step": 3})
        except LocusMySQLError as error:
            failures.append(error)

    waiting = threading.Thread(target=save)
    waiting.start()
    await asyncio.to_thread(asyncio.run, first.sql("SELECT id FROM orders WHERE id = 1000 FOR UPDATE"))
    waiting.join()
    (failure,) = failures
    assert isinstance(failure, TransactionLost)
    assert "Deadlock" in str(failure)
    await first.commit()
    await second.commit()
    assert (place.orders(), await place.stored()) == ([*range(100)], {"step": 2})


async def test_a_wait_for_a_lock_that_ends_undoes_the_call_only(place: Place) -> None:
    holder, lent = await place.lend("pymysql"), await place.lend("aiomysql")
    for one in (holder, lent):
        await one.sql(HOSTILE[0])
        await one.sql("SET innodb_lock_wait_timeout = 1")
    await holder.store(place.database).save("t", STATE)
    await lent.sql("INSERT INTO orders (id) VALUES (7)")
    store = lent.store(place.database)
    with pytest.raises(Unavailable, match="the transaction is still open") as raised:
        await store.save("t", {"step": 2})
    assert not isinstance(raised.value, TransactionLost)
    await holder.rollback()
    await store.save("u", {"step": 3})
    await lent.commit()
    assert (place.orders(), await place.stored(), await place.stored("u")) == ([7], None, {"step": 3})


@pytest.mark.parametrize("library", ["aiomysql", "asyncmy", "mysql-connector-aio"])
async def test_a_cancelled_call_drops_the_connection(place: Place, library: str, run_sql: RunSQL) -> None:
    holder, lent = await place.lend("pymysql"), await place.lend(library)
    for one in (holder, lent):
        await one.sql(HOSTILE[0])
    await holder.store(place.database).save("t", STATE)
    await lent.sql("INSERT INTO orders (id) VALUES (7)")
    ((number,),) = await lent.sql("SELECT CONNECTION_ID()")
    store = lent.store(place.database)
    saving = asyncio.ensure_future(store.save("t", {"step": 2}))
    await until(lambda: run_sql(f"{LOCK_WAITS} ({number})"), "The save waits for the row of the thread")
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    with pytest.raises(TransactionLost):
        await store.load("t")
    await holder.rollback()
    assert (place.orders(), await place.stored()) == ([], None)


async def test_calls_of_several_tasks_wait_for_each_other(place: Place) -> None:
    lent = await place.lend("asyncmy")
    await lent.sql(HOSTILE[0])
    store = lent.store(place.database)
    await asyncio.gather(*(store.save(f"t{number}", {"n": number}) for number in range(5)))
    await lent.commit()
    assert [await place.stored(f"t{number}") for number in range(5)] == [{"n": number} for number in range(5)]


async def test_a_turn_around_the_transaction_guards_it(place: Place) -> None:
    lent = await place.lend("asyncmy")
    await lent.sql(HOSTILE[0])
    within, outside = CheckpointStore(place.database.using(lent.given)), CheckpointStore(place.database)
    async with outside.turn("t"):
        await within.save("t", STATE)
        await lent.commit()
    assert await place.stored() == STATE
    with pytest.raises(ConfigError, match="around the transaction"):
        within.turn("t")


async def test_what_cannot_hold_is_refused(place: Place, make_config: MakeConfig, run_sql: RunSQL) -> None:
    lent = await place.lend("pymysql")
    db, blocking = place.database, SyncCheckpointStore
    store = blocking(db.using(lent.given))
    with pytest.raises(ConfigError, match="isolation of the session is REPEATABLE-READ"):
        store.save("t", STATE)
    assert store.load("t") is None
    await lent.commit()
    await lent.sql(HOSTILE[0])
    await lent.sql("SET autocommit = 1")
    store = blocking(db.using(lent.given))
    with pytest.raises(ConfigError, match="no transaction open, and autocommit is on"):
        store.save("t", STATE)
    await lent.sql("START TRANSACTION")
    store.save("t", STATE)
    await lent.rollback()
    assert await place.stored() is None
    with pytest.raises(ConfigError, match="CheckpointStore is asynchronous, and the connection blocks: use Sync"):
        CheckpointStore(db.using(lent.given))
    with pytest.raises(ConfigError, match="SyncCheckpointStore blocks, and the connection is asynchronous"):
        blocking(db.using((await place.lend("asyncmy")).given))
    with pytest.raises(ConfigError, match="Working memory writes in transactions of its own"):
        WorkingMemory("s", db.using(lent.given))
    with pytest.raises(ConfigError, match="on_conflict='raise' does not work"):
        SyncMySQLCheckpointer(db.using(lent.given), on_conflict="raise")
    with pytest.raises(ConfigError, match=r"builtins.str is no connection"):
        db.using("mysql://user@host/app")
    await lent.sql("USE mysql")
    with pytest.raises(ConfigError, match="The database of the connection is mysql"):
        blocking(db.using(lent.given)).load("t")
    await lent.sql(f"USE {db.config.database}")
    await lent.sql("START TRANSACTION")
    with pytest.raises(ReadOnlyServer, match="read_only"):
        blocking(Database(make_config(driver="pymysql", read_only=True)).using(lent.given)).save("t", STATE)
    assert MySQLCheckpointer(db) is not None  # the Database itself is as before
