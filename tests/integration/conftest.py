"""Fixtures of all integration tests: a real MySQL server and a separate schema for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import pytest

from ci.local_server import LocalServer
from locus_mysql import (
    CheckpointStore,
    MySQLBackend,
    SyncCheckpointStore,
    SyncMySQLBackend,
)
from locus_mysql.config import MySQLConfig
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.records import ledger

from ..either_side import AnyStore
from ..thoroughness import FULL
from .commands import run, succeed  # noqa: F401 - fixtures
from .connecting import connect
from .drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS
from .engines import left_out_because, run_statement
from .families.toys import ToyFamily
from .kept_schemas import KeptSchemas
from .proxy import WireProxy
from .side_rotation import rotated

MakeConfig: TypeAlias = Callable[..., MySQLConfig]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run all tests that use the durable server in one process, as each such server takes 600 MB of memory.

    The same holds for tests that share a filled schema. pytest-xdist reads the mark before
    `pytest_collection_modifyitems` below runs, so it is added here.
    """
    for shared in ("own_server", "filled_pages"):
        if shared in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(shared))


@pytest.hookimpl(trylast=True)  # after -k and -m: a test whose other sides they deselect is kept
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In short runs, select one side for each test of several sides. Run groups first, and then slow tests.

    A group runs in one process, and may take longer than any test. So no process still runs a group or a slow test
    when all others have finished.
    """
    here = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    frameworks = [item for item in here if "integrations" in item.path.parts]
    if not FULL and (left_out := rotated(here, ONE_OF_EACH, EACH_WAY) | rotated(frameworks, EVERY_ASYNC, EVERY_SYNC)):
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]
    if left_out := [item for item in items if left_out_because(item.nodeid, getattr(item, "fixturenames", ()))]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("xdist_group", "slow")])


@pytest.fixture(scope="session")
def server_dsn() -> str:
    """Return the DSN of the test server. Its user may create schemas and users."""
    dsn = os.environ.get("LOCUS_MYSQL_TEST_DSN")
    if not dsn:
        pytest.fail("No MySQL server to test on: run ci/test or set LOCUS_MYSQL_TEST_DSN.", pytrace=False)
    return dsn


@pytest.fixture(scope="session")
def server(server_dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """Yield an administrator's connection, with which tests prepare and check data."""
    connection = connect(MySQLConfig(dsn=server_dsn))
    yield connection
    connection.close()


@pytest.fixture
def run_sql(server: pymysql.Connection[Any]) -> Callable[..., tuple[Any, ...]]:
    """Return ``run_sql(sql, *params)``, which runs one statement as the administrator and returns its rows."""

    return partial(run_statement, server)


@pytest.fixture
def without_keys(run_sql: Callable[..., object]) -> Any:
    """Allow changes of rows that other rows refer to."""
    run_sql("SET SESSION foreign_key_checks = 0")
    yield
    run_sql("SET SESSION foreign_key_checks = 1")


@pytest.fixture(scope="session")
def kept_schemas(server_dsn: str, server: pymysql.Connection[Any]) -> Iterator[KeptSchemas]:
    """Yield the reusable schemas for tests marked ``kept_tables``."""
    kept = KeptSchemas(MySQLConfig(dsn=server_dsn), server)
    yield kept
    kept.drop()


@pytest.fixture
def database(request: pytest.FixtureRequest, run_sql: Callable[..., object]) -> Iterator[str]:
    """Yield the name of the test's schema: new, or with empty tables of the families in its ``kept_tables`` mark."""
    marker = request.node.get_closest_marker("kept_tables")
    if marker is None or not marker.args:
        name = f"locus_test_{secrets.token_hex(8)}"
        run_sql(f"CREATE DATABASE {name}")
        yield name
        run_sql(f"DROP DATABASE {name}")
        return
    kept: KeptSchemas = request.getfixturevalue("kept_schemas")
    name = kept.lend(marker.args)
    yield name
    kept.take_back(name, marker.args)


@pytest.fixture
def make_config(server_dsn: str, database: str) -> MakeConfig:
    """Return ``make_config(**options)``: a configuration of the test's schema. Options override the server's DSN."""
    server = MySQLConfig(dsn=server_dsn)
    given = {name: getattr(server, name) for name in server.model_fields_set}

    def make(**options: Any) -> MySQLConfig:
        address = {"host", "port", "hosts", "unix_socket"}
        replaced = address if options.keys() & address else set()
        kept = {name: value for name, value in given.items() if name not in replaced}
        return MySQLConfig(**{**kept, "database": database, **options})

    return make


@pytest.fixture
def config(make_config: MakeConfig) -> MySQLConfig:
    """Return the configuration of the test's schema. Modules with another one have their own fixture of this name."""
    return make_config()


@pytest.fixture
def raw(server_dsn: str, database: str) -> Iterator[pymysql.Connection[Any]]:
    """Yield a connection with the test's schema selected."""
    connection = connect(MySQLConfig(dsn=server_dsn), database)
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
    yield connection
    connection.close()


@pytest.fixture
def sql(raw: pymysql.Connection[Any]) -> Callable[..., tuple[Any, ...]]:
    """Return ``sql(text, *params)``, which returns the rows of one statement in the test's schema."""

    def run_one(text: str, *params: Any) -> tuple[Any, ...]:
        with raw.cursor() as cursor:
            cursor.execute(text, params or None)
            return cursor.fetchall()

    return run_one


@pytest.fixture
def toy_family() -> Iterator[None]:
    """Register the family that exists only in the tests."""
    register_family(ToyFamily())
    yield
    unregister_family("toys")


@pytest.fixture
def proxy(server_dsn: str) -> Iterator[WireProxy]:
    """Yield a proxy to the server: ``make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")``."""
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with WireProxy(endpoint.host, endpoint.port) as running:
        yield running


@pytest.fixture(autouse=True)
def no_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable random housekeeping after writes in all tests: many of them count round trips or rows."""
    monkeypatch.setattr(ledger, "one_in", lambda every: False)


# Stores of every driver and side, and a server that tests may restart, lock and misconfigure.

EVERY_ASYNC = tuple(f"{name}-async" for name in ASYNC_DRIVERS)
EVERY_SYNC = tuple(f"{name}-sync" for name in SYNC_DRIVERS)
EVERY_SIDE = EVERY_ASYNC + EVERY_SYNC

#: An asynchronous and a blocking driver. A test of these two runs on one of them, chosen by `rotated`, except in full
#: runs.
ONE_OF_EACH = ("mysql-connector-async", "pymysql-sync")

#: One asynchronous driver, one blocking, and one in a worker thread: after the login, the drivers of each kind share
#: all code. A test of these three runs on one of them, chosen by `rotated`; in full runs, on every driver.
EACH_WAY = EVERY_SIDE if FULL else ("mysql-connector-async", "mysql-connector-sync", "pymysql-async")

Opening: TypeAlias = Callable[..., AnyStore]


@pytest.fixture
async def opening(make_config: MakeConfig) -> AsyncIterator[Opening]:
    """Yield ``opening(side, kinds, **options)``: another store, like that of another process, closed after the test.

    The kinds are the asynchronous and the blocking class. Options that are none of the configuration are the store's
    own. A given ``config=`` is used unchanged except for its driver and the options.
    """
    stores: list[AnyStore] = []

    def open_one(
        side: str, kinds: Sequence[Callable[..., Any] | None], *, config: MySQLConfig | None = None, **options: Any
    ) -> AnyStore:
        driver, _, way = side.rpartition("-")
        own = {name: options.pop(name) for name in [*options] if name not in MySQLConfig.model_fields}
        options["driver"] = driver
        kind = kinds[way == "sync"]
        assert kind is not None
        config = make_config(**options) if config is None else config.model_copy(update=options)
        stores.append(AnyStore(kind(config, **own)))
        return stores[-1]

    yield open_one
    for store in stores:
        await store.close()


def parts(side: str) -> tuple[str, bool]:
    """Return the driver of a side, and whether its calls are awaited."""
    driver, _, way = side.rpartition("-")
    return driver, way == "async"


@pytest.fixture(params=ONE_OF_EACH)
def side(request: pytest.FixtureRequest) -> str:
    """Override with ``parametrize("side", EVERY_SIDE)`` for every driver."""
    return str(request.param)


OpenStore: TypeAlias = Callable[..., AnyStore]


@pytest.fixture
def open_store(opening: Opening) -> OpenStore:
    """Return ``open_store(side, kind="store", **options)``: a store in the test's schema; see `opening`."""
    kinds = {"store": (CheckpointStore, SyncCheckpointStore), "backend": (MySQLBackend, SyncMySQLBackend)}
    return lambda side=ONE_OF_EACH[0], kind="store", **options: opening(side, kinds[kind], **options)


@pytest.fixture
def through_proxy(make_config: MakeConfig, proxy: WireProxy) -> MakeConfig:
    """Return ``through_proxy(**options)``: a configuration of the test's schema, reached through the proxy."""
    return partial(make_config, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")


#: ``max_allowed_packet`` of the tests' own server, in bytes.
SMALL_PACKET_BYTES = 1_048_576


#: The empty data folder that ``ci/mysql`` keeps for copying.
MADE_BEFORE = Path(__file__).resolve().parents[2] / ".cache/mysql-data"


@pytest.fixture(scope="session")
def own_server() -> Iterator[LocalServer]:
    """Yield a durable server on disk with small packets and short lock waits; all its tests run in one process.

    Tests may restart and crash it and read its counters. A test that changes a setting restores it.
    """
    options = [f"--max-allowed-packet={SMALL_PACKET_BYTES}", "--innodb-lock-wait-timeout=1"]
    with LocalServer(extra_args=options, made_before=MADE_BEFORE) as server:
        yield server


@pytest.fixture
def own_sql(own_server: LocalServer) -> Callable[..., tuple[Any, ...]]:
    """Return a function that runs one statement on the tests' own server as its administrator."""

    def run_one(sql: str, *params: Any) -> tuple[Any, ...]:
        connection = connect(MySQLConfig(dsn=own_server.dsn))
        with connection, connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            return cursor.fetchall()

    return run_one


@pytest.fixture
def own_config(own_server: LocalServer, own_sql: Callable[..., object]) -> Iterator[MakeConfig]:
    """Return ``own_config(**options)``: a configuration of a new schema on the tests' own server."""
    name = f"locus_test_{secrets.token_hex(8)}"
    own_sql(f"CREATE DATABASE {name}")
    given = MySQLConfig(dsn=own_server.dsn)

    def make(**options: Any) -> MySQLConfig:
        here = {"host": "127.0.0.1", "port": own_server.port} if "hosts" not in options else {}
        return MySQLConfig(**{"database": name, "user": given.user, "password": given.password, **here, **options})

    yield make
    own_sql(f"DROP DATABASE {name}")


@pytest.fixture
def table_contents(run_sql: Callable[..., tuple[Any, ...]], database: str) -> Callable[[], Any]:
    """Return a function that reads every row of the test's schema, to compare before and after a call."""

    def contents() -> dict[str, tuple[Any, ...]]:
        tables = [name for (name,) in run_sql(f"SHOW TABLES FROM {database}")]
        return {name: run_sql(f"SELECT * FROM {database}.{name}") for name in tables}

    return contents
