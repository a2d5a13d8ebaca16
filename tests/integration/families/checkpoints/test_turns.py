"""Turns: one writer of a thread at a time, also of several processes, frozen ones and forks."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import anyio
import pytest

from locus_mysql import NO_CHECKPOINT, CheckpointStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import InvalidInput, ThreadBusy, TurnLost

from ....thoroughness import FULL
from ...conftest import MakeConfig
from ...drivers.sides import wait_until
from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S
from .conftest import Make, RunSQL
from .turns import SHORT_S, another_process, held, receive, state_of

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.both_sides]


async def test_a_turn_on_a_thread_that_is_not_there_shows_nothing(make_store: Make, sql: RunSQL) -> None:
    one, other = make_store(), make_store()
    async with held(one, "new"):
        assert await other.exists("new") is False
        assert await other.list_threads() == []
        assert await other.count() == 0
        assert await other.list_with_metadata() == []
        assert await other.load("new") is None
        assert await other.delete("new", "x") is False
        assert await other.vacuum(0) == 0
        assert await other.copy_thread("new", "copy") is False
        with pytest.raises(ThreadBusy):
            async with held(other, "new", wait_s=0):
                raise AssertionError
    assert sql("SELECT COUNT(*) FROM locus_store_threads") == ((0,),)


async def test_a_block_within_a_block_is_part_of_the_turn(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with held(one, "t") as outer:
        async with held(one, "t", wait_s=0) as inner:
            assert inner is outer
        with pytest.raises(ThreadBusy):
            async with held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("a"))
    async with held(other, "t", wait_s=0):
        pass


@pytest.mark.parametrize("how", ["delete", "forget_tenant", "vacuum", "expire and vacuum"])
async def test_a_thread_that_another_removes_during_a_turn(
    make_store: Make, expire: Callable[[str], None], how: str
) -> None:
    """Vacuum skips the thread. Deleting the thread ends the turn; the turn does not recreate the thread."""
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"))
    async with held(one, "t"):
        if how == "delete":
            assert await other.delete("t") is True
        elif how == "forget_tenant":
            assert await other.forget_tenant() == 1
        elif how == "vacuum":
            assert await other.vacuum(0) == 0
        else:
            expire("t")
            assert await other.vacuum(30) == 0
        if "vacuum" in how:
            await one.save("t", state_of("a", "b"))
        else:
            with pytest.raises(TurnLost):
                await one.save("t", state_of("a", "b"))
    assert await other.exists("t") is ("vacuum" in how)


@pytest.mark.parametrize("whole", [True, False])
async def test_a_turn_outlives_a_delete_within_it(make_store: Make, sql: RunSQL, whole: bool) -> None:
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"), "first")
    async with held(one, "t"):
        assert await one.delete("t", *([] if whole else ["first"])) is True
        assert await other.exists("t") is False
        assert await other.list_threads() == []
        with pytest.raises(ThreadBusy):
            async with held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("b"), expected=NO_CHECKPOINT)
        assert await other.load("t") == state_of("b")
        assert await one.delete("t") is True
        assert await one.delete("t") is False
    assert sql("SELECT COUNT(*) FROM locus_store_threads") == ((0,),)


@pytest.mark.parametrize("held_by", ["the copier", "another"])
async def test_a_turn_outlives_a_copy_onto_its_thread(make_store: Make, held_by: str) -> None:
    one, other = make_store(), make_store()
    await one.save("source", state_of("a"), "first")
    copier = one if held_by == "the copier" else other
    async with held(one, "copy"):
        assert await copier.copy_thread("source", "copy") is True
        assert await other.load("copy") == state_of("a")
        with pytest.raises(ThreadBusy):
            async with held(other, "copy", wait_s=0):
                raise AssertionError
        await one.save("copy", state_of("a", "b"), expected="first")
    assert await other.load("copy") == state_of("a", "b")
    assert await other.load("source") == state_of("a")


async def test_the_copy_of_a_thread_with_a_turn_has_none(make_store: Make) -> None:
    one, other = make_store(), make_store()
    await one.save("source", state_of("a"))
    async with held(one, "source"):
        assert await one.copy_thread("source", "copy") is True
        async with held(other, "copy", wait_s=0):
            pass


async def test_a_turn_is_renewed_while_it_is_held(make_store: Make, sql: RunSQL) -> None:
    one = make_store()

    def until() -> Any:
        return sql("SELECT recorded_at FROM locus_store_ledger WHERE recorded_at > UTC_TIMESTAMP(6)")[0][0]

    async with held(one, "t", lease_s=SHORT_S):
        first = until()
        end = time.monotonic() + DEADLINE_S
        while not (until() - first).total_seconds() > SHORT_S:
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
        await one.save("t", state_of("a"))


async def test_closing_a_store_within_a_turn_ends_neither(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with held(one, "t"):
        await one.close()
        with pytest.raises(ThreadBusy):
            async with held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("a"))
    async with held(other, "t", wait_s=0):
        pass


@pytest.mark.parametrize("numbers", [{"wait_s": -1}, {"wait_s": "x"}, {"lease_s": 0}, {"lease_s": True}])
async def test_times_of_a_turn_are_checked(store: Any, numbers: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store.store.turn("t", **numbers)


# Nine concurrent turns


# Tasks


async def test_a_task_begun_in_a_turn_belongs_to_it_and_not_to_the_next(make_config: MakeConfig) -> None:
    async with CheckpointStore(make_config(driver="mysql-connector")) as store:
        saved, over = asyncio.Event(), asyncio.Event()

        async def save_late() -> None:
            await store.save("t", state_of("a"))
            saved.set()
            await over.wait()
            with pytest.raises(TurnLost):
                await store.save("t", state_of("late"))
            async with store.turn("t"):
                await store.save("t", state_of("in time"))

        async with store.turn("t"):
            task = asyncio.create_task(save_late())
            await saved.wait()
        over.set()
        await task
        assert await store.load("t") == state_of("in time")


async def test_a_turn_of_a_cancelled_anyio_scope_is_given_back(make_config: MakeConfig) -> None:
    """Such a scope, as Starlette's when a client leaves, cancels again at each step of the event loop."""
    config = make_config(driver="mysql-connector")
    async with CheckpointStore(config) as other:
        await other.exists("t")

        async def take() -> None:
            async with CheckpointStore(config) as one, one.turn("t"):
                await one.save("t", state_of("a"))

        for steps in range(0, 400, 10 if FULL else 25):
            async with anyio.create_task_group() as group:
                group.start_soon(take)
                for _ in range(steps):
                    await asyncio.sleep(0)
                group.cancel_scope.cancel()
            async with other.turn("t", wait_s=0):
                pass


@pytest.mark.slow
async def test_a_caller_waiting_for_a_turn_polls_the_server_rarely(make_config: MakeConfig, proxy: WireProxy) -> None:
    """Nine waiters in one process poll as often as one: a few times at first, then about once a second."""
    config = make_config(driver="mysql-connector")
    away = make_config(driver="mysql-connector", host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    async with CheckpointStore(config) as holder, CheckpointStore(away) as store:
        await store.exists("t")

        async def wait() -> None:
            with pytest.raises(ThreadBusy):
                async with store.turn("t", wait_s=2):
                    raise AssertionError

        async with holder.turn("t"):
            with proxy.counting() as count:
                await asyncio.gather(*(wait() for _ in range(9)))
        assert 0 < count.round_trips < 20


def hold_a_turn(line: Connection, config: MySQLConfig, lease_s: float) -> None:
    """Take a turn and save; on each request, save again and send the outcome."""
    with SyncCheckpointStore(config) as store, store.turn("t", lease_s=lease_s):
        store.save("t", state_of("a"))
        line.send("has it")
        line.recv()
        try:
            store.save("t", state_of("a", "late"))
        except TurnLost:
            line.send("lost it")
        else:
            line.send("saved")


@pytest.mark.slow
def test_a_frozen_holder_whose_turn_nobody_took_saves_nothing_either(make_config: MakeConfig, sql: RunSQL) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, SHORT_S) as (process, line):
        assert receive(line) == "has it"
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: sql("SELECT MAX(recorded_at) < UTC_TIMESTAMP(6) FROM locus_store_ledger") == ((1,),))
        os.kill(process.pid, signal.SIGCONT)
        line.send("save")
        assert receive(line) == "lost it"
        assert store.load("t") == state_of("a")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_have_the_turn_of_its_parent(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, SyncCheckpointStore(config) as other:
        with store.turn("t"):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    try:
                        store.save("t", state_of("child"))
                    except TurnLost:
                        code = 2
                    with store.turn("t", wait_s=0):
                        code = 3
                except ThreadBusy:
                    code = 0 if code == 2 else 4
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            with pytest.raises(ThreadBusy), other.turn("t", wait_s=0):
                raise AssertionError
            store.save("t", state_of("parent"))
        assert store.load("t") == state_of("parent")
