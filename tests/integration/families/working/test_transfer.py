"""Sessions of working memory are exported and imported exactly, with checkpoints that can still be restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.cli.main import main
from locus_mysql.working import SyncWorkingMemory, TaskState

from ...cli.test_main import dsn_of
from ...conftest import MakeConfig

RunSql = Callable[..., tuple[Any, ...]]
TABLES = {
    "sessions": "session_id, stamp, ttl_us, variables, size_bytes, notes, notes_bytes, notes_version, last_note, "
    "checkpoints, kept, created_at, expires_at",
    "entries": "kind, name, value, size_bytes, version, used, expires_at",
    "checkpoints": "checkpoint_id, stamp, label, variables, notes, size_bytes, created_at",
    "history": "kind, name, version, valid_until, value, size_bytes, expires_at",
}


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    return config


def session(config: MySQLConfig, name: str = "ü/1", **options: Any) -> Any:
    return SyncWorkingMemory(name, config, **options)


def fill(config: MySQLConfig) -> str:
    """Store sessions, and return the id of a checkpoint of the first."""
    with session(config, session_ttl_seconds=10_000) as memory:
        memory.set("π", {"b": [1, 2**200, -0.0], "a": "é"})
        memory.set("n", 3)
        memory.increment("n", 4)
        memory.set("soon", "gone", ttl_seconds=5_000)
        memory.append_scratchpad("first note")
        memory.set_task_state(TaskState(task_id="t", description="Order chairs").start())
        checkpoint = str(memory.create_checkpoint("before"))
        memory.delete("π")
        memory.set("n", "later")
        memory.append_scratchpad("second note")
        memory.create_checkpoint()
    with session(config, "other") as memory:
        memory.set("x", None)
    return checkpoint


def stored(run_sql: RunSql, config: MySQLConfig) -> dict[str, Any]:
    name = f"{config.database}.{config.table_prefix}working"
    return {table: run_sql(f"SELECT {what} FROM {name}_{table} ORDER BY 1, 2, 3, 4") for table, what in TABLES.items()}


def test_an_export_is_imported_exactly(config: MySQLConfig, run_sql: RunSql, tmp_path: Path) -> None:
    checkpoint = fill(config)
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working"]) == 0
    assert main(["import", str(file), "--prefix", "new_"]) == 0
    other = config.model_copy(update={"table_prefix": "new_"})
    assert stored(run_sql, other) == stored(run_sql, config)
    with session(other) as memory:
        assert memory.get_all() == {"n": "later", "soon": "gone"}
        memory.restore_checkpoint(checkpoint)
        assert memory.get_all() == {"π": {"b": [1, 2**200, -0.0], "a": "é"}, "n": 7, "soon": "gone"}
        assert memory.get_scratchpad() == ["first note"]
        memory.append_scratchpad("third note")
        assert memory.increment("n") == 8


def test_it_needs_no_pattern_and_accepts_another_tenant(config: MySQLConfig, tmp_path: Path) -> None:
    fill(config)
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working", "--pattern", "ü*"]) == 0
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    with session(config.model_copy(update={"tenant": "acme"})) as memory:
        assert memory.get("n") == "later"
        assert memory.compare_and_set("n", "later", 1)
    with session(config.model_copy(update={"tenant": "acme"}), "other") as memory:
        assert not memory.exists("x")


def test_a_repeated_import_changes_nothing_and_another_session_stays(
    config: MySQLConfig, run_sql: RunSql, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(config)
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working"]) == 0
    before = stored(run_sql, config)
    assert main(["import", str(file)]) == 0
    assert "2 already present" in capsys.readouterr().out
    assert stored(run_sql, config) == before
    with session(config, "other") as memory:
        memory.set("x", "mine")
    assert main(["import", str(file)]) == 1
    captured = capsys.readouterr()
    assert "1 different in the target" in captured.out
    assert "'other' differs" in captured.err
    with session(config, "other") as memory:
        assert memory.get("x") == "mine"


def test_an_expired_session_makes_room_for_the_imported_one(
    config: MySQLConfig, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config)
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working"]) == 0
    run_sql(f"UPDATE {config.database}.locus_working_sessions SET expires_at = '2026-01-01' WHERE session_id = 'other'")
    assert main(["import", str(file)]) == 0
    with session(config, "other") as memory:
        assert memory.exists("x")


def test_a_damaged_session_is_named_and_left_out(
    config: MySQLConfig, run_sql: RunSql, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(config)
    run_sql(f"UPDATE {config.database}.locus_working_entries SET value = '1' WHERE name = 'x'")
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working"]) == 1
    assert "session 'other' cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"value": "{"}, {"kind": "nothing"}, {"version": -1}, {"name": "x" * 600}])
def test_a_wrong_line_is_refused_by_its_number(
    config: MySQLConfig, tmp_path: Path, change: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(config)
    file = tmp_path / "sessions.jsonl"
    assert main(["export", str(file), "--family", "working", "--pattern", "other"]) == 0
    first, line, end = map(json.loads, file.read_text().splitlines())
    del line["crc32"]
    line["entries"][0].update(change)
    file.write_text("\n".join(map(json.dumps, (first, line, end))) + "\n")
    first.pop("crc32")
    end.pop("crc32")
    file.write_text("\n".join(map(json.dumps, (first, line, end))) + "\n")
    assert main(["import", str(file), "--tenant", "acme"]) == 1
    assert "Line 2" in capsys.readouterr().err
