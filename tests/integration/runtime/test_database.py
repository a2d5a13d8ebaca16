"""One `Database` shared by any number of stores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    CheckpointStore,
    Database,
    MySQLBackend,
    MySQLCheckpointer,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
    WorkingMemory,
    mysql_checkpointer,
)
from locus_mysql.errors import ConfigError, SchemaMismatch

from ..conftest import MakeConfig

STATE = AgentState(messages=(Message.user("hello"),))

Connections = Callable[[], int]


@pytest.fixture
def connections(run_sql: Callable[..., tuple[Any, ...]], database: str) -> Connections:
    """``connections()``: how many there are to the test's schema."""
    counting = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_DB = %s"
    return lambda: int(run_sql(counting, database)[0][0])


def none_is_left(connections: Connections) -> bool:
    """Return whether all connections end soon: the server lists one for a moment after it was closed."""
    deadline = time.monotonic() + 10
    while connections():
        if time.monotonic() > deadline:
            return False
    return True


@pytest.mark.parametrize("driver", ["mysql-connector", "aiomysql", "pymysql", "asyncmy"])
async def test_asynchronous_stores_share_one_pool_and_close_nothing(
    make_config: MakeConfig, connections: Connections, driver: str
) -> None:
    async with Database(make_config(driver=driver, pool_size=3)) as db:
        stores = [CheckpointStore(db, tenant=f"tenant {number}") for number in range(20)]
        await asyncio.gather(*(store.save("t", {"n": number}) for number, store in enumerate(stores)))
        assert await MySQLCheckpointer(db, tenant="acme").save(STATE, "t")
        await MySQLBackend(db).save("t", {"b": 1})
        assert 1 <= connections() <= 3
        async with CheckpointStore(db, tenant="tenant 7") as store:
            assert await store.load("t") == {"n": 7}
        assert connections() >= 1
        assert await stores[3].load("t") == {"n": 3}
    assert none_is_left(connections)


def test_synchronous_stores_share_one_pool(make_config: MakeConfig, connections: Connections) -> None:
    with Database(make_config(driver="pymysql")) as db:
        for number in range(20):
            with SyncCheckpointStore(db, tenant=f"tenant {number}") as store:
                store.save("t", {"n": number})
        assert SyncMySQLCheckpointer(db).save(STATE, "t")
        SyncMySQLBackend(db).save("t", {"b": 1})
        assert connections() == 1
    assert none_is_left(connections)


async def test_both_sides_share_a_database_and_aclose_closes_both(
    make_config: MakeConfig, connections: Connections
) -> None:
    async with Database(make_config(driver="mysql-connector")) as db:
        await CheckpointStore(db).save("t", {"n": 1})
        assert await asyncio.to_thread(SyncCheckpointStore(db).load, "t") == {"n": 1}
        assert connections() == 2
    assert none_is_left(connections)


async def test_a_health_check_needs_no_store(make_config: MakeConfig) -> None:
    async with Database(make_config(driver="pymysql")) as db:
        health = await db.health_check()
        assert (health["ok"], health["read_only"]) == (True, False)
        again = db.health_check_blocking()
        assert again["server_version"] == health["server_version"]
        assert again["server_time"] >= health["server_time"]


def test_a_store_closes_the_database_that_it_opened(make_config: MakeConfig, connections: Connections) -> None:
    store = SyncCheckpointStore(make_config(driver="pymysql"))
    store.save("t", {"n": 1})
    assert connections() == 1
    store.close()
    assert none_is_left(connections)
    assert store.load("t") == {"n": 1}  # opens again
    store.close()


def test_tables_are_checked_once_for_each_family(
    make_config: MakeConfig, run_sql: Callable[..., tuple[Any, ...]], database: str
) -> None:
    with Database(make_config(driver="pymysql")) as db:
        SyncCheckpointStore(db).save("t", {"n": 1})
        assert len(run_sql(f"SHOW TABLES FROM {database}")) == 3  # no other family's are made
        SyncMySQLBackend(db).save("t", {"n": 1})
        assert len(run_sql(f"SHOW TABLES FROM {database}")) == 6
        with pytest.raises(SchemaMismatch, match="no table 'other_store_threads'"):
            SyncCheckpointStore(db, table_prefix="other_", ddl_mode="validate").load("t")
        assert SyncCheckpointStore(db, ddl_mode="validate").load("t") == {"n": 1}


def test_options_of_the_databases_configuration_are_the_stores_defaults(make_config: MakeConfig) -> None:
    with Database(make_config(driver="pymysql", tenant="acme", keep_checkpoints=2)) as db:
        assert SyncCheckpointStore(db).config.tenant == "acme"
        other = SyncCheckpointStore(db, tenant="other")
        assert (other.config.tenant, other.config.keep_checkpoints) == ("other", 2)
        other.save("t", {"n": 1})
        assert SyncCheckpointStore(db).load("t") is None


DSN = "mysql://user:secret@localhost/app"


@pytest.mark.parametrize("kind", [CheckpointStore, SyncCheckpointStore, MySQLBackend, MySQLCheckpointer, Database])
def test_a_dsn_a_configuration_or_keywords_are_the_same(kind: Any) -> None:
    configs = [
        kind(DSN).config,
        kind(MySQLConfig(dsn=DSN)).config,
        kind(dsn=DSN).config,
        kind(user="user", password="secret", host="localhost", database="app").config,
    ]
    assert all(config == configs[0] for config in configs[:3])
    assert [config.database for config in configs] == ["app"] * 4


@pytest.mark.parametrize("kind", [CheckpointStore, SyncCheckpointStore, mysql_checkpointer, Database])
def test_without_a_server_s_address_the_environment_is_read(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", DSN)
    monkeypatch.setenv("LOCUS_MYSQL_POOL_SIZE", "7")
    assert kind().config == MySQLConfig(dsn=DSN, pool_size=7)
    assert kind(tenant="acme").config == MySQLConfig(dsn=DSN, pool_size=7, tenant="acme")
    assert kind(host="elsewhere").config == MySQLConfig(host="elsewhere")
    assert kind(dsn=DSN).config == MySQLConfig(dsn=DSN)


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: CheckpointStore({"dsn": DSN}), "keywords"),  # type: ignore[arg-type]
        (lambda: MySQLCheckpointer({"host": "localhost"}), "keywords"),  # type: ignore[arg-type]
        (lambda: CheckpointStore(DSN, dsn=DSN), "twice"),
        (lambda: CheckpointStore(MySQLConfig(dsn=DSN), tenant="x"), "not both"),
        (lambda: CheckpointStore(Database(DSN), host="elsewhere"), "Database"),
        (lambda: CheckpointStore(Database(DSN), tenent="x"), "tenant"),  # type: ignore[call-arg]
        (lambda: CheckpointStore(Database(DSN), tenant=""), "tenant"),
        (lambda: SyncCheckpointStore(DSN, driver="asyncmy"), "pymysql"),
        (lambda: SyncMySQLCheckpointer(Database(DSN, driver="asyncmy")), "pymysql"),
        (lambda: CheckpointStore("localhost"), "mysql://"),
        (lambda: CheckpointStore(None), "None.*not set.*LOCUS_MYSQL_DSN"),  # type: ignore[arg-type]
        (lambda: WorkingMemory("s", None), "None.*not set"),  # type: ignore[arg-type]
        (lambda: Database(dsn=None), "None.*not set"),  # type: ignore[arg-type]
        (lambda: MySQLConfig(dsn=None), "None.*not set"),  # type: ignore[arg-type]
        (lambda: mysql_checkpointer(dsn=None), "None.*not set"),  # type: ignore[arg-type]
        (lambda: MySQLBackend(None), "None.*not set"),  # type: ignore[arg-type]
        (lambda: CheckpointStore(DSN).__enter__(), "async with"),
    ],
)
def test_impossible_options_are_refused_at_once_with_the_remedy(make: Callable[[], Any], remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy) as caught:
        make()
    assert "secret" not in str(caught.value)
