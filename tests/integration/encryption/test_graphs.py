"""Encrypted checkpoints of graphs: parts, copies, removals, identical saves, and LangGraph itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from locus_mysql import SyncMySQLCheckpointSaver
from locus_mysql.errors import CheckpointExists, CorruptCheckpoint, DecryptionFailed, EncryptionError
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.integrations.langgraph import MySQLSaver

from ...either_side import AnyStore
from ..conftest import MakeConfig
from ..contract.samples import SAMPLES
from .conftest import MARKER, RunSQL, keys

Places = Callable[..., list[str]]
SAMPLE = SAMPLES["graphs"]


@pytest.fixture
def saver(make_config: MakeConfig) -> Any:
    with SyncMySQLCheckpointSaver(make_config(driver="pymysql", encryption=keys(), compression="none")) as opened:
        yield opened


async def test_parts_of_values_in_the_places_of_others_are_detected(
    saver: Any, make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    await SAMPLE.fill(AnyStore(saver), "t")
    fresh = SyncMySQLCheckpointSaver(make_config(driver="pymysql", encryption=keys(), cache_bytes=0))
    table = f"{database}.locus_graph_parts"
    first, second = run_sql(f"SELECT part, chunk FROM {table} ORDER BY part")[:2]
    run_sql(f"UPDATE {table} SET chunk = %s WHERE part = %s", second[1], first[0])
    with pytest.raises(CorruptCheckpoint, match="has other content than when it was saved") as caught:
        fresh.get(thread_id="t", checkpoint_id="1")
    assert not isinstance(caught.value, DecryptionFailed)
    fresh.close()


async def test_parts_stay_readable_after_removals(saver: Any, make_config: MakeConfig) -> None:
    await SAMPLE.fill(AnyStore(saver), "t")
    before = saver.get(thread_id="t")
    saver.prune(thread_id="t", keep=1)
    fresh: Any = SyncMySQLCheckpointSaver(make_config(driver="pymysql", encryption=keys(), cache_bytes=0))
    assert fresh.get(thread_id="t")["checkpoint"] == before["checkpoint"]
    fresh.close()


def test_an_identical_save_is_recognised_across_keys_and_stores_no_digest_of_the_content(
    saver: Any, make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    for thread_id in ("t", "u"):
        saver.put(thread_id=thread_id, checkpoint_id="1", checkpoint_data={"n": 1})
    saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 1})
    with pytest.raises(CheckpointExists):
        saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 2})
    digests = {tokens[16:] for (tokens,) in run_sql(f"SELECT tokens FROM {database}.locus_graph_checkpoints")}
    assert len(digests) == 2
    with SyncMySQLCheckpointSaver(make_config(driver="pymysql", encryption=keys("2026-10"))) as other:
        other.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 1})
    with SyncMySQLCheckpointSaver(make_config(driver="pymysql", table_prefix="clear_")) as clear:
        clear.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 1})
    ((tokens,),) = run_sql(f"SELECT tokens FROM {database}.clear_graph_checkpoints")
    assert tokens[16:] not in digests


class State(TypedDict):
    """The state of a graph."""

    texts: list[str]


async def test_a_graph_of_langgraph_holds_no_clear_text(make_config: MakeConfig, columns_with: Places) -> None:
    from langgraph.graph import END, START, StateGraph

    def answer(state: State) -> State:
        return {"texts": [*state["texts"], f"{MARKER} answer " + "word " * 100]}

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    config: Any = {"configurable": {"thread_id": "t"}}
    with MySQLSaver(make_config(driver="pymysql", encryption=keys(), compression="none")) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"texts": [f"{MARKER} question"]}, config)
        compiled.invoke({"texts": [*compiled.get_state(config).values["texts"], f"{MARKER} more"]}, config)
        assert len(compiled.get_state(config).values["texts"]) == 4
        assert len(list(compiled.get_state_history(config))) == 6
    async with Inspector(make_config(encryption=keys())) as inspector:
        assert len(await inspector.states("graphs", "t")) == 6
    assert columns_with() == []
    without = MySQLSaver(make_config(driver="pymysql"))
    with pytest.raises(EncryptionError, match="of thread 't' is encrypted with key '2026-11'"):
        graph.compile(checkpointer=without).get_state(config)
    without.close()
