"""Vacuum removes what has expired in every registered family, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from locus.core.state import AgentState

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
)
from locus_mysql.cli import main as cli
from locus_mysql.families.registry import families
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore

from ..cli.test_main import dsn_of
from ..conftest import MakeConfig

RunSQL = Callable[..., tuple[Any, ...]]


def save_agents(config: MySQLConfig, name: str) -> None:
    with SyncMySQLCheckpointer(config) as store:
        store.save(AgentState(run_id="run"), name)


def save_graphs(config: MySQLConfig, name: str) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id=name, checkpoint_id="c", checkpoint_data={"a": 1})


def save_dicts(config: MySQLConfig, name: str) -> None:
    with SyncCheckpointStore(config) as store:
        store.save(name, {"a": 1})


def save_current(config: MySQLConfig, name: str) -> None:
    with SyncMySQLBackend(config) as backend:
        backend.save(name, {"a": 1})


def save_memories(config: MySQLConfig, name: str) -> None:
    with SyncMemoryStore(config) as store:
        store.put(("n",), name, 1, ttl_s=config.ttl_s)


def save_working(config: MySQLConfig, name: str) -> None:
    with SyncWorkingMemory(name, config, session_ttl_seconds=int(config.ttl_s or 0) or None) as memory:
        memory.set("a", 1)


def save_transcripts(config: MySQLConfig, name: str) -> None:
    with SyncTranscriptStore(config) as store:
        store.append(TranscriptKey("test", "app", name), [NewItem("a")])


#: For each family: saves a thread, a session or an item, with the configuration's time to live.
SAVING: dict[str, Callable[[MySQLConfig, str], None]] = {
    "agents": save_agents,
    "graphs": save_graphs,
    "dicts": save_dicts,
    "current": save_current,
    "memories": save_memories,
    "working": save_working,
    "transcripts": save_transcripts,
}

#: Families whose records never expire.
NEVER = {"memu"}


def test_every_family_is_covered() -> None:
    assert SAVING.keys() | NEVER == {family.name for family in families()}


@pytest.mark.parametrize("family", SAVING)
def test_vacuum_of_a_family_removes_what_has_expired_and_nothing_else(
    make_config: MakeConfig, run_sql: RunSQL, database: str, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config(driver="pymysql")
    for name, ttl_s in (("gone", 600), ("lasts", 6_000), ("stays", None)):
        SAVING[family](config.model_copy(update={"ttl_s": ttl_s}), name)
    expiring = run_sql(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = %s AND column_name = 'expires_at'",
        database,
    )
    rows = 0
    for (table,) in expiring:
        rows += run_sql(
            f"SELECT COUNT(*) FROM {database}.{table} WHERE expires_at < UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
        )[0][0]
        run_sql(
            f"UPDATE {database}.{table} SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"
            " WHERE expires_at < UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
        )
    assert rows >= 1
    before = stored(run_sql, database)
    assert cli.main(["vacuum", "--older-than-days", "30", "--family", family, "--dsn", dsn_of(config)]) == 0
    assert capsys.readouterr().out.startswith("Removed 1 ")
    after = stored(run_sql, database)
    assert not any("gone" in row for row in after)
    for name in ("lasts", "stays"):
        assert [row for row in after if name in row] == [row for row in before if name in row] != []


def stored(run_sql: RunSQL, database: str) -> list[str]:
    """Return every row of the schema as text."""
    tables = [name for (name,) in run_sql(f"SHOW TABLES FROM {database}")]
    return [f"{table} {row}" for table in tables for row in run_sql(f"SELECT * FROM {database}.{table}")]
