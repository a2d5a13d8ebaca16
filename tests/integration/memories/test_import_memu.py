"""Moving over from the tables of memU's unmerged MySQL pull request.

That pull request never imported, so its tables are made here by their columns, which are facts of its models: texts for
embeddings, times to the second, a column for each field of the user model, and no unique key over name and scope.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from locus_mysql import MySQLConfig
from locus_mysql.commands.main import main
from locus_mysql.errors import SchemaMismatch, Unavailable, UsageError
from locus_mysql.integrations.memu import MemuDatabase, importing
from locus_mysql.integrations.memu.exporting import MemuTarget
from locus_mysql.integrations.memu.importing import MemuImport

from ..conftest import MakeConfig
from ..drivers_under_test import ASYNC_DRIVERS
from ..test_cli import dsn_of

RunSql = Callable[..., tuple[Any, ...]]
SCOPE = ("user_id", "agent_id")
TIME = datetime(2026, 1, 31, 12, 0, 1)
EMBEDDING = [0.1, -2.5e-7, 1 / 3]


class UserModel(BaseModel):
    user_id: str | None = None
    agent_id: str | None = None


HEAD = "id VARCHAR(36) NOT NULL PRIMARY KEY, created_at DATETIME NOT NULL DEFAULT now(), updated_at DATETIME NOT NULL"
TAIL = "user_id VARCHAR(255) NULL, agent_id VARCHAR(255) NULL"
TABLES = {
    "resources": "url VARCHAR(2048) NOT NULL, modality VARCHAR(64) NOT NULL, local_path VARCHAR(1024) NOT NULL, "
    "caption TEXT NULL, embedding TEXT NULL",
    "memory_categories": "name VARCHAR(255) NOT NULL, description TEXT NOT NULL, summary TEXT NULL, "
    "embedding TEXT NULL",
    "memory_items": "resource_id VARCHAR(36) NULL, memory_type VARCHAR(32) NOT NULL, summary TEXT NOT NULL, "
    "embedding TEXT NULL, FOREIGN KEY (resource_id) REFERENCES resources (id) ON DELETE CASCADE",
    "category_items": "item_id VARCHAR(36) NOT NULL, category_id VARCHAR(36) NOT NULL, "
    "UNIQUE KEY idx_category_items_unique (item_id, category_id)",
}

#: For each of two users a resource, two categories, a third that a race made of the first, and 5 items with 6 links.
COUNT = 2 * (1 + 3 + 5 + 6)


@pytest.fixture
def source(make_config: MakeConfig, run_sql: RunSql, database: str) -> Iterator[MySQLConfig]:
    config = make_config(database=f"{database}_old", driver="pymysql")
    run_sql(f"CREATE DATABASE {config.database}")
    for name, columns in TABLES.items():
        run_sql(f"CREATE TABLE {config.database}.{name} ({HEAD}, {TAIL}, {columns})")

    def add(table: str, **values: Any) -> str:
        row = {"id": str(uuid.uuid4()), "created_at": TIME, "updated_at": TIME, **values}
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        run_sql(f"INSERT INTO {config.database}.{table} ({names}) VALUES ({marks})", *row.values())
        return str(row["id"])

    for user, agent in (("ada", "é🙂"), ("bob", None)):
        scope = {"user_id": user, "agent_id": agent}
        resource = add(
            "resources", url="u", modality="text", local_path="p", embedding=json.dumps(EMBEDDING), caption="é", **scope
        )
        tastes, homes = (
            add("memory_categories", name=name, description="d", embedding=None, **scope)
            for name in ("tastes", "homes")
        )
        again = add("memory_categories", name="tastes", description="raced", **scope)
        for n in range(5):
            item = add(
                "memory_items",
                resource_id=resource if n else None,
                memory_type="profile",
                summary=f"likes tea {n}",
                embedding=json.dumps([n, *EMBEDDING]) if n else None,
                **scope,
            )
            add("category_items", item_id=item, category_id=(tastes, homes, again)[n % 3], **scope)
        add("category_items", item_id=item, category_id=tastes, **scope)
    yield config
    run_sql(f"DROP DATABASE {config.database}")


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
async def test_records_are_copied_as_they_are(driver: str, source: MySQLConfig, make_config: MakeConfig) -> None:
    target = make_config(driver=driver)
    dry = await MemuImport(source, target, scope=SCOPE, dry_run=True).run()
    assert str(dry) == f"Would copy {COUNT} records, or pass over those that are there already."
    told: list[str] = []
    summary = await MemuImport(source, target, scope=SCOPE, tell=told.append).run()
    assert (summary.done.written, summary.done.differing, summary.damaged) == (COUNT - 2, 2, 0)
    assert len(told) == 2
    assert all("and its items are linked with that" in one for one in told)
    with MemuDatabase(make_config(driver="pymysql"), user_model=UserModel) as db:
        for user in ("ada", "bob"):
            where = {"user_id": user}
            items = db.memory_item_repo.list_items(where)
            assert sorted(item.summary for item in items.values()) == [f"likes tea {n}" for n in range(5)]
            assert {item.created_at for item in items.values()} == {TIME.replace(tzinfo=UTC)}
            (found, score), *_ = db.memory_item_repo.vector_search_items([4, *EMBEDDING], 1, where=where)
            assert items[found].summary == "likes tea 4"
            assert score == pytest.approx(1)
            (resource,) = db.resource_repo.list_resources(where).values()
            assert resource.embedding == pytest.approx(EMBEDDING)
            names = {c.name: c.id for c in db.memory_category_repo.list_categories(where).values()}
            linked = [relation.category_id for relation in db.category_item_repo.list_relations(where)]
            assert sorted(names) == ["homes", "tastes"]
            assert (linked.count(names["tastes"]), linked.count(names["homes"])) == (4, 2)
    again = await MemuImport(source, target, scope=SCOPE).run()
    assert (again.done.written, again.done.present, again.done.differing) == (0, COUNT - 2, 2)


async def test_it_goes_on_where_it_stopped(
    source: MySQLConfig, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_AT_ONCE", 2)
    target, write, calls = make_config(driver="pymysql"), MemuTarget.write, []

    async def stopping(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 7:
            raise Unavailable("gone")
        await write(*arguments)

    monkeypatch.setattr(MemuTarget, "write", stopping)
    with pytest.raises(Unavailable):
        await MemuImport(source, target, scope=SCOPE).run()
    monkeypatch.setattr(MemuTarget, "write", write)
    summary = await MemuImport(source, target, scope=SCOPE).run()
    assert summary.done.present > 0
    assert summary.done.written + summary.done.present == COUNT - 2


async def test_what_cannot_be_read_is_named(source: MySQLConfig, make_config: MakeConfig, run_sql: RunSql) -> None:
    table = f"{source.database}.memory_items"
    run_sql(f"UPDATE {table} SET embedding = '[1, 2' WHERE summary = 'likes tea 1' AND user_id = 'ada'")
    run_sql(f"UPDATE {table} SET embedding = '[NaN]' WHERE summary = 'likes tea 2' AND user_id = 'ada'")
    run_sql(f"ALTER TABLE {table} ADD extra JSON NULL, ADD happened_at DATETIME NULL")
    run_sql(f"UPDATE {table} SET extra = '{{\"ref_id\": \"r\"}}', happened_at = %s WHERE summary = 'likes tea 4'", TIME)
    told: list[str] = []
    target = make_config(driver="pymysql")
    summary = await MemuImport(source, target, scope=SCOPE, tell=told.append).run()
    assert summary.damaged == 2
    assert "that could not be read or kept as they are" in str(summary)
    assert any("its embedding cannot be read; it is copied without" in one for one in told)
    assert any("cannot be kept here" in one and "NaN" in one for one in told)
    with MemuDatabase(target, user_model=UserModel) as db:
        items = {(item.user_id, item.summary): item for item in db.items.values()}  # type: ignore[attr-defined]
        assert items["ada", "likes tea 1"].embedding is None
        assert ("ada", "likes tea 2") not in items
        assert items["bob", "likes tea 4"].extra == {"ref_id": "r"}
        assert items["bob", "likes tea 4"].happened_at == TIME.replace(tzinfo=UTC)


async def test_other_tables_are_refused(source: MySQLConfig, make_config: MakeConfig) -> None:
    with pytest.raises(SchemaMismatch, match="source-dsn"):
        await MemuImport(make_config(), make_config(database=source.database)).run()
    with pytest.raises(SchemaMismatch, match="colour"):
        await MemuImport(source, make_config(), scope=["colour"]).run()
    with pytest.raises(UsageError, match="--prefix"):
        MemuImport(source, source)
    own = make_config(driver="pymysql")
    with MemuDatabase(own) as db:
        db.load_existing()
    with pytest.raises(SchemaMismatch, match="this package's own"):
        await MemuImport(own, own.for_store(table_prefix="x_")).run()


def test_the_command_copies(source: MySQLConfig, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["import-memu", "--dsn", dsn_of(make_config()), "--source-dsn", dsn_of(source)]
    assert main([*command, "--dry-run"]) == 0
    told = capsys.readouterr()
    assert f"Would copy {COUNT} records" in told.out
    assert "resources: not copied are the columns agent_id. Name what is of the user model in --scope." in told.err
    assert main([*command, "--scope", "user_id,agent_id"]) == 1  # two categories were one
    assert f"Copied {COUNT - 2} records, 2 left alone" in capsys.readouterr().out
