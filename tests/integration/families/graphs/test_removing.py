"""Deleting, pruning and copying graphs: what stays is whole, and a removed checkpoint never comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint, ThreadExists

from ...conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from ...proxy import WireProxy
from .conftest import OpenSaver
from .turns import ids, put_turns, put_turns_after, state_of

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

RunSQL = Callable[..., tuple[Any, ...]]
each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


@each_way
async def test_a_deleted_checkpoint_leaves_the_others_whole(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 20)
    for gone in (1, 16, 8, 20, 19):
        assert await other.delete_checkpoint(thread_id="thread", checkpoint_id=f"c{gone}")
        assert not await other.delete_checkpoint(thread_id="thread", checkpoint_id=f"c{gone}")
    kept = [turn for turn in range(20, 0, -1) if turn not in (1, 16, 8, 20, 19)]
    for reader in (saver, other):
        found = await reader.list_checkpoints(thread_id="thread", limit=100)
        assert [one["checkpoint"] for one in found] == [state_of(turn) for turn in kept]
    await saver.put(thread_id="thread", checkpoint_id="c20", checkpoint_data=state_of(25), parent_checkpoint_id="c18")
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(25)


@each_way
async def test_pruning_keeps_the_newest_of_each_namespace(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 20)
    await put_turns(saver, 6, ns="child")
    await saver.put_writes(thread_id="thread", checkpoint_id="c3", task_id="t", writes=[("x", 1)])
    assert await saver.prune(thread_id="thread", keep=5, checkpoint_ns="child") == 1
    assert await saver.prune(thread_id="thread", keep=3) == 17 + 2
    assert await ids(other, thread_id="thread", checkpoint_ns="default") == ["c20", "c19", "c18"]
    assert await ids(other, thread_id="thread", checkpoint_ns="child") == ["c6", "c5", "c4"]
    found = await other.list_checkpoints(thread_id="thread", checkpoint_ns="default")
    assert [one["checkpoint"] for one in found] == [state_of(20), state_of(19), state_of(18)]
    assert await other.get_writes(thread_id="thread", checkpoint_id="c3") == []
    assert await saver.prune(thread_id="thread", keep=3) == 0
    await saver.prune(thread_id="thread")
    ((parts,),) = run_sql(f"SELECT COUNT(*) FROM {database}.locus_graph_parts")
    assert 1 < parts <= 8, "parts that nothing needs are kept"
    await put_turns_after(saver, 20, 30)
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(30)


@each_way
async def test_a_save_removes_what_is_beyond_the_number_to_keep(
    open_saver: OpenSaver, through_proxy: MakeConfig, proxy: WireProxy, side: str, run_sql: RunSQL, database: str
) -> None:
    config = through_proxy(keep_checkpoints=3)
    saver, other = open_saver(side, config=config), open_saver(side, config=config)
    await put_turns(saver, 5, ns="child")
    await put_turns(saver, 9)
    with proxy.counting() as count:
        await put_turns_after(saver, 9, 10)
    assert count.round_trips == 1
    proxy.drop_after_send()
    await put_turns_after(saver, 10, 11)
    await other.get(thread_id="thread")
    await put_turns_after(saver, 11, 12)
    await put_turns_after(other, 12, 13)  # what it has loaded is outdated
    await put_turns_after(saver, 13, 14)
    for reader in (saver, other, open_saver(side)):
        found = await reader.list_checkpoints(thread_id="thread", checkpoint_ns="default")
        assert [one["checkpoint_id"] for one in found] == ["c14", "c13", "c12"]
        assert [one["checkpoint"] for one in found] == [state_of(14), state_of(13), state_of(12)]
        assert await ids(reader, thread_id="thread", checkpoint_ns="child") == ["c5", "c4", "c3"]
        found = await reader.list_checkpoints(thread_id="thread")
        assert [one["checkpoint_ns"] for one in found] == ["default"] * 3 + ["child"] * 3
        assert await ids(reader, thread_id="thread", before="c13") == ["c12", "c5", "c4", "c3"]
        assert await ids(reader, thread_id="thread", before="c13", checkpoint_ns="child") == []
    assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_graph_checkpoints") == ((6,),)


@one_of_each
async def test_checkpoints_recreated_by_another_process_are_never_mixed_with_earlier_ones(
    open_saver: OpenSaver, side: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 12)
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(12)
    await other.delete_thread("thread")
    for turn in range(1, 13):
        await other.put(
            thread_id="thread", checkpoint_id=f"c{turn}", checkpoint_data={"messages": ["other"] * 100 * turn}
        )
    assert (await saver.get(thread_id="thread"))["checkpoint"] == {"messages": ["other"] * 1200}
    await other.delete_thread("thread")
    await put_turns(other, 12)
    await saver.put(thread_id="thread", checkpoint_id="c13", checkpoint_data=state_of(13), parent_checkpoint_id="c12")
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(13)
    await other.delete_thread("thread")
    await saver.put(thread_id="thread", checkpoint_id="c14", checkpoint_data=state_of(14), parent_checkpoint_id="c13")
    assert (await other.get(thread_id="thread"))["checkpoint"] == state_of(14)


@each_way
async def test_a_copy_has_everything_and_a_life_of_its_own(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    await put_turns(saver, 9)
    await put_turns(saver, 2, ns="child")
    await saver.put_writes(thread_id="thread", checkpoint_id="c9", task_id="t", writes=[("x", 1)])
    assert await saver.copy_thread("thread", "copy")
    assert not await saver.copy_thread("absent", "nowhere")
    with pytest.raises(ThreadExists):
        await saver.copy_thread("thread", "copy")
    assert await ids(other, thread_id="copy") == await ids(other, thread_id="thread")
    assert (await other.get(thread_id="copy", checkpoint_ns="child"))["checkpoint"] == state_of(2)
    assert len(await other.get_writes(thread_id="copy", checkpoint_id="c9")) == 1
    await saver.put(thread_id="copy", checkpoint_id="c10", checkpoint_data=state_of(10), parent_checkpoint_id="c9")
    await saver.delete_thread("thread")
    assert (await other.get(thread_id="copy"))["checkpoint"] == state_of(10)
    assert (await other.get(thread_id="copy", checkpoint_id="c5"))["checkpoint"] == state_of(5)


async def test_saves_and_prunes_at_once_leave_every_checkpoint_whole(open_saver: OpenSaver) -> None:
    saver, other = open_saver("mysql-connector-async"), open_saver("mysql-connector-async")
    await put_turns(saver, 2)

    async def prune() -> None:
        for _ in range(8):
            await other.prune(thread_id="thread", keep=2)

    await asyncio.gather(put_turns_after(saver, 2, 24), prune())
    for reader in (saver, open_saver()):
        found = await reader.list_checkpoints(thread_id="thread", limit=100)
        assert found[0]["checkpoint_id"] == "c24"
        for one in found:
            assert one["checkpoint"] == state_of(int(one["checkpoint_id"][1:]))


async def test_a_damaged_row_stays_one_when_its_thread_is_copied(
    open_saver: OpenSaver, run_sql: Callable[..., Any], database: str
) -> None:
    saver = open_saver(cache_bytes=0)
    await put_turns(saver, 3)
    for payload in (b"", b"\x01", b"\x01abcdefgh"):
        run_sql(f"UPDATE {database}.locus_graph_checkpoints SET payload = %s WHERE thread_id = 'thread'", payload)
        await saver.delete_thread("copy")
        assert await saver.copy_thread("thread", "copy")
        with pytest.raises(CorruptCheckpoint, match="'c3' of thread 'copy'"):
            await saver.get(thread_id="copy")
