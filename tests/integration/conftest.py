"""Fixtures of all integration tests: a real MySQL server, and a schema of its own for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
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
from locus_mysql.families.checkpoints import maintenance as cleaning
from locus_mysql.families.graphs import saving
from locus_mysql.families.memories import writing
from locus_mysql.families.working import operations

from ..either_side import AnyStore
from ..thoroughness import FULL
from .connecting import connect
from .drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS
from .kept_schemas import KeptSchemas
from .proxy import WireProxy

MakeConfig: TypeAlias = Callable[..., MySQLConfig]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one process run all tests with the durable server, as each such server takes 600 MB of memory.

    What takes long comes first, so that no process is left with it at the end.
    """
    for item in items:
        if "own_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("own_server"))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def server_dsn() -> str:
    """The server to test on; its user may create schemas and users."""
    dsn = os.environ.get("LOCUS_MYSQL_TEST_DSN")
    if not dsn:
        pytest.fail("No MySQL server to test on: run ci/test or set LOCUS_MYSQL_TEST_DSN.", pytrace=False)
    return dsn


@pytest.fixture(scope="session")
def server(server_dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """An administrator's connection, to prepare and to look."""
    connection = connect(MySQLConfig(dsn=server_dsn))
    yield connection
    connection.close()


@pytest.fixture
def run_sql(server: pymysql.Connection[Any]) -> Callable[..., tuple[Any, ...]]:
    """Run one statement as the administrator: ``run_sql(sql, *params)`` gives the rows."""

    def run(sql: str, *params: Any) -> tuple[Any, ...]:
        with server.cursor() as cursor:
            cursor.execute(sql, params or None)
            return cursor.fetchall()

    return run


@pytest.fixture(scope="session")
def kept_schemas(server_dsn: str, server: pymysql.Connection[Any]) -> Iterator[KeptSchemas]:
    """For tests marked ``kept_tables``."""
    kept = KeptSchemas(MySQLConfig(dsn=server_dsn), server)
    yield kept
    kept.drop()


@pytest.fixture
def database(request: pytest.FixtureRequest, run_sql: Callable[..., object]) -> Iterator[str]:
    """A schema of the test's own: new and empty, or with the empty tables that its mark ``kept_tables`` names."""
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
    """``make_config(**options)``: for the test's schema; options win over the server's DSN."""
    server = MySQLConfig(dsn=server_dsn)
    given = {name: getattr(server, name) for name in server.model_fields_set}

    def make(**options: Any) -> MySQLConfig:
        address = {"host", "port", "hosts", "unix_socket"}
        replaced = address if options.keys() & address else set()
        kept = {name: value for name, value in given.items() if name not in replaced}
        return MySQLConfig(**{**kept, "database": database, **options})

    return make


@pytest.fixture
def proxy(server_dsn: str) -> Iterator[WireProxy]:
    """A proxy before the server: ``make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")``."""
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with WireProxy(endpoint.host, endpoint.port) as running:
        yield running


@pytest.fixture
def no_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that count: what one save in 32 does for others, by chance, is another round trip."""
    monkeypatch.setattr(cleaning, "one_in", lambda one_in: False)
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)


@pytest.fixture(autouse=True)
def no_housekeeping_of_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long-term memories and graphs, none that a test does not ask for: many of them count or look at rows."""
    monkeypatch.setattr(writing, "one_in", lambda one_in: False)
    monkeypatch.setattr(saving, "one_in", lambda one_in: False)


# Stores of every driver and side, and a server that a test may restart, lock and misconfigure.

EVERY_SIDE = tuple(f"{name}-async" for name in ASYNC_DRIVERS) + tuple(f"{name}-sync" for name in SYNC_DRIVERS)
ONE_OF_EACH = ("mysql-connector-async", "pymysql-sync")

#: One that is awaited, one that blocks and one in a thread: after the login, drivers share all code of these. In full,
#: every one.
EACH_WAY = EVERY_SIDE if FULL else ("mysql-connector-async", "mysql-connector-sync", "pymysql-async")

_CLASSES = {
    "store-async": CheckpointStore,
    "store-sync": SyncCheckpointStore,
    "backend-async": MySQLBackend,
    "backend-sync": SyncMySQLBackend,
}


OpenStore: TypeAlias = Callable[..., AnyStore]


@pytest.fixture
async def open_store(make_config: MakeConfig) -> AsyncIterator[OpenStore]:
    """``open_store(side, kind="store", **options)``: a store in the test's schema, closed after the test.

    Given ``config=``, it is used as it is, but for the driver.
    """
    opened: list[AnyStore] = []

    def open_one(
        side: str = ONE_OF_EACH[0], kind: str = "store", config: MySQLConfig | None = None, **options: Any
    ) -> AnyStore:
        driver, _, way = side.rpartition("-")
        if config is None:
            config = make_config(driver=driver, **options)
        else:
            config = config.model_copy(update={"driver": driver, **options})
        store = AnyStore(_CLASSES[f"{kind}-{way}"](config))
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


#: What a packet to the test's own server may hold.
SMALL_PACKET_BYTES = 1_048_576


#: Where ``ci/mysql`` keeps an empty data folder, to be copied.
MADE_BEFORE = Path(__file__).resolve().parents[2] / ".cache/mysql-data"


@pytest.fixture(scope="session")
def own_server() -> Iterator[LocalServer]:
    """A server that is durable, on disk, with small packets and short lock waits; all its tests run in one process.

    A test may restart and crash it, and read its counters; one that changes it changes it back.
    """
    options = [f"--max-allowed-packet={SMALL_PACKET_BYTES}", "--innodb-lock-wait-timeout=1"]
    with LocalServer(extra_args=options, made_before=MADE_BEFORE) as server:
        yield server


@pytest.fixture
def own_sql(own_server: LocalServer) -> Callable[..., tuple[Any, ...]]:
    """Run one statement on the tests' own server as its administrator."""

    def run(sql: str, *params: Any) -> tuple[Any, ...]:
        connection = connect(MySQLConfig(dsn=own_server.dsn))
        with connection, connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            return cursor.fetchall()

    return run


@pytest.fixture
def own_config(own_server: LocalServer, own_sql: Callable[..., object]) -> Iterator[MakeConfig]:
    """``own_config(**options)``: for a new schema on the tests' own server."""
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
    """Every row of the tables of the test's schema, to be compared before and after."""

    def contents() -> dict[str, tuple[Any, ...]]:
        tables = [name for (name,) in run_sql(f"SHOW TABLES FROM {database}")]
        return {name: run_sql(f"SELECT * FROM {database}.{name}") for name in tables}

    return contents
