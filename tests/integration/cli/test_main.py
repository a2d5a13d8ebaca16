"""The operators' commands (health, vacuum, tables, import), run on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    SyncCheckpointStore,
    SyncMySQLCheckpointer,
    SyncMySQLCheckpointSaver,
)
from locus_mysql.cli import main as cli
from locus_mysql.config import MySQLConfig

from ..built_in import open_built_in
from ..commands import dsn_of
from ..drivers_under_test import ASYNC_DRIVERS

RunSql = Callable[..., tuple[Any, ...]]


@pytest.fixture
def dsn(config: MySQLConfig, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("LOCUS_MYSQL_DSN", raising=False)
    return dsn_of(config)


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_health_reports_a_server_that_accepts_reads_and_writes(
    driver: str, dsn: str, config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {"a": 1})
    assert cli.main(["health", "--dsn", dsn, "--driver", driver]) == 0
    output = capsys.readouterr().out
    assert f"through {driver}" in output
    assert "writes   accepted" in output
    assert "threads  1 of tenant 'default'" in output


@pytest.mark.parametrize(
    "command",
    [
        ["health"],
        ["health", "--family", "agents"],
        ["vacuum", "--older-than-days", "1"],
        ["export", "-"],
        ["export", "-", "--family", "dicts"],
        ["export", "-", "--family", "memories"],
        ["memories", "list"],
        ["session", "list"],
        ["threads"],
        ["threads", "--family", "dicts"],
        ["show", "t"],
        ["search", "x"],
        ["stats", "--family", "memories"],
        ["rm", "t", "--yes", "--family", "dicts"],
    ],
    ids=" ".join,
)
def test_without_tables_a_command_explains_how_to_make_them_and_makes_none(
    command: list[str], dsn: str, config: MySQLConfig, run_sql: RunSql, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "--dsn", dsn]) == 1
    output = capsys.readouterr().err
    assert f"Database {config.database!r} has no tables" in output
    assert "with prefix 'locus_'" in output
    assert "The first save creates the tables" in output
    assert "ddl_mode" not in output  # it is 'create' already
    assert "Existing tables" not in output
    assert run_sql(f"SHOW TABLES FROM {config.database}") == ()


def test_without_tables_of_a_family_a_command_names_those_that_exist(
    dsn: str, config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    for prefix in ("locus_", "other_"):
        with SyncMySQLCheckpointSaver(config.for_store(table_prefix=prefix)) as saver:
            saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"a": 1})
    with SyncCheckpointStore(config.for_store(table_prefix="other_")) as store:
        store.save("t", {"a": 1})
    assert cli.main(["export", "-", "--family", "dicts", "--dsn", dsn]) == 1
    assert capsys.readouterr().err.endswith(
        " Existing tables of locus-mysql in this database: graphs with prefix 'locus_'; "
        "graphs, dicts with prefix 'other_'.\n"
    )


def test_vacuum_removes_older_rows_and_reports_their_number(
    dsn: str, config: MySQLConfig, run_sql: RunSql, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("old", {"a": 1})
        store.save("new", {"a": 1})
        run_sql(
            f"UPDATE {config.database}.locus_store_threads t"
            f"  JOIN {config.database}.locus_store_checkpoints c USING (thread_id) "
            "SET t.updated_at = t.updated_at - INTERVAL 9 DAY, t.created_at = t.created_at - INTERVAL 9 DAY, "
            "c.created_at = c.created_at - INTERVAL 9 DAY WHERE thread_id = 'old'"
        )
        assert cli.main(["vacuum", "--older-than-days", "10", "--dsn", dsn]) == 0
        assert cli.main(["vacuum", "--older-than-days", "8.5", "--dsn", dsn]) == 0
        assert capsys.readouterr().out == "Removed nothing of dicts.\nRemoved 1 checkpoint of dicts.\n"
        assert store.list_threads() == ["new"]


async def fill_built_in(config: MySQLConfig) -> None:
    built_in = open_built_in(config)
    for number in range(3):
        await built_in.save(AgentState(messages=(Message.user(f"{number}"),)), "t", f"cp-{number}")
    await built_in.close()


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_copy_reads_the_built_in_table_by_any_driver_and_again_copies_nothing(
    driver: str, dsn: str, config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(fill_built_in(config))
    target = ["--to", dsn, "--to-option", f"driver={driver}", "--to-option", "table_prefix=app_"]
    source = ["--from", f"builtin-{dsn}", "--from-option", f"driver={driver}"]
    command = ["copy", *source, *target, "--to-option", "tenant=acme"]
    assert cli.main([*command, "--dry-run"]) == 0
    assert cli.main(command) == 0
    assert cli.main([*command, "--verify"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 thread: 3 checkpoints to copy.",
        "1 thread: 3 checkpoints copied.",
        "1 thread: 0 checkpoints copied, 3 already present, 3 identical on both sides.",
    ]
    with SyncMySQLCheckpointer(config.model_copy(update={"tenant": "acme", "table_prefix": "app_"})) as checkpointer:
        assert checkpointer.list_checkpoints("t") == ["cp-2", "cp-1", "cp-0"]


def test_copy_without_the_built_in_table_names_it(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["copy", "--from", f"builtin-{dsn}", "--from-option", "table=memory", "--to", dsn]) == 1
    output = capsys.readouterr().err
    assert "'memory'" in output
    assert "does not exist" in output
    assert output.count("\n") == 1
