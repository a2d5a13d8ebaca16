"""`copy --family memories`, `copy` from LangGraph's own savers by name, and `export` without agents' tables."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from ci.private_servers import PostgreSQL
from locus_mysql import MySQLConfig, SyncMemoryStore, SyncMySQLCheckpointSaver
from locus_mysql.integrations.langgraph import MySQLSaver

from ..commands import Run, dsn_of
from ..conftest import MakeConfig
from ..integrations.langgraph import graphs


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    monkeypatch.setenv("LOCUS_MYSQL_DRIVER", "pymysql")
    return config


def fill_memories(config: MySQLConfig) -> None:
    with SyncMemoryStore(config) as store:
        store.put(("a",), "k", {"text": "green tea"})


def fill_graphs(config: MySQLConfig) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 1})


def test_a_copy_between_tables_takes_the_first_family_that_has_some(config: MySQLConfig, run: Run) -> None:
    fill_graphs(config)
    fill_memories(config)
    code, output, errors = run("copy", "--from", "mysql", "--to", f"{dsn_of(config)}?tenant=acme")
    assert (code, output) == (0, "Copied 2 rows.\n")
    assert "Copying graphs. These families have tables too, each named by --family: memories." in errors
    code, _, errors = run("copy", "--from", "langgraph-sqlite:x", "--to", "mysql", "--overwrite")
    assert code == 1
    assert "leave --overwrite out" in errors


def test_a_copy_onto_itself_and_a_foreign_side_are_refused(config: MySQLConfig, run: Run) -> None:
    code, _, errors = run("copy", "--family", "graphs", "--from", "mysql", "--to", "mysql")
    assert code == 1
    assert "the same" in errors
    code, _, errors = run("copy", "--family", "graphs", "--from", "file:x", "--to", "mysql")
    assert code == 1
    assert "'file' cannot be a side of this copy" in errors


def test_an_export_of_a_database_with_graphs_only_exports_graphs(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    fill_graphs(config)
    file = tmp_path / "all"
    assert run("export", str(file))[0] == 0
    assert json.loads(file.read_text().splitlines()[0])["family"] == "graphs"
    fill_memories(config)
    code, _, errors = run("export", str(tmp_path / "again"))
    assert code == 0
    assert "each named by --family: memories" in errors


def fill_saver(saver: Any) -> list[Any]:
    app = graphs.chat().compile(checkpointer=saver)
    for thread in ("a", "b"):
        for text in ("Hello", "and again"):
            app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})
    return [tuple(one) for one in saver.list(None)]


def in_mysql(config: MySQLConfig) -> list[Any]:
    with MySQLSaver(config) as saver:
        return [tuple(one) for one in saver.list(None)]


def by_id(found: list[Any]) -> list[Any]:
    return sorted(((one[0]["configurable"]["thread_id"], one[1]["id"], one[1], one[4]) for one in found), key=repr)


def test_sqlite_is_copied_by_its_name(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "graphs.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        wanted = fill_saver(saver)
    before = path.read_bytes()
    code, output, _ = run("copy", "--from", f"langgraph-sqlite:{path}", "--to", "mysql", "--dry-run")
    assert code == 0
    assert "2 threads" in output
    assert run("copy", "--from", f"langgraph-sqlite:{path}", "--to", "mysql")[0] == 0
    assert by_id(in_mysql(config)) == by_id(wanted) != []
    code, output, _ = run("copy", "--from", f"langgraph-sqlite:{path}", "--to", "mysql", "--thread", "a")
    assert code == 0
    assert "1 thread: 0 checkpoints copied" in output
    assert path.read_bytes() == before
    assert run("copy", "--from", "mysql", "--to", f"langgraph-sqlite:{tmp_path / 'back'}")[0] == 1


def test_a_missing_or_foreign_sqlite_file_is_named_and_not_created(
    config: MySQLConfig, run: Run, tmp_path: Path
) -> None:
    missing, foreign = tmp_path / "missing", tmp_path / "foreign"
    code, _, errors = run("copy", "--from", f"langgraph-sqlite:{missing}", "--to", "mysql")
    assert code == 1
    assert "There is no file" in errors
    assert not missing.exists()
    sqlite3.connect(foreign).execute("CREATE TABLE t (n)").connection.close()
    code, _, errors = run("copy", "--from", f"langgraph-sqlite:{foreign}", "--to", "mysql")
    assert code == 1
    assert "no such table" in errors


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
def test_postgresql_is_copied_by_its_name(config: MySQLConfig, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with PostgreSQL.start(print) as server:
        with PostgresSaver.from_conn_string(server.url) as saver:
            saver.setup()
            wanted = fill_saver(saver)
        monkeypatch.setenv("OLD", f"langgraph-postgres:{server.url.partition(':')[2]}")
        assert run("copy", "--from", "env:OLD", "--to", "mysql")[0] == 0
        assert by_id(in_mysql(config)) == by_id(wanted) != []
        code, output, _ = run("copy", "--from", "env:OLD", "--to", "mysql")
        assert code == 0
        assert "0 checkpoints copied" in output
        server_url = server.url
    code, _, errors = run("copy", "--from", "env:OLD", "--to", "mysql")
    assert code == 1
    assert "refused" in errors or "connection" in errors
    assert server_url.rpartition("@")[0].rpartition(":")[2] not in errors or "@" not in server_url
