"""Stores without references keep no connection open."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from locus_mysql import CheckpointStore, Database, SyncCheckpointStore

from .conftest import EVERY_SIDE, MakeConfig, OpenStore

#: The number of requests is twice the limit on connections.
REQUESTS, MOST_CONNECTIONS = 100, 50

Connections = Callable[[], int]


@pytest.fixture
def connections(run_sql: Callable[..., tuple[Any, ...]], database: str) -> Connections:
    """Return ``connections()``, which counts the connections to the test's schema in the server's list."""
    counting = "SELECT COUNT(*) FROM performance_schema.processlist WHERE DB = %s"
    return lambda: int(run_sql(counting, database)[0][0])


async def none_is_left(connections: Connections) -> bool:
    deadline = time.monotonic() + 60
    while connections():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
        gc.collect()  # a thread may have held the last reference until now
    return True


@pytest.mark.slow
@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_a_store_for_each_request_that_is_never_closed(
    make_config: MakeConfig, open_store: OpenStore, connections: Connections, side: str
) -> None:
    first = open_store(side)
    await first.save("t", {"n": 1})
    await first.close()
    driver, _, way = side.rpartition("-")
    config = make_config(driver=driver, ddl_mode="off")
    most = 0
    for number in range(REQUESTS):
        if way == "async":
            assert await CheckpointStore(config).exists("t")
        else:
            assert SyncCheckpointStore(config).exists("t")
        if number % 20 == 0:
            most = max(most, connections())
    gc.collect()
    assert most < MOST_CONNECTIONS  # the server removes a closed connection with a delay
    assert await none_is_left(connections)


@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_a_database_in_a_reference_cycle_closes_its_connections_once_it_is_collected(
    make_config: MakeConfig, connections: Connections, side: str
) -> None:
    driver, _, way = side.rpartition("-")

    class Service:
        def __init__(self) -> None:
            self.database = Database(make_config(driver=driver))
            self.itself = self

    service = Service()
    if way == "async":
        stores = [CheckpointStore(service.database) for _ in range(3)]
        await asyncio.gather(*(store.count() for store in stores))
        del stores
    else:
        SyncCheckpointStore(service.database).count()
    assert connections()
    del service
    gc.collect()
    assert await none_is_left(connections)


@pytest.mark.parametrize("driver", ["mysql-connector", "aiomysql", "pymysql", "asyncmy"])
def test_a_store_that_outlives_its_event_loop_frees_its_connections(
    make_config: MakeConfig, connections: Connections, driver: str
) -> None:
    store = CheckpointStore(make_config(driver=driver))
    asyncio.run(store.count())
    del store
    gc.collect()
    assert asyncio.run(none_is_left(connections))


@pytest.mark.parametrize("driver", ["mysql-connector", "aiomysql", "pymysql", "asyncmy"])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_event_loops_dropped_without_being_closed_are_freed_with_their_connections(
    make_config: MakeConfig, connections: Connections, driver: str
) -> None:
    store = CheckpointStore(make_config(driver=driver))
    for _ in range(3):
        asyncio.new_event_loop().run_until_complete(store.count())
    gc.collect()
    assert asyncio.run(none_is_left(connections))


@pytest.mark.parametrize("driver", ["mysql-connector", "aiomysql", "pymysql", "asyncmy"])
def test_a_store_that_is_freed_in_another_thread_closes_its_connections(
    make_config: MakeConfig, connections: Connections, driver: str
) -> None:
    async def serve() -> bool:
        stores = [CheckpointStore(make_config(driver=driver))]
        await stores[0].count()
        await asyncio.to_thread(stores.clear)
        return await none_is_left(connections)

    assert asyncio.run(serve())


#: A program whose modules are empty when its store is freed, as the interpreter may leave them at its exit.
FORGETFUL = """
import asyncio, sys
from locus_mysql import CheckpointStore, Database, MySQLConfig, SyncCheckpointStore
from locus_mysql.engine import pool, sides
database = Database(MySQLConfig(dsn=sys.argv[1], driver=sys.argv[2]))
if sys.argv[3] == "async":
    store = CheckpointStore(database)
    asyncio.run(store.exists("t"))
else:
    store = SyncCheckpointStore(database)
    store.exists("t")
for module in (pool, sides):
    vars(module).update(dict.fromkeys(vars(module)))
"""


@pytest.mark.parametrize("side", EVERY_SIDE)
def test_a_store_in_a_global_makes_no_noise_when_the_interpreter_ends(
    server_dsn: str, database: str, side: str
) -> None:
    driver, _, way = side.rpartition("-")
    dsn = urlsplit(server_dsn)._replace(path=f"/{database}").geturl()
    command = [sys.executable, "-c", FORGETFUL, dsn, driver, way]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
