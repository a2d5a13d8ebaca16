"""Graphs continue after an import, and deleted checkpoints stay deleted. The rest: `tests/integration/records`."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from locus_mysql import MySQLConfig, SyncMySQLCheckpointSaver
from locus_mysql.cli.main import main
from locus_mysql.integrations.langgraph import MySQLSaver

from ...commands import dsn_of
from ...conftest import MakeConfig

RunSql = Callable[..., tuple[Any, ...]]


class State(TypedDict):
    steps: Annotated[list[str], add]
    blob: bytes


def graph(saver: BaseCheckpointSaver[Any]) -> Any:
    def work(state: State) -> dict[str, Any]:
        return {"steps": [f"step {len(state['steps'])} " + "x" * 500], "blob": bytes(range(256)) * 20}

    def ask(state: State) -> dict[str, Any]:
        return {"steps": [interrupt("Order 4 chairs?")]}

    made = StateGraph(State)
    made.add_node("work", work)
    made.add_node("ask", ask)
    made.add_edge(START, "work")
    made.add_edge("work", "ask")
    made.add_edge("ask", END)
    return made.compile(checkpointer=saver)


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    return config


def fill(config: MySQLConfig) -> None:
    """Store a thread that was answered, one that waits, and a plain one of `SyncMySQLCheckpointSaver`."""
    with MySQLSaver(config) as saver:
        app = graph(saver)
        for thread in ("a", "ü/:*"):
            index = {"configurable": {"thread_id": thread}}
            for _ in range(3):
                app.invoke({"steps": ["begin"], "blob": b""}, index)
                if thread == "a":
                    app.invoke(Command(resume="yes"), index)
    with SyncMySQLCheckpointSaver(config) as plain:
        for index in range(3):
            plain.put(
                thread_id="plain",
                checkpoint_id=str(index),
                checkpoint_data={"n": [2**100, index], "π": None},
                metadata={"source": "é"},
            )


def tuples(config: MySQLConfig, thread_id: str) -> list[Any]:
    with MySQLSaver(config) as saver:
        return [tuple(one) for one in saver.list({"configurable": {"thread_id": thread_id}})]


def rows(run_sql: RunSql, config: MySQLConfig) -> Any:
    return run_sql(
        "SELECT thread_id, checkpoint_id, parent_id, ns, hidden, needs, metadata, run_key, created_at "
        f"FROM {config.database}.{config.table_prefix}graph_checkpoints ORDER BY thread_id, seq"
    )


def test_a_waiting_graph_continues_in_the_target(config: MySQLConfig, tmp_path: Path) -> None:
    fill(config)
    file = tmp_path / "graphs.jsonl"
    assert main(["export", str(file), "--family", "graphs", "--thread", "ü/:*"]) == 0
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    with MySQLSaver(config.model_copy(update={"tenant": "acme"})) as saver:
        ended = graph(saver).invoke(Command(resume="no"), {"configurable": {"thread_id": "ü/:*"}})
    assert ended["steps"][-1] == "no"


def test_deleted_checkpoints_that_others_need_stay_deleted(
    config: MySQLConfig, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config)
    with MySQLSaver(config) as saver:
        saver.prune(["a"], strategy="keep_latest")
    run_sql(f"UPDATE {config.database}.locus_graph_checkpoints SET hidden = 1 WHERE checkpoint_id = '1'")
    file = tmp_path / "graphs.jsonl"
    assert main(["export", str(file), "--family", "graphs"]) == 0
    assert main(["import", str(file), "--table-prefix", "other_"]) == 0
    other = config.model_copy(update={"table_prefix": "other_"})
    assert [(row[1], row[4]) for row in rows(run_sql, other)] == [(row[1], row[4]) for row in rows(run_sql, config)]
    assert tuples(other, "a") == tuples(config, "a") != []
    with SyncMySQLCheckpointSaver(other) as plain:
        assert plain.get(thread_id="plain", checkpoint_id="1") is None
        assert plain.get(thread_id="plain", checkpoint_id="2") is not None
