"""The tables have memU's columns; existing tables are checked, and foreign ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, create_model

from locus_mysql import Database
from locus_mysql.errors import ConfigError, SchemaMismatch
from locus_mysql.integrations.memu import (
    AsyncMemuDatabase,
    DefaultUserModel,
    MemuDatabase,
    build_async_mysql_database,
    build_mysql_database,
)

from ...conftest import MakeConfig
from .conftest import ADA, AnyMemu, Make, UserModel

RunSQL = Callable[..., tuple[Any, ...]]

#: What every table has.
EVERY = {"id": "varchar(36)", "created_at": "datetime(6)", "updated_at": "datetime(6)"}

#: The columns in memU's document about MySQL, and those that later releases added.
COLUMNS = {
    table: {**EVERY, **dict(column.split(" ", 1) for column in columns.split(", "))}
    for table, columns in {
        "resources": (
            "url varchar(2048), modality varchar(64), local_path varchar(1024), "
            "caption longtext, track varchar(64), embedding mediumblob"
        ),
        "memory_items": (
            "resource_id varchar(36), memory_type varchar(32), summary longtext, "
            "embedding mediumblob, happened_at datetime(6), extra json"
        ),
        "memory_categories": "name varchar(255), description longtext, embedding mediumblob, summary longtext",
        "category_items": "item_id varchar(36), category_id varchar(36)",
        "recall_files": (
            "name varchar(255), track varchar(64), description longtext, content longtext, embedding mediumblob"
        ),
        "recall_file_segments": "recall_file_id varchar(36), track varchar(64), text longtext, embedding mediumblob",
    }.items()
}


async def test_the_tables_are_those_of_memu_with_the_scope(memu: AnyMemu, database: str, run_sql: RunSQL) -> None:
    await memu.remember("a", ADA, [1.0, -0.5])
    for table, columns in COLUMNS.items():
        found = dict(
            run_sql(
                "SELECT column_name, column_type FROM information_schema.columns "
                "WHERE table_schema = %s AND table_name = %s",
                database,
                table,
            )
        )
        assert {name: found[name] for name in columns} == columns
        assert found["user_id"] == found["agent_id"] == "varchar(255)"
        indexed = run_sql(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s",
            database,
            table,
        )
        assert {("user_id",), ("agent_id",)} <= set(indexed)
    keys = run_sql(
        "SELECT table_name, referenced_table_name FROM information_schema.referential_constraints "
        "WHERE constraint_schema = %s AND delete_rule = 'CASCADE'",
        database,
    )
    assert sorted(keys) == [
        ("category_items", "memory_categories"),
        ("category_items", "memory_items"),
        ("memory_items", "resources"),
    ]
    ((raw,),) = run_sql(f"SELECT embedding FROM {database}.memory_items")
    assert raw.hex() == "0000803f000000bf"  # 1.0 and -0.5 as 32-bit floats, little-endian


async def test_a_missing_table_or_column_is_named(make_memu: Make, database: str, run_sql: RunSQL) -> None:
    with pytest.raises(
        SchemaMismatch,
        match=r"no table 'resources'.*`python -m locus_mysql schema --family memu --scope user_id,agent_id`",
    ):
        await make_memu(ddl_mode="validate").load_existing()
    await make_memu().load_existing()
    await make_memu(ddl_mode="validate").load_existing()
    run_sql(f"ALTER TABLE {database}.memory_items DROP COLUMN happened_at")
    for mode in ("validate", "create"):
        with pytest.raises(SchemaMismatch, match="'memory_items' has no column 'happened_at'"):
            await make_memu(ddl_mode=mode).memory_item_repo.list_items()
    run_sql(f"ALTER TABLE {database}.memory_items ADD COLUMN happened_at DATETIME(6) NULL")
    more = create_model("More", __base__=UserModel, team=(str | None, None))
    with pytest.raises(SchemaMismatch, match="'resources' has no column 'team'") as caught:
        await make_memu(more).load_existing()
    for table in COLUMNS:
        run_sql(str(caught.value).partition("Add it: ")[2].replace("`resources`", f"{database}.{table}"))
    memu = make_memu(more)
    item = await memu.remember("a", {**ADA, "team": "x"})
    assert list(await memu.memory_item_repo.list_items({"team": "x"})) == [item.id]
    assert (await make_memu().memory_item_repo.get_item(item.id)).user_id == "ada"


async def test_a_scope_is_the_same_with_fields_that_are_not_given(make_memu: Make) -> None:
    await make_memu().load_existing()
    item = await make_memu(create_model("Only", user_id=(str, ...))).remember("a", ADA, reinforce=True)
    again = await make_memu().remember("a", ADA, reinforce=True)
    assert (again.id, again.extra["reinforcement_count"]) == (item.id, 2)


async def test_tables_of_others_are_left_alone(make_memu: Make, database: str, run_sql: RunSQL) -> None:
    run_sql(f"CREATE TABLE {database}.resources (id INT)")
    with pytest.raises(SchemaMismatch, match=r"'resources' .* was not made by locus-mysql"):
        await make_memu().load_existing()
    assert run_sql(f"SHOW TABLES FROM {database}") == (("resources",),)


def test_a_database_is_built_of_any_configuration(make_config: MakeConfig, server_dsn: str, database: str) -> None:
    config = make_config(driver="pymysql")
    (endpoint,) = config.endpoints
    where = f"unix_socket={endpoint.unix_socket}&" if endpoint.unix_socket else ""
    address = "" if endpoint.unix_socket else f"{endpoint.host}:{endpoint.port}"
    password = config.password.get_secret_value()
    dsn = f"mysql+pymysql://{config.user}:{password}@{address}/{database}?{where}charset=utf8mb4"
    memus = SimpleNamespace(metadata_store=SimpleNamespace(provider="mysql", dsn=dsn, ddl_mode="create"))
    for built in (
        build_mysql_database(config=memus, user_model=UserModel),
        build_mysql_database(config={"metadata_store": {"dsn": dsn, "ddl_mode": "validate"}}, user_model=UserModel),
        build_mysql_database(config=dsn, user_model=UserModel),
        build_mysql_database(config=config, user_model=UserModel),
        build_mysql_database(config=Database(config), user_model=UserModel),
    ):
        with built:
            assert built.config.driver == "pymysql"
            built.memory_item_repo.create_item(memory_type="event", summary="a", embedding=None, user_data=ADA)
    with build_mysql_database(config=config, user_model=UserModel) as memu:
        assert len(memu.items) == 5
    assert isinstance(build_async_mysql_database(config=memus), AsyncMemuDatabase)
    memus.metadata_store.ddl_mode = "validate"
    with pytest.raises(SchemaMismatch, match="has no table 'x_resources'"):
        build_mysql_database(config=memus, table_prefix="x_")
    for wrong in (None, 5, {}, SimpleNamespace(metadata_store=SimpleNamespace(dsn=None))):
        with pytest.raises(ConfigError, match="names no database"):
            build_mysql_database(config=wrong)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": (str, "")},
        {"ID": (str, "")},
        {"summary": (str | None, None)},
        {"category_id": (str, "")},
        {"locus_tenant": (str, "")},
        {"a": (str, ""), "A": (str, "")},
        {"a b": (str, "")},
        {"x" * 59: (str, "")},
        {"tags": (list[str], [])},
        {"weight": (float, 0.0)},
        {"either": (str | int, 0)},
        {f"f{number}": (str, "") for number in range(33)},
    ],
)
def test_a_field_that_can_be_no_column_is_a_type_error(fields: dict[str, Any]) -> None:
    model: type[BaseModel] = create_model("Wrong", **fields)
    with pytest.raises(TypeError, match=r"[Ss]cope field|user model has 33"):
        MemuDatabase("mysql://u@localhost/app", driver="pymysql", user_model=model)
    with pytest.raises(TypeError, match="pydantic model class"):
        AsyncMemuDatabase("mysql://u@localhost/app", user_model=DefaultUserModel())  # type: ignore[arg-type]
