"""Turns: one writer of a thread at a time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from locus_mysql import NO_CHECKPOINT, CheckpointStore, SyncCheckpointStore
from locus_mysql.errors import InvalidInput, ThreadBusy, TurnLost

from ....thoroughness import FULL
from ...conftest import MakeConfig
from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S
from .conftest import Make, RunSQL
from .turns import SHORT_S, held, state_of

END_LEASES = "UPDATE locus_store_ledger SET recorded_at = UTC_TIMESTAMP(6) WHERE recorded_at > UTC_TIMESTAMP(6)"

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


@pytest.mark.parametrize("call", [("save", "t", state_of("a", "b")), ("delete", "t"), ("delete", "t", "first")])
async def test_nothing_is_written_under_a_turn_that_was_not_renewed(
    make_store: Make, sql: RunSQL, call: tuple[Any, ...]
) -> None:
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"), "first")
    async with held(one, "t") as turn:
        sql(END_LEASES)
        with pytest.raises(TurnLost):
            await getattr(one, call[0])(*call[1:])
        assert turn.lost
        assert await other.load("t") == state_of("a")
        async with held(other, "t", wait_s=0):
            with pytest.raises(TurnLost):
                await one.save("t", state_of("a", "b"))
            with pytest.raises(TurnLost):
                await one.delete("t")
            await other.save("t", state_of("a", "c"))
    assert await one.load("t") == state_of("a", "c")
    await one.save("t", state_of("a", "c", "d"))


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


async def test_leaving_a_block_by_an_error_gives_the_turn_back(make_store: Make) -> None:
    one, other = make_store(), make_store()
    with pytest.raises(LookupError):
        async with held(one, "t"):
            raise LookupError
    async with held(other, "t", wait_s=0):
        pass


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


async def test_of_nine_turns_at_once_each_builds_on_the_one_before(make_config: MakeConfig) -> None:
    stores = [CheckpointStore(make_config(driver="mysql-connector")) for _ in range(3)]

    async def turn(number: int) -> None:
        store = stores[number % 3]
        async with store.turn("t", wait_s=DEADLINE_S):
            state = await store.load("t") or {"turns": []}
            await asyncio.sleep(0)
            await store.save("t", {"turns": [*state["turns"], number]})

    await asyncio.gather(*map(turn, range(9)))
    state = await stores[0].load("t")
    assert state is not None
    assert sorted(state["turns"]) == list(range(9))
    for store in stores:
        await store.close()


def test_of_nine_turns_of_threads_at_once_each_builds_on_the_one_before(make_config: MakeConfig) -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(SyncCheckpointStore(make_config(driver="pymysql"))) for _ in range(3)]

        def turn(number: int) -> None:
            store = stores[number % 3]
            with store.turn("t", wait_s=DEADLINE_S):
                state = store.load("t") or {"turns": []}
                store.save("t", {"turns": [*state["turns"], number]})

        threads = [threading.Thread(target=turn, args=(number,)) for number in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        state = stores[0].load("t")
        assert state is not None
        assert sorted(state["turns"]) == list(range(9))


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


async def test_a_task_cancelled_at_any_moment_leaves_the_turn_free(make_config: MakeConfig) -> None:
    config = make_config(driver="mysql-connector")
    async with CheckpointStore(config) as one, CheckpointStore(config) as other:
        await other.exists("t")
        await one.exists("t")

        async def take() -> None:
            async with one.turn("t"):
                await one.save("t", state_of("a"))

        for steps in range(40):
            task = asyncio.create_task(take())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with other.turn("t", wait_s=0):
                pass


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


async def test_a_turn_keeps_others_out_until_it_ends(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with held(one, "t"):
        await one.save("t", state_of("a"))
        with pytest.raises(ThreadBusy) as raised:
            async with held(other, "t", wait_s=0):
                raise AssertionError
        assert (raised.value.thread_id, raised.value.wait_s) == ("t", 0)
        async with held(other, "another thread", wait_s=0):
            pass
        await one.save("t", state_of("a", "b"))
    async with held(other, "t", wait_s=0):
        await other.save("t", state_of("a", "b", "c"))
    assert await one.load("t") == state_of("a", "b", "c")


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
