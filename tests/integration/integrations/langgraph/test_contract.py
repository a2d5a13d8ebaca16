"""Requirements of LangGraph beyond its conformance suite, and guarantees of our savers beyond LangGraph."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import chain
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import TASKS
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from locus_mysql.errors import CorruptCheckpoint, InvalidInput, ThreadExists, UsageError
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from ...conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from .conftest import OpenSaver
from .graphs import Running, chat

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

RunSQL = Callable[..., tuple[Any, ...]]

each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)

CONFIG: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}


def checkpoint(values: dict[str, Any], versions: dict[str, Any] | None = None, **more: Any) -> Checkpoint:
    versions = dict.fromkeys(values, 1) if versions is None else versions
    fields: dict[str, Any] = {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {"__input__": {}},
        "updated_channels": None,
        **more,
    }
    return fields  # type: ignore[return-value]


async def listed(saver: BaseCheckpointSaver[Any], config: Any = CONFIG, **options: Any) -> list[Any]:
    return [found async for found in saver.alist(config, **options)]


@one_of_each
async def test_versions_that_collide_never_mix_up_values(open_saver: OpenSaver, side: str) -> None:
    """Savers that number versions by counting give two branches equal versions."""
    saver, other = open_saver(side), open_saver(side)
    root = await saver.aput(CONFIG, checkpoint({"log": ["root"] * 99}), {}, {"log": 1})
    branches = []
    for name in ("left", "right"):
        content = checkpoint({"log": [*["root"] * 99, name]}, {"log": 2})
        branches.append(await saver.aput(root, content, {}, {"log": 2}))
    for reader in (saver, other):
        for config, name in zip(branches, ("left", "right"), strict=True):
            assert (await reader.aget_tuple(config)).checkpoint["channel_values"]["log"][-1] == name


@one_of_each
async def test_writes_come_in_the_order_in_which_they_are_applied(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    stored = await saver.aput(CONFIG, checkpoint({}), {}, {})
    for task, path in (("z", "~a"), ("a", "~b"), ("b", ""), ("a2", "~b")):
        await saver.aput_writes(stored, [("x", task), ("y", task)], task, path)
    found = (await saver.aget_tuple(stored)).pending_writes
    assert [(task, channel) for task, channel, _ in found] == [
        (task, channel) for task in ("b", "z", "a", "a2") for channel in ("x", "y")
    ]


@each_way
async def test_writes_may_come_before_their_checkpoint(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    content = checkpoint({"a": 1})
    config: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": content["id"]}}
    await saver.aput_writes(config, [("a", 1)], "task")
    await saver.aput(CONFIG, content, {}, {"a": 1})
    assert (await saver.aget_tuple(config)).pending_writes == [("task", "a", 1)]


@one_of_each
async def test_sends_of_older_checkpoints_are_among_the_writes_of_their_parents(
    open_saver: OpenSaver, side: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    parent = await saver.aput(CONFIG, checkpoint({"a": 1}, v=3), {}, {"a": 1})
    await saver.aput_writes(parent, [(TASKS, Send("second", 2))], "b", "path2")
    await saver.aput_writes(parent, [("a", 5), (TASKS, Send("first", 1))], "a", "path1")
    child = await saver.aput(parent, checkpoint({"a": 2}, {"a": 2}, v=3), {}, {"a": 2})
    await other.aprune(["thread"])
    for reader in (saver, other):
        found = (await reader.aget_tuple(child)).checkpoint
        assert found["channel_values"][TASKS] == [Send("first", 1), Send("second", 2)]
        assert found["channel_versions"] == {"a": 2, TASKS: 2}
        assert len(await listed(reader)) == 1


class Reversal(CipherProtocol):
    """A cipher that encrypts the same bytes differently each time, as with a nonce."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversal", os.urandom(8) + plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "reversal"
        return ciphertext[8:][::-1]


@one_of_each
async def test_encrypted_values_are_nowhere_in_the_clear(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str
) -> None:
    saver = open_saver(side, serde=EncryptedSerializer(Reversal()), compression="none")
    graph = Running(chat().compile(checkpointer=saver))
    secret = "a secret that nobody reads " * 30
    for _ in range(3):
        await graph({"messages": [HumanMessage(secret)], "notes": {"secret": "small secret"}})
    other = open_saver(side, serde=EncryptedSerializer(Reversal()))
    found = (await other.aget_tuple(CONFIG)).checkpoint["channel_values"]
    assert [message.content for message in found["messages"]][::2] == [secret] * 3
    for table in ("graph_checkpoints", "graph_parts", "graph_writes"):
        for row in run_sql(f"SELECT * FROM {database}.locus_{table}"):
            for value in row:
                assert b"secret" not in (value if isinstance(value, bytes) else str(value).encode())


@one_of_each
async def test_a_filter_finds_what_metadata_contains(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    config = CONFIG
    for step in range(6):
        metadata: Any = {"source": "loop", "step": step, "even": step % 2 == 0, "tags": {"a": step, "b": [1, step]}}
        config = await saver.aput(config, checkpoint({}), metadata, {})
    for filter, steps in (
        ({"step": 3}, [3]),
        ({"even": True}, [4, 2, 0]),
        ({"even": 1}, []),
        ({"tags": {"a": 2}}, [2]),
        ({"source": "loop", "step": 9}, []),
        ({"absent": None}, []),
        ({}, [5, 4, 3, 2, 1, 0]),
    ):
        assert [found.metadata["step"] for found in await listed(saver, filter=filter)] == steps, filter
        assert [found.metadata["step"] for found in await listed(saver, filter=filter, limit=2)] == steps[:2], filter
    with pytest.raises(InvalidInput):
        await listed(saver, filter={"step": object()})


@one_of_each
async def test_all_threads_are_listed_and_long_histories_in_pages(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for thread, count in (("a", 3), ("b", 230), ("c", 1)):
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        for step in range(count):
            config = await saver.aput(config, checkpoint({"x": ["y" * 300, step]}), {"step": step}, {"x": 1})
    found = await listed(saver, None)
    assert [one.config["configurable"]["thread_id"] for one in found] == ["c"] + ["b"] * 230 + ["a"] * 3
    assert [one.metadata["step"] for one in found[1:231]] == list(range(229, -1, -1))
    assert all(one.checkpoint["channel_values"]["x"][1] == one.metadata["step"] for one in found)
    assert len(await listed(saver, None, limit=150)) == 150
    assert len(await listed(saver, None, filter={"step": 2})) == 2


# Channels that are stored as their writes


class Log(TypedDict):
    lines: Annotated[list[str], DeltaChannel(lambda state, writes: [*state, *chain(*writes)], snapshot_frequency=7)]
    whole: Annotated[list[str], lambda state, new: [*(state or []), *new]]


def logging() -> Any:
    def note(state: Log) -> Any:
        number = len(state["lines"])
        return {"lines": [f"line {number}"], "whole": [f"line {number}"]}

    builder = StateGraph(Log)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    builder.add_edge("note", END)
    return builder


def running(saver: Any) -> Running:
    return Running(logging().compile(checkpointer=saver))


@one_of_each
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_channels_stored_as_their_writes_are_rebuilt_at_every_checkpoint(
    open_saver: OpenSaver, side: str, durability: str
) -> None:
    for turn in range(20):
        saver = open_saver(side)
        found = await running(saver)({"lines": [f"in {turn}"], "whole": [f"in {turn}"]}, durability=durability)
        assert found["lines"] == found["whole"]
        assert len(found["lines"]) == 2 * (turn + 1)
    history = await running(open_saver(side)).history(CONFIG)
    for state in history:
        assert state.values.get("lines", []) == state.values.get("whole", [])
    assert len(history) >= 20


@one_of_each
async def test_the_history_of_a_channel_is_that_of_langgraphs_own_walk(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for turn in range(12):
        await running(saver)({"lines": [f"in {turn}"], "whole": [f"in {turn}"]})
    channels = ["lines", "whole", "absent"]
    for found in await listed(saver):
        ours = await saver.aget_delta_channel_history(config=found.config, channels=channels)
        theirs = await BaseCheckpointSaver.aget_delta_channel_history(saver, config=found.config, channels=channels)
        assert ours == theirs
    newest = await saver.aget_delta_channel_history(config=CONFIG, channels=["lines"])
    assert newest["lines"]["writes"]
    assert await saver.aget_delta_channel_history(config=CONFIG, channels=[]) == {}
    absent: Any = {"configurable": {"thread_id": "absent"}}
    assert await saver.aget_delta_channel_history(config=absent, channels=["a"]) == {"a": {"writes": []}}


@one_of_each
async def test_deleting_a_run_never_breaks_what_later_runs_need_of_it(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for turn in range(9):
        config: Any = {**CONFIG, "metadata": {"run_id": f"run {turn}"}}
        found = await running(saver)({"lines": [f"in {turn}"], "whole": [f"in {turn}"]}, config)
    await saver.adelete_for_runs(["run 6", "run 7"])
    runs = {one.metadata.get("run_id") for one in await listed(saver)}
    assert {"run 6", "run 7"}.isdisjoint(runs)
    (state, *_) = await running(open_saver(side)).history(CONFIG)
    assert state.values["lines"] == found["lines"] == found["whole"]
    await saver.acopy_thread("thread", "copy")
    await saver.adelete_thread("thread")
    copied = await running(open_saver(side))(
        {"lines": ["on"], "whole": ["on"]}, {"configurable": {"thread_id": "copy"}}
    )
    assert copied["lines"] == copied["whole"]
    assert copied["lines"][:-2] == found["lines"]


@one_of_each
@pytest.mark.parametrize("prunes", [False, True])
async def test_replacing_a_checkpoint_leaves_those_that_go_on_from_it_whole(
    open_saver: OpenSaver, side: str, prunes: bool
) -> None:
    saver, other = open_saver(side), open_saver(side)
    log = [f"line {number} " * 40 for number in range(30)]
    config = CONFIG
    contents = []
    for count in (10, 20, 30):
        contents.append(checkpoint({"log": log[:count]}, {"log": count}))
        config = await saver.aput(config, contents[-1], {}, {"log": count})
    places = [{"configurable": {**CONFIG["configurable"], "checkpoint_id": one["id"]}} for one in contents]
    for number in (1, 2, 1):  # the third checkpoint needs the second one's own part
        contents[number] = {**contents[number], "channel_values": {"log": [f"{number}", *log[5:]]}}
        await saver.aput(places[number - 1], contents[number], {}, {"log": number})
    if prunes:
        await other.aprune(["thread"])
        places, contents = places[2:], contents[2:]
    for reader in (saver, other, open_saver(side)):
        for config, content in zip(places, contents, strict=True):
            assert (await reader.aget_tuple(config)).checkpoint["channel_values"] == content["channel_values"]
        assert [one.checkpoint["id"] for one in await listed(reader)] == [one["id"] for one in contents[::-1]]


async def test_synchronous_methods_of_the_asynchronous_saver_work_from_other_threads(make_config: MakeConfig) -> None:
    async with AsyncMySQLSaver(make_config()) as saver:
        graph = chat().compile(checkpointer=saver)

        def converse() -> list[str]:
            graph.invoke({"messages": [HumanMessage("from a thread")]}, CONFIG)
            assert len(list(saver.list(CONFIG))) == 3
            return [message.content for message in graph.get_state(CONFIG).values["messages"]]

        assert await asyncio.to_thread(converse) == ["from a thread", "You said: from a thread"]


def test_synchronous_methods_of_the_asynchronous_saver_need_a_loop(make_config: MakeConfig) -> None:
    with pytest.raises(UsageError, match="MySQLSaver"):
        AsyncMySQLSaver(make_config()).get_tuple(CONFIG)


@pytest.mark.kept_tables  # a new schema without tables
async def test_savers_come_from_a_connection_string_and_make_their_tables(
    make_config: MakeConfig, server_dsn: str, database: str, run_sql: RunSQL
) -> None:
    dsn = f"{server_dsn.rpartition('/')[0]}/{database}"
    async with AsyncMySQLSaver.from_conn_string(dsn, driver="asyncmy") as saver:
        await saver.setup()
        assert len(run_sql(f"SHOW TABLES FROM {database}")) == 5
        await saver.aput(CONFIG, checkpoint({"a": 1}), {}, {"a": 1})
    with MySQLSaver.from_conn_string(dsn, driver="pymysql") as saver:
        saver.setup()
        assert saver.get_tuple(CONFIG).checkpoint["channel_values"] == {"a": 1}
        assert saver.get(CONFIG)["channel_values"] == {"a": 1}


@one_of_each
async def test_errors_of_wrong_calls_explain_what_to_do(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    await saver.aput(CONFIG, checkpoint({"a": 1}), {}, {"a": 1})
    await saver.acopy_thread("thread", "copy")
    with pytest.raises(ThreadExists):
        await saver.acopy_thread("thread", "copy")
    with pytest.raises(InvalidInput, match="1024"):
        await saver.aget_tuple({"configurable": {"thread_id": "x" * 1024}})


async def test_a_thread_of_another_store_is_refused(make_config: MakeConfig, open_saver: OpenSaver) -> None:
    from locus_mysql import SyncMySQLCheckpointSaver

    with SyncMySQLCheckpointSaver(make_config()) as plain:
        plain.put(thread_id="thread", checkpoint_id="c", checkpoint_data={"a": 1}, checkpoint_ns="x")
    config: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": "x"}}
    with pytest.raises(CorruptCheckpoint, match="LangGraph did not save"):
        await open_saver().aget_tuple(config)
