"""Errors about the configuration, the server or the tables name the cause and its remedy."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.dialect import Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.drivers.interface import ServerError
from locus_mysql.drivers.registry import find_driver
from locus_mysql.engine.asynchronous import AsyncEngine
from locus_mysql.engine.commands import Steps
from locus_mysql.engine.counters import Counters
from locus_mysql.engine.loops import run_awaited, run_blocking
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.engine.places import Place
from locus_mysql.engine.pool import Pool
from locus_mysql.engine.servers import ServerConnection
from locus_mysql.engine.sides import AwaitedSide, BlockingSide, Side
from locus_mysql.engine.synchronous import SyncEngine
from locus_mysql.engine.watch import SUSPICION_S
from locus_mysql.errors import (
    AuthenticationFailed,
    DatabaseMissing,
    InvalidInput,
    PrivilegeMissing,
    ReadOnlyServer,
    SchemaMismatch,
    SetupError,
    Unavailable,
    UnsupportedServer,
)

from ..thoroughness import FULL
from .conftest import EACH_WAY, EVERY_SIDE, ONE_OF_EACH, MakeConfig, OpenStore
from .drivers_under_test import ASYNC_DRIVERS
from .proxy import WireProxy, with_version

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]

PROCESSES = multiprocessing.get_context("forkserver")
DEADLINE_S = 180.0
SECRET = "s3cr3t-Pa55"

every_side = pytest.mark.parametrize("side", EVERY_SIDE)
each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


def tables(run_sql: RunSQL, database: str) -> list[str]:
    found = run_sql("SELECT table_name FROM information_schema.tables WHERE table_schema = %s ORDER BY 1", database)
    return [name for (name,) in found]


# Reaching the server


@every_side
async def test_a_missing_database_is_reported_with_the_statement_that_creates_it(
    open_store: OpenStore, run_sql: RunSQL, side: str
) -> None:
    name = f"locus_test_{secrets.token_hex(8)}-x"
    store = open_store(side, database=name)
    with pytest.raises(DatabaseMissing) as caught:
        await store.save("thread", {})
    (statement,) = [part for part in str(caught.value).split(": ") if part.startswith("CREATE DATABASE")]
    run_sql(statement.rstrip("."))
    await store.save("thread", {"a": 1})
    assert await store.load("thread") == {"a": 1}
    run_sql(f"DROP DATABASE `{name}`")


@pytest.fixture
def make_user(run_sql: RunSQL, database: str) -> Iterator[Callable[..., dict[str, str]]]:
    """Yield ``make_user("SELECT", …)``: options of a new user with these privileges on the test's schema."""
    made: list[str] = []

    def make(*privileges: str) -> dict[str, str]:
        name = f"locus_{secrets.token_hex(8)}"
        run_sql(f"CREATE USER {name} IDENTIFIED BY '{SECRET}'")
        made.append(name)
        if privileges:
            run_sql(f"GRANT {', '.join(privileges)} ON {database}.* TO {name}")
        return {"user": name, "password": SECRET}

    yield make
    for name in made:
        run_sql(f"DROP USER {name}")


@every_side
async def test_a_wrong_password_is_reported_without_showing_it(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str
) -> None:
    user = make_user("ALL")
    wrong = "wrong-" + SECRET
    with pytest.raises(AuthenticationFailed) as caught:
        await open_store(side, **{**user, "password": wrong}).save("thread", {})
    assert user["user"] in str(caught.value)
    shown = "".join(str(error) for error in (caught.value, caught.value.__cause__, caught.value.__context__))
    assert SECRET not in shown


@every_side
async def test_a_user_without_access_to_the_database_gets_an_error_that_explains_it(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str, database: str
) -> None:
    with pytest.raises(PrivilegeMissing, match=rf"GRANT SELECT, INSERT, UPDATE, DELETE ON `{database}`"):
        await open_store(side, **make_user()).save("thread", {})


@every_side
async def test_a_server_that_is_not_there_is_reported_at_once_with_its_address(
    open_store: OpenStore, side: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}") as caught:
        await open_store(side, host="127.0.0.1", port=port).save("thread", {})
    assert time.monotonic() - began < 20  # not retry_deadline_s
    assert ".." not in str(caught.value)


@one_of_each
async def test_an_unknown_host_name_is_reported_with_the_name(open_store: OpenStore, side: str) -> None:
    with pytest.raises(Unavailable, match=r"no-such-host\.invalid"):
        await open_store(side, host="no-such-host.invalid", port=3306).save("thread", {})


@one_of_each
async def test_a_socket_that_is_not_there_is_reported_with_its_path(open_store: OpenStore, side: str) -> None:
    with pytest.raises(Unavailable, match=r"/nowhere/mysql\.sock"):
        await open_store(side, unix_socket="/nowhere/mysql.sock").save("thread", {})


@every_side
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", "MariaDB 10.11.6"),
        ("11.4.2-MariaDB", "MariaDB 11.4.2"),
        ("5.7.44-log", "5.7.44"),
        ("8.0.18", "8.0.18"),
    ],
)
async def test_a_server_that_is_not_supported_is_refused_by_its_version(
    open_store: OpenStore, make_config: MakeConfig, server_dsn: str, side: str, version: str, expected: str
) -> None:
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with WireProxy(endpoint.host, endpoint.port, with_version(version)) as proxy:
        store = open_store(side, config=make_config(host="127.0.0.1", port=proxy.port))
        with pytest.raises(UnsupportedServer, match=r"8\.0\.19 or later") as caught:
            await store.save("thread", {})
        assert expected in str(caught.value)
        assert proxy.total.connections == 1


@one_of_each
async def test_the_first_server_that_answers_is_used(
    open_store: OpenStore, make_config: MakeConfig, server_dsn: str, side: str
) -> None:
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = listener.getsockname()[1]
    config = make_config()
    hosts = (f"127.0.0.1:{nobody}", f"{endpoint.host}:{endpoint.port}")
    store = open_store(side, config=make_config(hosts=hosts))
    await store.save("thread", {"a": 1})
    assert await open_store(side, config=config).load("thread") == {"a": 1}


# Privileges


@one_of_each
@pytest.mark.parametrize("ddl_mode", ["validate", "off", "create"])
async def test_four_privileges_are_enough_once_the_tables_exist(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str, ddl_mode: str
) -> None:
    await open_store(side).save("before", {"a": 0})
    user = make_user("SELECT", "INSERT", "UPDATE", "DELETE")
    store = open_store(side, ddl_mode=ddl_mode, keep_checkpoints=2, ttl_s=3600, **user)
    for turn in range(4):
        await store.save("thread", {"log": ["walrus " * 1000] * turn}, f"c{turn}", {"k": turn})
    await store.save("thread", {"log": ["walrus"]}, "c3")
    assert await store.load("thread") == {"log": ["walrus"]}
    assert await store.list_checkpoints("thread") == ["c3", "c2"]
    assert await store.copy_thread("thread", "copy")
    assert await store.search("walrus")
    assert await store.query_by_metadata("k", 2)
    assert (await store.get_disk_usage())["checkpoints"] == 5
    assert await store.history("thread")
    assert (await store.health_check())["ok"]
    assert await store.delete("copy")
    await store.vacuum(0)
    assert await store.forget_tenant() >= 0


@one_of_each
async def test_the_error_for_a_user_who_may_not_create_tables_names_the_required_privileges(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], run_sql: RunSQL, database: str, side: str
) -> None:
    user = make_user("SELECT", "INSERT", "UPDATE", "DELETE")
    with pytest.raises(PrivilegeMissing, match="CREATE"):
        await open_store(side, **user).save("thread", {})
    assert tables(run_sql, database) == []


@one_of_each
@pytest.mark.parametrize("missing", ["SELECT", "INSERT", "UPDATE", "DELETE"])
async def test_the_error_for_a_user_who_lacks_a_privilege_names_it(
    open_store: OpenStore,
    make_user: Callable[..., dict[str, str]],
    table_contents: Callable[[], Any],
    side: str,
    missing: str,
) -> None:
    await open_store(side).save("thread", {"a": 1}, "c1")
    before = table_contents()
    user = make_user(*({"SELECT", "INSERT", "UPDATE", "DELETE"} - {missing}))
    store = open_store(side, ddl_mode="off", **user)
    with pytest.raises(PrivilegeMissing, match=missing):
        await store.save("thread", {"a": 2}, "c1")
    assert table_contents() == before


# Tables


@one_of_each
async def test_validate_and_off_make_no_tables(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    for ddl_mode in ("validate", "off"):
        with pytest.raises(SchemaMismatch, match="locus_mysql schema"):
            await open_store(side, ddl_mode=ddl_mode).save("thread", {})
        assert tables(run_sql, database) == []


@one_of_each
async def test_a_table_that_is_missing_is_named_or_made(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    await open_store(side).save("thread", {})
    run_sql(f"DROP TABLE {database}.locus_store_checkpoints")
    with pytest.raises(SchemaMismatch, match="locus_store_checkpoints"):
        await open_store(side, ddl_mode="validate").save("thread", {})
    await open_store(side).save("thread", {"a": 1})
    assert tables(run_sql, database) == ["locus_store_checkpoints", "locus_store_ledger", "locus_store_threads"]


@one_of_each
async def test_tables_dropped_while_in_use_are_reported(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    store = open_store(side)
    await store.save("thread", {})
    run_sql(f"DROP TABLE {database}.locus_store_checkpoints")
    with pytest.raises(SchemaMismatch, match="locus_store_checkpoints"):
        await store.save("thread", {})


@one_of_each
@pytest.mark.parametrize("ddl_mode", ["create", "validate"])
@pytest.mark.parametrize("table", ["locus_store_threads", "locus_store_checkpoints"])
async def test_a_foreign_table_of_the_same_name_is_refused_and_left_alone(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str, ddl_mode: str, table: str
) -> None:
    run_sql(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, note TEXT) COMMENT='of the shop'")
    run_sql(f"INSERT INTO {database}.{table} VALUES (1, 'kept')")
    with pytest.raises(SchemaMismatch, match=f"{table}.*table_prefix"):
        await open_store(side, ddl_mode=ddl_mode).save("thread", {})
    assert tables(run_sql, database) == [table]
    assert run_sql(f"SELECT * FROM {database}.{table}") == ((1, "kept"),)
    await open_store(side, table_prefix="mine_").save("thread", {})


@one_of_each
async def test_a_foreign_table_is_reported_even_without_schema_checks(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    for table in ("locus_store_threads", "locus_store_checkpoints"):
        run_sql(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY)")
    store = open_store(side, ddl_mode="off")
    for call in (store.save("thread", {}), store.load("thread"), store.delete("thread")):
        with pytest.raises(SchemaMismatch, match="layout"):
            await call


@one_of_each
async def test_a_view_of_the_same_name_is_refused(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    run_sql(f"CREATE VIEW {database}.locus_store_threads AS SELECT 1 AS one")
    with pytest.raises(SchemaMismatch, match="locus_store_threads"):
        await open_store(side).save("thread", {})


@one_of_each
@pytest.mark.parametrize("ddl_mode", ["create", "validate"])
@pytest.mark.parametrize(("layout", "advice"), [(99, "Upgrade locus-mysql"), (0, "CHANGELOG")])
async def test_another_layout_is_refused_with_what_to_do(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str, ddl_mode: str, layout: int, advice: str
) -> None:
    store = open_store(side)
    await store.save("thread", {"a": 1})
    run_sql(f"ALTER TABLE {database}.locus_store_checkpoints COMMENT='locus-mysql layout {layout}, dicts'")
    with pytest.raises(SchemaMismatch, match=advice):
        await open_store(side, ddl_mode=ddl_mode).save("thread", {"a": 2})
    assert await store.load("thread") == {"a": 1}


@one_of_each
async def test_a_missing_full_text_index_is_reported_with_the_statement_that_adds_it(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    plain = open_store(side, search=False)
    await plain.save("thread", {"log": ["walrus"]})
    with pytest.raises(InvalidInput, match="search=True"):
        await plain.search("walrus")
    for ddl_mode in ("create", "validate"):
        with pytest.raises(SchemaMismatch, match="search=False") as caught:
            await open_store(side, ddl_mode=ddl_mode).save("thread", {})
    assert await plain.load("thread") == {"log": ["walrus"]}
    statement = str(caught.value)[str(caught.value).index("ALTER TABLE") :]
    run_sql(statement.replace("`locus_", f"`{database}`.`locus_").rstrip("."))
    searching = open_store(side)
    await searching.save("thread", {"log": ["walrus", "cabbage"]})
    assert await searching.search("cabbage")


@one_of_each
async def test_search_without_the_index_is_reported_even_without_schema_checks(
    open_store: OpenStore, side: str
) -> None:
    await open_store(side, search=False).save("thread", {})
    with pytest.raises(SchemaMismatch):
        await open_store(side, ddl_mode="off").search("walrus")


@one_of_each
async def test_the_printed_schema_equals_the_created_tables(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    for statement in CheckpointDialect("printed_", "dicts").schema.create():
        run_sql(statement.sql.replace("TABLE IF NOT EXISTS `", f"TABLE IF NOT EXISTS {database}.`"))
    store = open_store(side, table_prefix="printed_", ddl_mode="validate")
    await store.save("thread", {"a": 1})
    await open_store(side, table_prefix="made_").save("thread", {})
    made, printed = (
        run_sql(f"SHOW CREATE TABLE {database}.{prefix}store_checkpoints")[0][1].replace(prefix, "")
        for prefix in ("made_", "printed_")
    )
    assert made == printed


def save_first(config: MySQLConfig, name: str, start: Any) -> None:
    start.wait(DEADLINE_S)
    with SyncCheckpointStore(config) as store:
        store.save("thread", {"name": name}, name)


@pytest.mark.parametrize("driver", ["pymysql", "mysql-connector"])
def test_twenty_processes_that_start_at_once_on_an_empty_database_all_save(
    make_config: MakeConfig, run_sql: RunSQL, database: str, driver: str
) -> None:
    PROCESSES.set_forkserver_preload(["pytest", "pymysql", "mysql.connector", __name__])
    config = make_config(driver=driver)
    start = PROCESSES.Barrier(20)
    processes = [PROCESSES.Process(target=save_first, args=(config, f"p{n}", start)) for n in range(20)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE_S)
    assert [process.exitcode for process in processes] == [0] * 20
    with SyncCheckpointStore(config) as store:
        assert sorted(store.list_checkpoints("thread", 100)) == sorted(f"p{n}" for n in range(20))
        assert all(store.load("thread", f"p{n}") == {"name": f"p{n}"} for n in range(20))
    assert tables(run_sql, database) == ["locus_store_checkpoints", "locus_store_ledger", "locus_store_threads"]


# A server that accepts no writes: the tests' own server


@pytest.fixture
def read_only(own_sql: RunSQL) -> Iterator[Callable[[], None]]:
    yield lambda: own_sql("SET GLOBAL super_read_only = 1") and None
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")


@each_way
async def test_a_read_only_server_is_told_and_still_read(
    open_store: OpenStore, own_config: MakeConfig, read_only: Callable[[], None], side: str
) -> None:
    store = open_store(side, config=own_config())
    await store.save("thread", {"a": 1})
    read_only()
    began = time.monotonic()
    with pytest.raises(ReadOnlyServer, match="primary"):
        await store.save("thread", {"a": 2})
    with pytest.raises(ReadOnlyServer):
        await store.delete("thread")
    assert time.monotonic() - began < 20  # not retry_deadline_s
    assert await store.load("thread") == {"a": 1}
    assert (await store.health_check())["read_only"]


async def test_an_empty_read_only_server_is_told(
    open_store: OpenStore, own_config: MakeConfig, read_only: Callable[[], None]
) -> None:
    read_only()
    with pytest.raises(ReadOnlyServer):
        await open_store(config=own_config()).save("thread", {})


@pytest.fixture
def replica_and_primary(
    own_config: MakeConfig,
    own_sql: RunSQL,
    run_sql: RunSQL,
    server_dsn: str,
    read_only: Callable[[], None],
) -> Iterator[tuple[MySQLConfig, MySQLConfig]]:
    """Yield two configurations: a read-only server followed by a writable one, and the writable one alone."""
    replica = own_config()
    (primary, *_) = MySQLConfig(dsn=server_dsn).endpoints
    user, database = f"locus_{secrets.token_hex(8)}", replica.database
    for run in (own_sql, run_sql):
        run(f"CREATE USER {user} IDENTIFIED BY '{SECRET}'")
        run(f"GRANT ALL ON {database}.* TO {user}")
    run_sql(f"CREATE DATABASE {database}")
    alone = MySQLConfig(
        host=primary.host, port=primary.port, user=user, password=SECRET, database=database, driver="pymysql"
    )
    for one in (replica, alone):
        with SyncCheckpointStore(one.model_copy(update={"driver": "pymysql"})) as store:
            store.save("there", {"a": 0})
    read_only()
    hosts = (f"127.0.0.1:{replica.port}", f"{primary.host}:{primary.port}")
    yield MySQLConfig(hosts=hosts, user=user, password=SECRET, database=database), alone
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    for run in (own_sql, run_sql):
        run(f"DROP USER {user}")
    run_sql(f"DROP DATABASE {database}")


@one_of_each
async def test_of_several_servers_the_one_that_takes_writes_gets_the_save(
    open_store: OpenStore, replica_and_primary: tuple[MySQLConfig, MySQLConfig], side: str
) -> None:
    config, primary = replica_and_primary
    store = open_store(side, config=config)
    assert await store.exists("there")
    for turn in range(3):
        await store.save("thread", {"a": turn})
    assert await store.load("thread") == {"a": 2}
    assert len(await open_store("pymysql-sync", config=primary).list_checkpoints("thread")) == 3


@pytest.mark.parametrize(
    ("driver", "tasks"),
    itertools.product(ASYNC_DRIVERS, (2, 3, 8)) if FULL else [("mysql-connector", 2), ("pymysql", 3), ("asyncmy", 8)],
)
async def test_many_at_once_all_find_the_server_that_takes_writes(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig], driver: str, tasks: int
) -> None:
    config, _ = replica_and_primary
    options = {"driver": driver, "pool_size": tasks, "retry_deadline_s": 5.0}
    async with CheckpointStore(config.model_copy(update=options)) as store:
        await asyncio.gather(*(store.exists("there") for _ in range(tasks)))
        await asyncio.gather(*(store.save(f"thread {n}", {"n": n}) for n in range(tasks)))
        assert await store.count("thread *") == tasks


def two_are_refused(config: MySQLConfig, driver: str, side: Side) -> Steps[object]:
    """Return the port that a pool connects to after another server refused two concurrent users."""
    pool = Pool(config, find_driver(driver), side)
    places = [Place(), Place()]
    for place in places:
        yield from pool.borrow(place)
    for place in places:
        pool.give_back_after(place, ServerError(1290, "read only"))

    def port(connection: ServerConnection) -> Steps[object]:
        (found,) = yield from connection.execute((Statement("SELECT @@port"),))
        return found.rows[0][0]

    found = yield from pool.lend(port)
    yield from pool.close()
    return found


def test_two_refused_at_once_move_on_to_the_next_server_not_to_the_one_after(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig],
) -> None:
    config, primary = replica_and_primary
    assert run_blocking(two_are_refused(config, "pymysql", BlockingSide())) == primary.port


async def test_two_tasks_refused_at_once_move_on_to_the_next_server_too(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig],
) -> None:
    config, primary = replica_and_primary
    assert await run_awaited(two_are_refused(config, "mysql-connector", AwaitedSide())) == primary.port


@one_of_each
async def test_a_load_comes_from_the_server_that_takes_writes_though_a_replica_is_named_first(
    open_store: OpenStore, replica_and_primary: tuple[MySQLConfig, MySQLConfig], side: str
) -> None:
    config, primary = replica_and_primary
    await open_store("pymysql-sync", config=primary).save("there", {"a": 1}, "newest")
    store = open_store(side, config=config)
    assert await store.load("there") == {"a": 1}
    assert (await store.list_checkpoints("there"))[0] == "newest"
    assert not (await store.health_check())["read_only"]
    (replica, _) = config.endpoints
    alone = open_store(side, config=config.model_copy(update={"hosts": (str(replica),)}))
    assert await alone.load("there") == {"a": 0}


@one_of_each
async def test_a_load_never_comes_from_a_server_that_takes_no_writes_any_more(
    open_store: OpenStore,
    replica_and_primary: tuple[MySQLConfig, MySQLConfig],
    own_sql: RunSQL,
    read_only: Callable[[], None],
    side: str,
) -> None:
    config, primary = replica_and_primary
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    store = open_store(side, config=config)
    assert await store.load("there") == {"a": 0}
    read_only()
    await open_store("pymysql-sync", config=primary).save("there", {"a": 1})
    assert await store.load("there") == {"a": 1}


@pytest.mark.slow
@one_of_each
@pytest.mark.parametrize(
    ("missing", "error"),
    [("the database", DatabaseMissing), ("the user", AuthenticationFailed), ("the server", Unavailable)],
)
async def test_a_server_that_cannot_serve_is_passed_over(
    open_store: OpenStore,
    replica_and_primary: tuple[MySQLConfig, MySQLConfig],
    own_sql: RunSQL,
    side: str,
    missing: str,
    error: type[Exception],
) -> None:
    config, primary = replica_and_primary
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    first = config.hosts[0]
    if missing == "the database":
        own_sql(f"DROP DATABASE {config.database}")
    elif missing == "the user":
        own_sql(f"ALTER USER {config.user} ACCOUNT LOCK")
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            first = f"127.0.0.1:{listener.getsockname()[1]}"
    try:
        store = open_store(side, config=config.model_copy(update={"hosts": (first, config.hosts[1])}))
        await store.save("thread", {"a": 1})
        assert await open_store("pymysql-sync", config=primary).load("thread") == {"a": 1}
        only = open_store(side, config=config.model_copy(update={"hosts": (first, first)}))
        with pytest.raises(error, match=first):
            await only.load("thread")
    finally:
        own_sql(f"CREATE DATABASE IF NOT EXISTS {config.database}")


def sleeps() -> Operation[object]:
    """Run longer than a server may stay silent before it is probed."""
    (slept,) = yield Batch.of(Statement("SELECT SLEEP(%s)", (int(3 * SUSPICION_S),)))
    return slept.rows


@pytest.mark.slow
def test_a_slow_call_is_not_taken_for_a_frozen_server_though_another_takes_writes(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig], own_sql: RunSQL
) -> None:
    config, _ = replica_and_primary
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    counters = Counters()
    engine = SyncEngine(config.model_copy(update={"driver": "pymysql"}), counters)
    assert engine.run(sleeps()) == [(0,)]
    assert (counters.lost, counters.retries) == (0, 0)
    engine.close()


@pytest.mark.slow
async def test_a_slow_awaited_call_is_not_either(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig], own_sql: RunSQL
) -> None:
    config, _ = replica_and_primary
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    counters = Counters()
    engine = AsyncEngine(config.model_copy(update={"driver": "aiomysql"}), counters)
    assert await engine.run(sleeps()) == [(0,)]
    assert (counters.lost, counters.retries) == (0, 0)
    await engine.close()


@one_of_each
async def test_all_servers_read_only_is_told_at_the_deadline(
    open_store: OpenStore, own_config: MakeConfig, read_only: Callable[[], None], side: str
) -> None:
    config = own_config()
    await open_store(side, config=config).save("thread", {})
    read_only()
    here = f"127.0.0.1:{config.port}"
    store = open_store(side, config=own_config(hosts=(here, here), retry_deadline_s=0.5))
    with pytest.raises(ReadOnlyServer):
        await store.save("thread", {})


# Errors have one base class


async def test_a_setup_error_is_raised_again_by_the_next_call_until_it_is_mended(
    open_store: OpenStore, run_sql: RunSQL, database: str
) -> None:
    run_sql(f"CREATE TABLE {database}.locus_store_threads (id INT)")
    store = open_store()
    for _ in range(3):
        with pytest.raises(SetupError):
            await store.save("thread", {})
    run_sql(f"DROP TABLE {database}.locus_store_threads")
    await store.save("thread", {"a": 1})
    assert await store.load("thread") == {"a": 1}
