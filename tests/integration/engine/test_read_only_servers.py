"""A server that takes no writes is refused for writes, and another one of the list gets them."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.dialect import Statement
from locus_mysql.engine.cluster.primary import SUSPICION_S
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.logs import Counters
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import AuthenticationFailed, DatabaseMissing, ReadOnlyServer, Unavailable

from ...thoroughness import FULL
from ...unit.engine.scripted import result_of
from ..conftest import EACH_WAY, ONE_OF_EACH, MakeConfig, OpenStore
from ..drivers_under_test import ASYNC_DRIVERS

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
SECRET = "s3cr3t-Pa55"
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)
each_way = pytest.mark.parametrize("side", EACH_WAY)


@pytest.fixture
def read_only(own_sql: RunSQL) -> Iterator[Callable[[], None]]:
    yield lambda: own_sql("SET GLOBAL super_read_only = 1") and None
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")


@each_way
async def test_a_save_to_a_read_only_server_is_refused_and_loads_still_work(
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


@one_of_each
async def test_a_read_only_store_reads_a_replica_and_writes_nothing(
    open_store: OpenStore, own_config: MakeConfig, own_sql: RunSQL, read_only: Callable[[], None], side: str
) -> None:
    writer = open_store(side, config=own_config())
    await writer.save("thread", {"a": 1}, "first")
    await writer.save("thread", {"a": 2, "word": "zebra"})
    assert await writer.search("zebra")
    reader = open_store(side, config=own_config(read_only=True))
    for is_replica in (False, True):
        assert await reader.load("thread") == {"a": 2, "word": "zebra"}
        assert await reader.load("thread", "first") == {"a": 1}
        assert await reader.list_threads() == ["thread"]
        assert [hit["thread_id"] for hit in await reader.search("zebra")] == ["thread"]
        for write in (
            lambda: reader.save("thread", {"a": 3}),
            lambda: reader.delete("thread"),
            lambda: reader.copy_thread("thread", "other"),
            lambda: reader.vacuum(0),
        ):
            with pytest.raises(ReadOnlyServer, match="read_only=True"):
                await write()
        if not is_replica:
            read_only()
    assert await writer.list_threads() == ["thread"]


async def test_a_save_to_an_empty_read_only_server_is_refused(
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


@pytest.mark.parametrize(("kind", "driver"), [(SyncEngine, "pymysql"), (AsyncEngine, "aiomysql")])
async def test_a_slow_call_is_not_taken_for_a_frozen_server_though_another_takes_writes(
    replica_and_primary: tuple[MySQLConfig, MySQLConfig], own_sql: RunSQL, kind: Any, driver: str
) -> None:
    config, _ = replica_and_primary
    own_sql("SET GLOBAL super_read_only = 0")
    own_sql("SET GLOBAL read_only = 0")
    counters = Counters()
    engine = kind(config.model_copy(update={"driver": driver}), counters)
    assert await result_of(engine.run(sleeps())) == [(0,)]
    assert (counters.lost, counters.retries) == (0, 0)
    await result_of(engine.close())


@one_of_each
async def test_if_all_servers_are_read_only_a_save_is_refused_at_the_deadline(
    open_store: OpenStore, own_config: MakeConfig, read_only: Callable[[], None], side: str
) -> None:
    config = own_config()
    await open_store(side, config=config).save("thread", {})
    read_only()
    here = f"127.0.0.1:{config.port}"
    store = open_store(side, config=own_config(hosts=(here, here), retry_deadline_s=0.5))
    with pytest.raises(ReadOnlyServer):
        await store.save("thread", {})
