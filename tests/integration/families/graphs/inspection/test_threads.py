"""Inspection of graphs' threads: pages, histories with namespaces, states as JSON values, and statistics."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from locus_mysql.config import MySQLConfig
from locus_mysql.families.graphs.inspection.threads import GraphThreads
from locus_mysql.families.graphs.payload import seal, stored_thread, write_identity
from locus_mysql.families.graphs.store import MySQLCheckpointSaver
from locus_mysql.families.inspection import owners, statistics
from locus_mysql.families.inspection.msgpack import TYPE
from locus_mysql.families.inspection.owner_rows import OWNERS
from locus_mysql.families.inspection.records import Window
from locus_mysql.families.inspection.turns import first_saved
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.integrations.langgraph import AsyncMySQLSaver
from locus_mysql.runtime.sealing import Sealing
from tests.integration.integrations.langgraph import graphs

from ....conftest import MakeConfig
from ....proxy import WireProxy

pytestmark = pytest.mark.kept_tables("graphs")

RunSql = Callable[..., tuple[Any, ...]]


@pytest.fixture
async def saver(config: MySQLConfig) -> AsyncIterator[AsyncMySQLSaver]:
    async with AsyncMySQLSaver(config) as saver:
        yield saver


@pytest.fixture
async def inspector(config: MySQLConfig) -> AsyncIterator[Inspector]:
    async with Inspector(config) as inspector:
        yield inspector


def thread(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


async def talk(saver: AsyncMySQLSaver, thread_id: str, *texts: str) -> None:
    graph = graphs.chat().compile(checkpointer=saver)
    for text in texts:
        await graph.ainvoke({"messages": [("user", text)]}, thread(thread_id))


async def test_a_conversation_is_shown_as_the_graph_has_it(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await talk(saver, "t", "Hello", "x" * 2_000)
    view = await inspector.state("graphs", "t")
    assert view is not None
    texts = [(message.role, message.text[:15]) for message in view.messages]
    assert texts == [
        ("user", "Hello"),
        ("assistant", "You said: Hello"),
        ("user", "x" * 15),
        ("assistant", "You said: xxxxx"),
    ]
    assert view.state["count"] == 2
    assert view.state["messages"][0][TYPE] == "langchain_core.messages.human.HumanMessage"
    json.dumps(view.state, allow_nan=False)
    found = await saver.aget_tuple(thread("t"))
    assert found is not None
    assert view.checkpoint.checkpoint_id == found.checkpoint["id"]
    assert view.checkpoint.metadata == found.metadata


async def test_every_state_of_a_history_is_as_it_was(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await talk(saver, "t", "one", "two", "three")
    graph = graphs.chat().compile(checkpointer=saver)
    expected = {
        snapshot.config["configurable"]["checkpoint_id"]: (
            [message.content for message in snapshot.values.get("messages", ())],
            None if snapshot.parent_config is None else snapshot.parent_config["configurable"]["checkpoint_id"],
        )
        async for snapshot in graph.aget_state_history(thread("t"))
    }
    first = await inspector.history("graphs", "t", limit=4)
    rest = await inspector.history("graphs", "t", cursor=first.cursor)
    rows = [*first.items, *rest.items]
    assert (len(first.items), rest.cursor) == (4, None)
    assert [row.checkpoint_id for row in rows] == list(expected)
    for row in rows:
        view = await inspector.state("graphs", "t", row.checkpoint_id)
        at = await inspector.state("graphs", "t", at=row.created_at)
        assert view is not None
        assert at is not None
        assert at.checkpoint.checkpoint_id == row.checkpoint_id
        assert ([message.text for message in view.messages], row.parent_id) == expected[row.checkpoint_id]
    assert await inspector.state("graphs", "t", at=rows[-1].created_at - timedelta(seconds=1)) is None


async def test_each_message_is_of_the_checkpoint_that_first_had_it(
    saver: AsyncMySQLSaver, inspector: Inspector
) -> None:
    await talk(saver, "t", "one", "two")
    view = await inspector.state("graphs", "t")
    assert view is not None
    turns = await inspector.states("graphs", "t")
    times = first_saved(view, turns)
    then = await inspector.states("graphs", "t", at=turns[3].created_at)
    assert [turn.checkpoint_id for turn in then] == [turn.checkpoint_id for turn in turns[:4]]
    assert await inspector.states("graphs", "t", at=turns[0].created_at - timedelta(seconds=1)) == []
    for index in range(4):
        known = await inspector.state("graphs", "t", at=times[index])
        before = await inspector.state("graphs", "t", at=times[index] - timedelta(microseconds=1))
        assert known is not None
        assert len(known.messages) > index
        assert before is None or len(before.messages) <= index


async def test_pending_writes_show_what_a_graph_waits_for(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    graph = graphs.asking().compile(checkpointer=saver)
    await graph.ainvoke({"messages": [("user", "Who am I?")]}, thread("asks"))
    before = await inspector.changed([("graphs", "asks")])
    view = await inspector.state("graphs", "asks")
    assert view is not None
    (write,) = view.writes
    assert (write.channel, write.value[0]["value"]) == ("__interrupt__", "What is your name?")
    await graph.ainvoke(Command(resume="Ada"), thread("asks"))
    again = await inspector.state("graphs", "asks")
    assert again is not None
    assert "Ada, how old are you?" in json.dumps([write.value for write in again.writes])
    assert await inspector.changed([("graphs", "asks"), ("graphs", "none")]) != before


async def test_subgraphs_have_namespaces_of_their_own(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    graph = graphs.nested().compile(checkpointer=saver)
    await graph.ainvoke({"messages": [("user", "Hi")]}, thread("n"))
    rows = (await inspector.history("graphs", "n")).items
    spaces = {row.namespace for row in rows}
    assert len(spaces) == 3
    (whole,) = (await inspector.threads("graphs")).items
    newest = next(row for row in rows if row.namespace == "")
    assert (whole.checkpoint_id, whole.checkpoints) == (newest.checkpoint_id, len(rows))
    for row in rows:
        view = await inspector.state("graphs", "n", row.checkpoint_id, namespace=row.namespace)
        assert view is not None
        assert view.checkpoint == row


class Lines(TypedDict):
    lines: Annotated[list[str], DeltaChannel(lambda state, writes: [*state, *chain(*writes)], snapshot_frequency=3)]
    facts: Annotated[dict[str, int], DeltaChannel(lambda state, writes: state | writes[-1], snapshot_frequency=99)]


async def test_channels_that_are_stored_as_writes_are_put_together(
    saver: AsyncMySQLSaver, inspector: Inspector
) -> None:
    builder = StateGraph(Lines)
    builder.add_node("say", lambda state: {"lines": [f"reply {len(state['lines'])}"], "facts": {"n": 1}})
    builder.add_edge(START, "say")
    graph = builder.compile(checkpointer=saver)
    for number in range(5):
        await graph.ainvoke({"lines": [f"said {number}"], "facts": {}}, thread("d"))
    checked = 0
    async for snapshot in graph.aget_state_history(thread("d")):
        checkpoint_id = snapshot.config["configurable"]["checkpoint_id"]
        view = await inspector.state("graphs", "d", checkpoint_id)
        assert view is not None
        assert view.state.get("lines", []) == snapshot.values.get("lines", [])
        checked += 1
    assert checked > 10
    view = await inspector.state("graphs", "d")
    assert view is not None
    assert view.state["facts"][TYPE] == "DeltaChannel"
    assert {"n": 1} in view.state["facts"]["writes"]


async def test_a_thread_with_one_namespace_of_its_own_is_shown_without_naming_it(
    config: MySQLConfig, inspector: Inspector
) -> None:
    async with MySQLCheckpointSaver(config) as plain:
        await plain.put(thread_id="t", checkpoint_id="1", checkpoint_data={"n": 1}, checkpoint_ns="mine")
    for checkpoint_id in (None, "1"):
        view = await inspector.state("graphs", "t", checkpoint_id)
        assert view is not None
        assert (view.state, view.checkpoint.namespace) == ({"n": 1}, "mine")
    assert await inspector.state("graphs", "t", namespace="other") is None
    assert await inspector.state("graphs", "none") is None


async def test_removed_checkpoints_are_neither_listed_nor_shown_as_parents(
    saver: AsyncMySQLSaver, config: MySQLConfig, inspector: Inspector
) -> None:
    async with MySQLCheckpointSaver(config) as plain:
        for number in ("1", "2", "3"):
            parent = str(int(number) - 1) if number != "1" else None
            await plain.put(
                thread_id="p", checkpoint_id=number, checkpoint_data={"n": number}, parent_checkpoint_id=parent
            )
        await plain.delete_checkpoint(thread_id="p", checkpoint_id="2")
        rows = (await inspector.history("graphs", "p")).items
        assert [(row.checkpoint_id, row.parent_id, row.namespace) for row in rows] == [
            ("3", None, "default"),
            ("1", None, "default"),
        ]
        view = await inspector.state("graphs", "p")
        assert view is not None
        assert view.state == {"n": "3"}
        await plain.put_writes(thread_id="p", checkpoint_id="3", task_id="task", writes=[("out", {"a": 1}), ("b", 2)])
        view = await inspector.state("graphs", "p", "3")
        assert view is not None
        assert [(write.task_id, write.channel, write.value) for write in view.writes] == [
            ("task", "out", {"a": 1}),
            ("task", "b", 2),
        ]
        assert await inspector.state("graphs", "p", "2") is None


async def test_a_pattern_that_no_index_serves_is_searched_step_by_step(
    config: MySQLConfig, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "STEP", 5)
    async with MySQLCheckpointSaver(config) as plain:
        for number in range(23):
            await plain.put(thread_id=f"t{number:02}", checkpoint_id="1", checkpoint_data={})
    found, sizes, cursor = [], [], None
    while True:
        page = await inspector.threads("graphs", pattern="*5", cursor=cursor)
        found += [row.thread_id for row in page.items]
        sizes.append(len(page.items))
        cursor = page.cursor
        if cursor is None:
            break
    assert found == ["t15", "t05"]
    assert sizes == [0, 1, 0, 1, 0]


async def test_the_growth_of_a_thread_is_that_of_its_days(
    saver: AsyncMySQLSaver, inspector: Inspector, run_sql: RunSql
) -> None:
    await talk(saver, "large", "x" * 5_000, "y" * 5_000)
    assert (await inspector.statistics("graphs")).largest[0].bytes_per_day is None
    run_sql(f"UPDATE {inspector.config.database}.locus_graph_threads SET created_at = created_at - INTERVAL 4 DAY")
    large = (await inspector.statistics("graphs")).largest[0]
    assert large.bytes_per_day == pytest.approx(large.thread.size_bytes / 4, rel=0.01)


async def test_statistics_of_many_threads_are_estimated_from_a_sample(
    config: MySQLConfig, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MySQLCheckpointSaver(config) as plain:
        for number in range(60):
            await plain.put(thread_id=f"t{number}", checkpoint_id="1", checkpoint_data={"a": "b" * 100})
    whole = await inspector.statistics("graphs")
    assert (whole.threads, whole.checkpoints, whole.sampled) == (60, 60, None)
    monkeypatch.setattr(statistics, "SAMPLE", 20)
    found = await inspector.statistics("graphs")
    assert found.sampled is not None
    assert 5 <= found.sampled <= 40  # one in three, by a hash of the ids, which are constant
    assert (found.threads, found.checkpoints) == (60, 60)
    assert sum(day.checkpoints for day in found.days) == pytest.approx(60, abs=2)
    assert found.size_bytes == pytest.approx(whole.size_bytes, rel=0.2)


async def test_words_are_found_in_the_newest_states(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await talk(saver, "a", "My parcel is lost, in Köln")
    await talk(saver, "b", "parcelling")
    (hit,) = await inspector.search("parcel köln", family="graphs")
    assert (hit.thread_id, hit.score) == ("a", 1.0)
    assert "parcel is lost" in hit.snippet
    assert [hit.thread_id for hit in await inspector.search("PARCELLING parcel", family="graphs")] == ["b", "a"]
    assert await inspector.search("HumanMessage", family="graphs") == []


async def test_checkpoints_are_found_by_their_metadata(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await talk(saver, "a", "Hi")
    found = await inspector.by_metadata("step", 1, family="graphs")
    assert [(one.thread_id, one.checkpoint.metadata["step"]) for one in found] == [("a", 1)]
    assert await inspector.by_metadata("step", "1", family="graphs") == []


async def test_only_the_newest_checkpoints_of_a_thread_are_searched_for_metadata(
    saver: AsyncMySQLSaver, inspector: Inspector
) -> None:
    await talk(saver, "a", *map(str, range(8)))  # each turn adds three checkpoints
    newest = [row.metadata["step"] for row in (await inspector.history("graphs", "a")).items]
    assert len(newest) == 24
    found = [await inspector.by_metadata("step", step, family="graphs") for step in newest]
    assert [bool(one) for one in found] == [True] * 20 + [False] * 4


async def test_numbers_of_a_conversation_are_listed_by_turn(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await talk(saver, "a", *map(str, range(12)))
    turns = await inspector.states("graphs", "a", 30)
    assert [turn.iterations for turn in turns] == list(range(5, 35))


async def test_code_named_in_stored_data_is_never_imported(
    saver: AsyncMySQLSaver, inspector: Inspector, config: MySQLConfig, run_sql: RunSql
) -> None:
    await talk(saver, "t", "Hi")
    graph = graphs.asking().compile(checkpointer=saver)
    await graph.ainvoke({"messages": [("user", "Hi")]}, thread("hostile"))
    evil = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(["antigravity", "fly", "x"])))
    table = f"{config.database}.locus_graph_writes"
    texts_of_ids = (
        "CONVERT(tenant USING utf8mb4), checkpoint_key, CONVERT(task_id USING utf8mb4)"  # binary on OceanBase
    )
    rows = run_sql(f"SELECT {texts_of_ids}, idx, channel, task_path FROM {table} WHERE thread_id = 'hostile'")
    for kind in (b"msgpack", b"pickle"):
        for tenant, checkpoint_key, task_id, idx, *texts in rows:
            identity = write_identity(
                stored_thread(tenant, "hostile", Sealing(None, "graphs")), checkpoint_key, task_id, idx, *texts
            )
            payload = seal(len(kind).to_bytes(2, "little") + kind + evil, "none", identity)
            which = "WHERE thread_id = 'hostile' AND checkpoint_key = %s AND task_id = %s AND idx = %s"
            run_sql(f"UPDATE {table} SET payload = %s {which}", payload, checkpoint_key, task_id, idx)
        view = await inspector.state("graphs", "hostile")
        assert view is not None
        (write,) = view.writes
        assert write.value in ({TYPE: "antigravity.fly", "value": "x"}, f"<pickle, {len(evil)} bytes>")
    assert "antigravity" not in sys.modules


async def test_damage_is_shown_and_breaks_no_list(
    saver: AsyncMySQLSaver, inspector: Inspector, config: MySQLConfig, run_sql: RunSql
) -> None:
    await talk(saver, "whole", "Hi")
    await talk(saver, "broken", "Hi", "x" * 3_000)
    run_sql(
        f"UPDATE {config.database}.locus_graph_checkpoints SET payload = 'nothing of ours', metadata = '{{' "
        "WHERE thread_id = 'broken'"
    )
    page = await inspector.threads("graphs")
    assert {row.thread_id for row in page.items} == {"whole", "broken"}
    rows = (await inspector.history("graphs", "broken")).items
    assert all(row.damage is not None for row in (*rows, *(row for row in page.items if row.thread_id == "broken")))
    view = await inspector.state("graphs", "broken")
    assert view is not None
    assert view.damage is not None
    assert await inspector.states("graphs", "whole")
    assert (await inspector.search("Hi", family="graphs"))[0].thread_id == "whole"


async def test_the_intact_part_of_a_damaged_state_is_shown(
    config: MySQLConfig, inspector: Inspector, run_sql: RunSql
) -> None:
    async with MySQLCheckpointSaver(config) as plain:
        await plain.put(
            thread_id="t", checkpoint_id="1", checkpoint_data={"small": 1, "large": "x" * 2_000, "other": "y" * 2_000}
        )
    (payload,) = run_sql(f"SELECT chunk FROM {config.database}.locus_graph_parts ORDER BY part LIMIT 1")[0]
    run_sql(f"UPDATE {config.database}.locus_graph_parts SET chunk = %s WHERE chunk = %s", payload[:-9], payload)
    view = await inspector.state("graphs", "t")
    assert view is not None
    assert view.damage is not None
    assert (view.state["small"], view.state["other"]) == (1, "y" * 2_000)
    assert view.state["large"].startswith("<damaged: ")


@pytest.mark.kept_tables
async def test_a_page_walks_its_index_and_reads_each_threads_rows_by_keys(config: MySQLConfig, run_sql: RunSql) -> None:
    database = config.database
    async with MySQLCheckpointSaver(config) as plain:
        await plain.put(thread_id="t", checkpoint_id="1", checkpoint_data={})
    run_sql(
        f"INSERT INTO {database}.locus_graph_threads (tenant, thread_id, last_seq, epoch, created_at, updated_at)"
        " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 900)"
        " SELECT tenant, CONCAT('t', n), 1, epoch, created_at, updated_at - INTERVAL n SECOND"
        f"  FROM numbers JOIN {database}.locus_graph_threads WHERE thread_id = 't'"
    )
    run_sql(f"ANALYZE TABLE {database}.locus_graph_threads, {database}.locus_graph_checkpoints")
    rows = GraphThreads(config).owners
    position = {"updated_at": datetime(2026, 1, 1), "thread_id": "t3"}
    for condition, values in (("", {}), rows.after(position), (" AND o.thread_id LIKE '%7'", {})):
        page = rows.statement(OWNERS, {"CONDITIONS": condition}, limit=50, **values)
        text = page.sql.replace("`locus_", f"`{database}`.`locus_")
        plan = str(run_sql(f"EXPLAIN FORMAT=TREE {text.replace('%7', '%%7')}", *page.params)[0][0])
        assert "using recent" in plan
        assert re.search(r"\(reverse\)|iterate backwards", plan)  # the second is of 8.0 before 8.0.33
        assert re.search(r"Table scan on c\b", plan) is None
        assert "Sort" not in plan[plan.index("Limit: 50") : plan.index("using recent")]


async def save_long(saver: AsyncMySQLSaver, thread_id: str, count: int, checkpoints: int) -> None:
    """Save a conversation of ``count`` messages at once, and then checkpoints with one more message each."""
    messages = [HumanMessage(f"Message {n} of the parcel. " + "x" * 50, id=str(n)) for n in range(count + checkpoints)]
    parent: dict[str, Any] = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    for step in range(checkpoints + 1):
        label = f"{step + 1:032}.1"
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"messages": messages[: count + step], "count": step},
            "channel_versions": {"messages": label, "count": label},
        }
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        parent = await saver.aput(parent, checkpoint, metadata, checkpoint["channel_versions"])


async def test_of_a_long_conversation_a_page_reads_a_part(saver: AsyncMySQLSaver, inspector: Inspector) -> None:
    await save_long(saver, "t", 1_500, 30)
    whole = await inspector.state("graphs", "t")
    assert whole is not None
    assert len(whole.messages) == 1_530
    for window, first, last in ((Window(200), 1_330, 1_530), (Window(200, 0), 0, 200), (Window(200, 700), 700, 900)):
        view = await inspector.state("graphs", "t", window=window)
        assert view is not None
        assert view.messages == whole.messages[first:last]
        assert (view.before, view.after) == (first, 1_530 - last)
        assert list(view.state["messages"]) == whole.state["messages"]
        turns = await inspector.states("graphs", "t", 20)
        assert [turn.iterations for turn in turns] == list(range(11, 31))
        assert [turn.lists["messages"].item_count for turn in turns] == list(range(1_511, 1_531))
        times = first_saved(view, turns)
        assert times == first_saved(whole, turns) == {1_500 + n: turns[n - 11 + 1].created_at for n in range(11, 30)}


async def test_the_turns_of_a_conversation_are_read_with_two_queries(
    saver: AsyncMySQLSaver, through_proxy: MakeConfig, proxy: WireProxy
) -> None:
    await save_long(saver, "t", 1_200, 40)
    async with Inspector(through_proxy()) as inspector:
        await inspector.states("graphs", "t", 1)
        with proxy.counting() as count:
            turns = await inspector.states("graphs", "t", 100)
    assert len(turns) == 41
    assert count.round_trips == 2
    # 41 rows without their parts, and one conversation of 1,240 messages
    assert count.bytes_received < 41 * 2_000 + 600_000
