"""Tables that are missing, foreign or of another layout: what is created, and errors that name the remedy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import InvalidInput, SchemaMismatch
from locus_mysql.families.checkpoints.family import DICTS

from ..conftest import ONE_OF_EACH, MakeConfig, OpenStore

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)
PROCESSES = multiprocessing.get_context("forkserver")
DEADLINE_S = 180.0


def tables(run_sql: RunSQL, database: str) -> list[str]:
    found = run_sql("SELECT table_name FROM information_schema.tables WHERE table_schema = %s ORDER BY 1", database)
    return [name for (name,) in found]


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
    for table in ("locus_store_threads", "locus_store_checkpoints", "locus_store_ledger"):
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
@pytest.mark.parametrize(("layout", "advice"), [(99, "Upgrade locus-mysql"), (0, "migrate --family dicts")])
async def test_another_layout_is_refused_with_what_to_do(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str, ddl_mode: str, layout: int, advice: str
) -> None:
    store = open_store(side)
    await store.save("thread", {"a": 1})
    run_sql(f"ALTER TABLE {database}.locus_store_checkpoints COMMENT='locus-mysql: dicts layout {layout}'")
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
    for statement in DICTS.schema(MySQLConfig(table_prefix="printed_")).create():
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
