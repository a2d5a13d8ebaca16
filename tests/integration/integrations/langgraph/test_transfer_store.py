"""Copies from any LangGraph store, here that of ``langgraph-checkpoint-mysql``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.store.mysql.pymysql import PyMySQLStore

from locus_mysql import MySQLConfig
from locus_mysql.cli.main import main
from locus_mysql.errors import Unavailable
from locus_mysql.integrations.langgraph import MySQLStore, copy_items
from locus_mysql.integrations.langgraph.transfer import stores
from locus_mysql.records.moving import Moving
from locus_mysql.records.transfer import RowTarget
from locus_mysql.transfer.engine import TransferReport

from ...commands import dsn_of
from ...conftest import MakeConfig

RunSQL = Callable[..., tuple[Any, ...]]
NAMESPACES = (("users", "ada"), ("users", "adam"), ("Users",), ("f_o", "%"), ("é", "🙂"))


@pytest.fixture
def published(make_config: MakeConfig, run_sql: RunSQL, database: str) -> Iterator[tuple[MySQLConfig, PyMySQLStore]]:
    """Yield the published store, filled, in a separate schema."""
    config = make_config(database=f"{database}_old", driver="pymysql")
    run_sql(f"CREATE DATABASE {config.database}")
    with PyMySQLStore.from_conn_string(dsn_of(config)) as store:
        store.setup()
        for namespace in NAMESPACES:
            for n in range(3):
                store.put(namespace, f"k{n}", {"text": f"tea {n}", "n": n, "f": n + 0.5, "π": [None, True, {"a": ""}]})
            store.put(namespace, 'q"\\%', {})
        store.put(("users", "ada"), "k1", {"text": "coffee"})
        store.put(("users", "ada"), "k2", None)
        run_sql(f"UPDATE {config.database}.store SET created_at = created_at - INTERVAL 400 DAY WHERE `key` = 'k0'")
        yield config, store
    run_sql(f"DROP DATABASE {config.database}")


COUNT = 4 * len(NAMESPACES) - 1


def assert_all_there(source: PyMySQLStore, target: MySQLConfig) -> None:
    with MySQLStore(target) as store:
        found = {(item.namespace, item.key): item for item in store.search((), limit=1_000)}
        items = [item for namespace in NAMESPACES for item in source.search(namespace, limit=1_000)]
        ours = [item for item in items if item.namespace in NAMESPACES]
        assert {(item.namespace, item.key) for item in ours} == found.keys()
        assert len(found) == COUNT
        for item in ours:
            same = found[item.namespace, item.key]
            assert same.value == item.value
            assert same.created_at.replace(tzinfo=None) == item.created_at
            assert same.updated_at.replace(tzinfo=None) == item.updated_at
        assert store.search(("users", "ada"), query="coffee")[0].key == "k1"


async def test_items_are_copied_as_they_are_with_their_times(
    driver: str, published: tuple[MySQLConfig, PyMySQLStore], make_config: MakeConfig
) -> None:
    _, source = published
    target = make_config(driver=driver)
    dry = await copy_items(source, target, TransferReport("item", dry_run=True))
    assert str(dry) == f"To copy: {COUNT} items."
    summary = await copy_items(source, target, TransferReport("item"))
    assert summary.complete
    assert str(summary) == f"Copied {COUNT} items, {COUNT} identical on both sides."
    assert_all_there(source, make_config(driver="pymysql"))
    again = await copy_items(source, target, TransferReport("item"))
    assert str(again) == f"Copied 0 items, {COUNT} already present, {COUNT} identical on both sides."


async def test_an_import_resumes_where_it_stopped_and_leaves_later_items_alone(
    published: tuple[MySQLConfig, PyMySQLStore], make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, source = published
    target = make_config(driver="pymysql")
    monkeypatch.setattr(stores, "PAGE_ITEMS", 2)
    monkeypatch.setattr(Moving, "max_rows", 2)
    write, calls = RowTarget.write, []

    async def stopping(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise Unavailable("gone")
        await write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(RowTarget, "write", stopping)
        with pytest.raises(Unavailable):
            await copy_items(source, target, TransferReport("item"))
    summary = await copy_items(source, target, TransferReport("item"))
    assert (summary.copied, summary.present) == (COUNT - 4, 4)  # the last ones waited for the next page
    assert_all_there(source, target)
    with MySQLStore(target) as store:
        store.put(("users", "ada"), "k0", {"text": "mine"})
        reported: list[str] = []
        summary = await copy_items(source, target, TransferReport("item", notify=reported.append))
        assert not summary.complete
        assert (summary.copied, summary.present, summary.differing) == (0, COUNT - 1, 1)
        assert reported == ["Item 'k0' in ('users', 'ada') differs in the tables."]
        item = store.get(("users", "ada"), "k0")
        assert item is not None
        assert item.value == {"text": "mine"}


async def test_items_that_cannot_be_stored_are_reported(
    published: tuple[MySQLConfig, PyMySQLStore], make_config: MakeConfig, run_sql: RunSQL
) -> None:
    config, source = published
    long, deep = "é" * 500, "[" * 95 + "]" * 95
    table = f"{config.database}.store"
    run_sql(f"INSERT INTO {table} (prefix, `key`, value) VALUES (%s, 'long', '1'), ('', 'none', '1')", long)
    run_sql(f"INSERT INTO {table} (prefix, `key`, value) VALUES ('u', 'deep', %s), ('u', 'null', 'null')", deep)
    run_sql(f"UPDATE {table} SET created_at = NULL, updated_at = NULL WHERE `key` = 'null'")
    reported: list[str] = []
    summary = await copy_items(source, make_config(driver="pymysql"), TransferReport("item", notify=reported.append))
    assert not summary.complete
    assert (summary.copied, summary.left_out) == (COUNT + 1, 3)
    assert len(reported) == 3
    assert all("cannot be" in one for one in reported)
    again = await copy_items(source, make_config(driver="pymysql"), TransferReport("item"))
    assert again.present == COUNT + 1


def test_the_command_copies(
    published: tuple[MySQLConfig, PyMySQLStore], make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = published
    target = make_config(driver="pymysql")
    source = f"langgraph-{dsn_of(config)}"
    command = ["copy", "--family", "memories", "--from", source, "--to", dsn_of(target)]
    assert main([*command, "--dry-run"]) == 0
    assert f"To copy: {COUNT} items." in capsys.readouterr().out
    assert main([*command, "--tenant", "acme"]) == 0
    assert f"Copied {COUNT} items, {COUNT} identical on both sides." in capsys.readouterr().out
    with MySQLStore(target.model_copy(update={"tenant": "acme"})) as store:
        assert store.get(("users", "ada"), "k1") is not None
        store.put(("users", "ada"), "k1", {})
    assert main([*command, "--tenant", "acme"]) == 1
