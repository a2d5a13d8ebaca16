"""`MySQLCheckpointSaver` and `SyncMySQLCheckpointSaver`: history, pending writes, and their exact guarantees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from locus_mysql.errors import CheckpointExists, InvalidInput

from ...conftest import EACH_WAY, ONE_OF_EACH, AnyStore, MakeConfig
from ...proxy import WireProxy
from .conftest import OpenSaver
from .turns import ids, put_turns, put_turns_after, state_of

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

State = dict[str, Any]
RunSQL = Callable[..., tuple[Any, ...]]
each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


@each_way
async def test_the_same_id_is_accepted_with_the_same_content_only(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    await put_turns(saver, 2)
    await saver.put(
        thread_id="thread",
        checkpoint_id="c1",
        checkpoint_data=state_of(1),
        parent_checkpoint_id=None,
        metadata={"turn": 1},
    )
    for changed in (
        {"checkpoint_data": state_of(3)},
        {"metadata": {"turn": 9}},
        {"parent_checkpoint_id": "c0"},
    ):
        same = {"checkpoint_data": state_of(1), "metadata": {"turn": 1}}
        with pytest.raises(CheckpointExists, match="c1"):
            await saver.put(thread_id="thread", checkpoint_id="c1", **{**same, **changed})
    assert await ids(saver, thread_id="thread") == ["c2", "c1"]
    assert (await saver.get(thread_id="thread", checkpoint_id="c1"))["checkpoint"] == state_of(1)


@one_of_each
@pytest.mark.parametrize(
    "value",
    [
        {"big": 2**80, "float": 1e300, "tiny": 5e-324},
        {"text": "café ☕ \U0001f600 \x00 ' \" \\ %s", "empty": "", "nested": [[[{"a": [None, True, False]}]]]},
        {"": {"": ""}, "z": 1, "a": 2},
        {},
        {"long": "x" * 400_000, "list": list(range(10_000))},
        {"half": "\ud800"},
    ],
)
async def test_loaded_checkpoints_equal_the_saved_ones_exactly(open_saver: OpenSaver, side: str, value: State) -> None:
    saver, other = open_saver(side), open_saver(side)
    await saver.put(thread_id="thread", checkpoint_id="c", checkpoint_data=value)
    found = (await other.get(thread_id="thread"))["checkpoint"]
    assert found == value
    assert list(found) == list(value)


@one_of_each
@pytest.mark.parametrize(
    "value",
    [{"at": datetime(2026, 1, 1)}, {"set": {1}}, {"pair": (1, 2)}, {1: "key"}, {"bytes": b"x"}, ["no dict"]],
)
async def test_values_that_json_cannot_represent_exactly_are_refused(
    open_saver: OpenSaver, side: str, value: Any
) -> None:
    saver = open_saver(side)
    with pytest.raises(InvalidInput):
        await saver.put(thread_id="thread", checkpoint_id="c", checkpoint_data=value)
    with pytest.raises(InvalidInput):
        await saver.put_writes(
            thread_id="thread", checkpoint_id="c", task_id="t", writes=[("x", value)] * 2 + [("y", {1})]
        )
    assert await saver.get(thread_id="thread") is None


@each_way
async def test_a_task_s_writes_are_replaced_together(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    ids = {"thread_id": "thread", "checkpoint_id": "c1"}
    await saver.put_writes(**ids, task_id="b", writes=[("x", 1), ("y", {"z": [1, 2]}), ("x", None)])
    await saver.put_writes(**ids, task_id="a", writes=[("x", "first")])
    assert await other.get_writes(**ids) == [  # before the checkpoint exists
        {"task_id": "a", "idx": 0, "channel": "x", "value": "first"},
        {"task_id": "b", "idx": 0, "channel": "x", "value": 1},
        {"task_id": "b", "idx": 1, "channel": "y", "value": {"z": [1, 2]}},
        {"task_id": "b", "idx": 2, "channel": "x", "value": None},
    ]
    await put_turns(saver, 1)
    await saver.put_writes(**ids, task_id="b", writes=[("y", 9)])
    assert await other.get_writes(**ids, task_id="b") == [{"task_id": "b", "idx": 0, "channel": "y", "value": 9}]
    await saver.put_writes(**ids, task_id="b", writes=[])
    assert await other.get_writes(**ids, task_id="b") == []
    assert len(await other.get_writes(**ids)) == 1
    assert await other.get_writes(thread_id="thread", checkpoint_id="c1", checkpoint_ns="another") == []


@one_of_each
async def test_namespaces_are_apart_and_may_be_of_any_length(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    long = "child|" * 50_000
    for turns, ns in ((1, "default"), (2, "other"), (3, long), (4, f"{long}x")):
        await put_turns(saver, turns, ns=ns)
    for turns, ns in ((1, "default"), (2, "other"), (3, long), (4, f"{long}x")):
        assert (await other.get(thread_id="thread", checkpoint_ns=ns))["checkpoint"] == state_of(turns)
        assert len(await other.list_checkpoints(thread_id="thread", checkpoint_ns=ns)) == turns
    assert (await other.get(thread_id="thread", checkpoint_ns=""))["checkpoint"] == state_of(1)


@one_of_each
async def test_threads_are_listed_the_one_saved_to_last_first(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for name in ("a/1", "a/2", "b/1", "a/1"):
        await saver.put(thread_id=name, checkpoint_id=f"{name}{len(await saver.list_threads())}", checkpoint_data={})
    assert await saver.list_threads() == ["a/1", "b/1", "a/2"]
    assert await saver.list_threads(pattern="a/*") == ["a/1", "a/2"]
    assert await saver.list_threads(limit=1, offset=1) == ["b/1"]


@one_of_each
async def test_threads_are_in_the_order_of_saves_that_did_not_lock_them(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str
) -> None:
    saver = open_saver(side)
    for name in ("a", "b", "c", "d"):
        await put_turns(saver, 1, name)
    run_sql(f"UPDATE {database}.locus_graph_threads SET updated_at = updated_at - INTERVAL 5 DAY WHERE thread_id = 'd'")
    run_sql(
        f"UPDATE {database}.locus_graph_checkpoints SET created_at = created_at - INTERVAL 5 DAY WHERE thread_id = 'd'"
    )
    run_sql(f"UPDATE {database}.locus_graph_threads SET updated_at = updated_at - INTERVAL 20 SECOND")
    locked = run_sql(f"SELECT thread_id, updated_at FROM {database}.locus_graph_threads ORDER BY thread_id")
    for turn, name in enumerate(("b", "a", "c", "a"), start=2):
        data, ids = state_of(turn), {"thread_id": name, "checkpoint_id": f"x{turn}"}
        await saver.put(**ids, checkpoint_data=data, parent_checkpoint_id="c1")
    unchanged = run_sql(f"SELECT thread_id, updated_at FROM {database}.locus_graph_threads ORDER BY thread_id")
    assert unchanged == locked, "these saves should only share the lock"
    assert await saver.list_threads() == ["a", "c", "b", "d"]
    for index in range(4):
        assert await saver.list_threads(limit=1, offset=index) == [["a", "c", "b", "d"][index]]
    assert await saver.delete_checkpoint(thread_id="a", checkpoint_id="x5")
    assert await saver.list_threads() == ["a", "c", "b", "d"], "a deletion is no reason to move"
    assert await saver.vacuum(4) == 1  # the only checkpoint of d
    assert await saver.list_threads(limit=9) == ["a", "c", "b"]


@each_way
async def test_calls_are_one_round_trip(
    open_saver: OpenSaver, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    config = through_proxy()
    saver, cold = open_saver(side, config=config), open_saver(side, config=config)
    await put_turns(saver, 9)
    await cold.get(thread_id="absent")
    ids = {"thread_id": "thread"}
    calls: list[tuple[str, Callable[[], Any]]] = [
        (
            "put",
            lambda: saver.put(**ids, checkpoint_id="c10", checkpoint_data=state_of(10), parent_checkpoint_id="c9"),
        ),
        ("put to a new thread", lambda: saver.put(thread_id="new", checkpoint_id="1", checkpoint_data=state_of(9))),
        ("put without a parent", lambda: saver.put(**ids, checkpoint_id="c11", checkpoint_data=state_of(11))),
        ("get", lambda: saver.get(**ids)),
        ("get, cold", lambda: cold.get(**ids)),
        ("get by id", lambda: cold.get(**ids, checkpoint_id="c3")),
        ("list_checkpoints", lambda: cold.list_checkpoints(**ids)),
        ("put_writes", lambda: cold.put_writes(**ids, checkpoint_id="c9", task_id="t", writes=[("x", 1)] * 9)),
        ("get_writes", lambda: cold.get_writes(**ids, checkpoint_id="c9")),
        ("delete_checkpoint", lambda: cold.delete_checkpoint(**ids, checkpoint_id="c4")),
        ("prune", lambda: cold.prune(**ids, keep=3)),
        ("copy_thread", lambda: cold.copy_thread("thread", "copy")),
        ("list_threads", lambda: cold.list_threads()),
        ("delete_thread", lambda: cold.delete_thread("copy")),
    ]
    for name, call in calls:
        with proxy.counting() as count:
            await call()
        assert (name, count.round_trips, count.connections) == (name, 1, 0)


@one_of_each
async def test_a_load_transfers_only_what_the_process_does_not_have(
    open_saver: OpenSaver, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    config = through_proxy()
    saver, other = open_saver(side, config=config), open_saver(side, config=config)
    await put_turns(saver, 60)
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(60)
    with proxy.counting() as again:
        assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(60)
    await saver.put(thread_id="thread", checkpoint_id="c61", checkpoint_data=state_of(61), parent_checkpoint_id="c60")
    with proxy.counting() as grown:
        assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(61)
    assert again.bytes_received < 2_500
    assert grown.bytes_received < 4_000


@one_of_each
@pytest.mark.parametrize(
    "change",
    [
        "updated_at = updated_at - INTERVAL 2 MINUTE",
        "expires_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
        "expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
    ],
)
async def test_a_thread_that_is_not_as_expected_is_locked_by_the_save(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str, change: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 6)
    run_sql(f"UPDATE {database}.locus_graph_threads SET {change}")
    await put_turns_after(saver, 6, 8)
    for reader in (saver, other):
        assert (await reader.get(thread_id="thread"))["checkpoint"] == state_of(8)
    expired = "- INTERVAL 1 HOUR" in change
    assert await ids(other, thread_id="thread") == [f"c{turn}" for turn in range(8, 6 if expired else 0, -1)]
    ((recent, lasts),) = run_sql(
        "SELECT updated_at > UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE, expires_at IS NULL"
        f" FROM {database}.locus_graph_threads"
    )
    assert (recent, lasts) == (1, 1)


@one_of_each
async def test_many_at_once_on_one_thread_all_succeed(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 3)

    async def branch(store: AnyStore, number: int) -> None:
        data = {**state_of(3), "branch": number}
        data["messages"] = [*data["messages"], {"content": f"{number}" * 300}]
        await store.put(thread_id="thread", checkpoint_id=f"b{number}", checkpoint_data=data, parent_checkpoint_id="c3")

    await asyncio.gather(*(branch((saver, other)[number % 2], number) for number in range(12)))
    for number in range(12):
        found = await other.get(thread_id="thread", checkpoint_id=f"b{number}")
        assert found["checkpoint"]["branch"] == number
        assert found["checkpoint"]["messages"][-1] == {"content": f"{number}" * 300}
    assert len(await ids(saver, thread_id="thread")) == 15


async def test_both_sides_and_ddl_agree(open_saver: OpenSaver) -> None:
    one, other = open_saver("mysql-connector-async"), open_saver("pymysql-sync")
    assert one.store.ddl() == other.store.ddl()
    assert len(one.store.ddl()) == 5
    await put_turns(one, 3)
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(3)


async def test_a_history_takes_little_space(open_saver: OpenSaver, run_sql: RunSQL, database: str) -> None:
    saver = open_saver()
    await put_turns(saver, 200)
    ((whole,),) = run_sql(f"SELECT SUM(LENGTH(chunk)) FROM {database}.locus_graph_parts")
    ((rows,),) = run_sql(
        f"SELECT SUM(LENGTH(payload) + LENGTH(sources) + COALESCE(LENGTH(chunk), 0))"
        f" FROM {database}.locus_graph_checkpoints"
    )
    assert float(whole + rows) < 8 * len(str(state_of(200)))
