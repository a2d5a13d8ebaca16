"""Health and vacuum of sessions: operators see their number and size, and vacuum removes expired sessions whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncWorkingMemory, TaskState
from locus_mysql.cli import main as cli
from locus_mysql.families import expired

from ...cli.test_main import dsn_of
from ...conftest import MakeConfig

pytestmark = pytest.mark.kept_tables("working")

PARTS = ("sessions", "entries", "checkpoints", "history")


def fill(session_id: str, config: MySQLConfig) -> None:
    """Store data of every kind in a session that expires."""
    with SyncWorkingMemory(session_id, config, session_ttl_s=3600) as memory:
        memory.set("city", "Bonn")
        memory.append_scratchpad("a note")
        memory.set_task_state(TaskState(task_id="t"))
        memory.create_checkpoint()


def test_vacuum_removes_all_of_expired_sessions_and_nothing_of_others(
    make_config: MakeConfig,
    run_sql: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expired, "AT_ONCE", 2)
    config: MySQLConfig = make_config(driver="pymysql")
    for number in range(5):
        fill(f"old-{number}", config)
    fill("new", config)
    before = {part: run_sql(f"SELECT COUNT(*) FROM {config.database}.locus_working_{part}")[0][0] for part in PARTS}
    run_sql(f"UPDATE {config.database}.locus_working_sessions SET expires_at = '2000-01-01' WHERE session_id <> 'new'")
    run_sql(f"UPDATE {config.database}.locus_working_ledger SET recorded_at = '2000-01-01' LIMIT 3")
    assert cli.main(["vacuum", "--family", "working", "--dsn", dsn_of(config)]) == 0
    assert capsys.readouterr().out == "Removed 5 expired sessions and 3 records of recent writes of working.\n"
    for part in PARTS:
        (left,) = run_sql(f"SELECT COUNT(*) FROM {config.database}.locus_working_{part}")[0]
        assert left == before[part] / 6, part
    with SyncWorkingMemory("new", config) as memory:
        assert memory.get("city") == "Bonn"
        assert memory.get_scratchpad() == ["a note"]
        assert len(memory.list_checkpoints()) == 1
    assert cli.main(["vacuum", "--older-than-days", "9", "--dsn", dsn_of(config)]) == 0
    assert capsys.readouterr().out == "working: nothing to remove.\n"


def test_health_reports_the_number_and_bytes_of_a_tenants_sessions(
    make_config: MakeConfig, run_sql: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    config: MySQLConfig = make_config(driver="pymysql")
    for session_id, tenant in (("a", "default"), ("b", "default"), ("gone", "default"), ("c", "acme")):
        where = make_config(driver="pymysql", tenant=tenant)
        with SyncWorkingMemory(session_id, where, session_ttl_s=3600) as memory:
            memory.set("k", "v" * 10)
            size_bytes = memory.stats().size_bytes
    run_sql(f"UPDATE {config.database}.locus_working_sessions SET expires_at = '2000-01-01' WHERE session_id = 'gone'")
    assert cli.main(["health", "--dsn", dsn_of(config)]) == 0
    output = capsys.readouterr().out
    assert f"sessions 2 of tenant 'default' with {2 * size_bytes} bytes, family working\n" in output
    assert "vacuum   removes now, or within an hour: 1 expired session and 4 records of recent writes\n" in output
    assert cli.main(["health", "--tenant", "acme", "--family", "working", "--dsn", dsn_of(config)]) == 0
    assert f"sessions 1 of tenant 'acme' with {size_bytes} bytes, family working\n" in capsys.readouterr().out
