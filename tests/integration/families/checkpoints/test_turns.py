"""Several writers of one thread: saves that expect a checkpoint, and turns."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

import pytest

from locus_mysql import NO_CHECKPOINT, CheckpointStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.errors import Conflict, InvalidInput, ThreadBusy, TurnLost
from locus_mysql.families.checkpoints.leases import Lease, LeaseOperations

from ...conftest import MakeConfig
from ...drivers.sides import wait_until
from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S, PROCESSES
from .conftest import Make, RunSQL

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.both_sides]

SHORT_S = 0.5


def state_of(*turns: str) -> dict[str, Any]:
    """Return a state large enough to be stored as a delta of the one before it."""
    return {"messages": [turn * 400 for turn in turns]}


class Held:
    """A turn of either side, awaited here."""

    def __init__(self, store: Any, *args: Any, **options: Any) -> None:
        self._block = store.wrapped.turn(*args, **options)
        self._blocking = isinstance(self._block, AbstractContextManager)

    async def __aenter__(self) -> Any:
        return self._block.__enter__() if self._blocking else await self._block.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._blocking:
            self._block.__exit__(*error)
        else:
            await self._block.__aexit__(*error)


# Saves that expect a checkpoint


async def test_a_save_that_expects_the_newest_checkpoint_is_carried_out(make_store: Make) -> None:
    store, other = make_store(), make_store()
    first = await store.save("t", state_of("a"), expected=NO_CHECKPOINT)
    second = await other.save("t", state_of("a", "b"), expected=first)
    third = await store.save("t", state_of("a", "b", "c"), "third", expected=second)
    assert await other.list_checkpoints("t") == [third, second, first]


@pytest.mark.parametrize("named", [None, "mine", "first"], ids=["anew", "named", "replacing"])
@pytest.mark.parametrize("knows", [True, False], ids=["knows", "does not know"])
async def test_a_save_that_expects_another_checkpoint_saves_nothing_and_names_both(
    make_store: Make, table_contents: Callable[[], Any], named: str | None, knows: bool
) -> None:
    store, other = make_store(), make_store()
    await store.save("t", state_of("a"), "first")
    await (store if knows else other).save("t", state_of("a", "b"), "second")
    before = table_contents()
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("a", "c"), named, expected="first")
    assert (raised.value.thread_id, raised.value.expected, raised.value.newest) == ("t", "first", "second")
    assert "'first'" in str(raised.value)
    assert "'second'" in str(raised.value)
    assert table_contents() == before
    await store.save("t", state_of("a", "b", "c"), named, expected="second")


async def test_a_save_that_expects_no_checkpoint_conflicts_with_any(make_store: Make) -> None:
    store = make_store()
    await store.save("t", state_of("a"), "first")
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("b"), expected=NO_CHECKPOINT)
    assert (raised.value.expected, raised.value.newest) == (None, "first")


@pytest.mark.parametrize("gone", ["deleted", "expired", "never there"])
async def test_a_save_that_expects_a_checkpoint_of_a_thread_that_is_gone_conflicts(
    make_store: Make, expire: Callable[[str], None], gone: str
) -> None:
    store = make_store()
    if gone != "never there":
        await store.save("t", state_of("a"), "first")
        if gone == "deleted":
            await make_store().delete("t")
        else:
            expire("t")
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("a", "b"), expected="first")
    assert raised.value.newest is None
    assert await store.exists("t") is False
    await store.save("t", state_of("a", "b"), "again", expected=NO_CHECKPOINT)
    assert await store.load("t") == state_of("a", "b")


async def test_the_expected_checkpoint_must_be_an_id(store: Any) -> None:
    for wrong in ("", 7, "x" * 129):
        with pytest.raises(InvalidInput):
            await store.save("t", state_of("a"), expected=wrong)


@pytest.mark.usefixtures("no_housekeeping")
async def test_a_save_that_expects_something_is_one_round_trip(make_store: Make, proxy: WireProxy) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    newest = await store.save("t", state_of("a"))
    async with Held(store, "t", lease_s=3600):  # so long that it is not renewed during the test
        for turn in range(3):
            with proxy.counting() as count:
                newest = await store.save("t", state_of("a", *"bcd"[: turn + 1]), expected=newest)
            assert count.round_trips == 1


async def test_of_nine_saves_at_once_that_expect_the_same_one_is_carried_out(make_store: Make) -> None:
    stores = [make_store() for _ in range(3)]
    await stores[0].save("t", state_of("a"), "first")
    outcomes: list[Any] = []

    def save_sync(number: int) -> None:
        try:
            outcomes.append(stores[number % 3].wrapped.save("t", state_of("a", str(number)), expected="first"))
        except Conflict as error:
            outcomes.append(error)

    if isinstance(stores[0].wrapped, SyncCheckpointStore):
        threads = [threading.Thread(target=save_sync, args=(number,)) for number in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    else:
        outcomes = await asyncio.gather(
            *(stores[n % 3].save("t", state_of("a", str(n)), expected="first") for n in range(9)),
            return_exceptions=True,
        )
    (saved,) = [one for one in outcomes if isinstance(one, str)]
    conflicts = [one for one in outcomes if isinstance(one, Conflict)]
    assert len(conflicts) == 8
    assert {(one.expected, one.newest) for one in conflicts} == {("first", saved)}
    assert await stores[0].list_checkpoints("t") == [saved, "first"]


@pytest.mark.parametrize("command", range(1, 3))
async def test_a_save_whose_answer_was_lost_does_not_conflict_with_itself(
    make_store: Make, proxy: WireProxy, command: int
) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    first = await store.save("t", state_of("a"))
    proxy.drop_after_send(command)
    second = await store.save("t", state_of("a", "b"), expected=first)
    third = await store.save("t", state_of("a", "b", "c"), expected=second)
    assert await store.list_checkpoints("t") == [third, second, first]


# Turns


async def test_a_turn_keeps_others_out_until_it_ends(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with Held(one, "t"):
        await one.save("t", state_of("a"))
        with pytest.raises(ThreadBusy) as raised:
            async with Held(other, "t", wait_s=0):
                raise AssertionError
        assert (raised.value.thread_id, raised.value.wait_s) == ("t", 0)
        async with Held(other, "another thread", wait_s=0):
            pass
        await one.save("t", state_of("a", "b"))
    async with Held(other, "t", wait_s=0):
        await other.save("t", state_of("a", "b", "c"))
    assert await one.load("t") == state_of("a", "b", "c")


async def test_a_turn_on_a_thread_that_is_not_there_shows_nothing(make_store: Make, sql: RunSQL) -> None:
    one, other = make_store(), make_store()
    async with Held(one, "new"):
        assert await other.exists("new") is False
        assert await other.list_threads() == []
        assert await other.count() == 0
        assert await other.list_with_metadata() == []
        assert await other.load("new") is None
        assert await other.delete("new", "x") is False
        assert await other.vacuum(0) == 0
        assert await other.copy_thread("new", "copy") is False
        with pytest.raises(ThreadBusy):
            async with Held(other, "new", wait_s=0):
                raise AssertionError
    assert sql("SELECT COUNT(*) FROM locus_store_threads") == ((0,),)


async def test_the_first_save_within_a_turn_makes_the_thread(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with Held(one, "new"):
        await one.save("new", state_of("a"), "first", expected=NO_CHECKPOINT)
        assert await other.list_threads() == ["new"]
        with pytest.raises(ThreadBusy):
            async with Held(other, "new", wait_s=0):
                raise AssertionError
    assert await other.load("new") == state_of("a")


async def test_a_block_within_a_block_is_part_of_the_turn(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with Held(one, "t") as outer:
        async with Held(one, "t", wait_s=0) as inner:
            assert inner is outer
        with pytest.raises(ThreadBusy):
            async with Held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("a"))
    async with Held(other, "t", wait_s=0):
        pass


def test_a_lease_that_expired_is_not_renewed(make_config: MakeConfig, sql: RunSQL) -> None:
    lease = Lease(("default", "t"), 60)
    with SyncCheckpointStore(make_config(driver="pymysql")) as store:
        store.save("t", state_of("a"))
        leases = LeaseOperations(CheckpointDialect(store.config.table_prefix, "dicts"))
        assert store._run(leases.acquire(lease)) is None
        assert store._run(leases.renew(lease))
        sql("UPDATE locus_store_threads SET turn_until = UTC_TIMESTAMP(6)")
        assert not store._run(leases.renew(lease))
        assert sql("SELECT turn_until <= UTC_TIMESTAMP(6) FROM locus_store_threads") == ((1,),)


async def test_a_turn_that_was_not_renewed_is_lost_and_nothing_is_saved_under_it(make_store: Make, sql: RunSQL) -> None:
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"), "first")
    async with Held(one, "t") as turn:
        sql("UPDATE locus_store_threads SET turn_until = UTC_TIMESTAMP(6)")
        with pytest.raises(TurnLost):
            await one.save("t", state_of("a", "b"))
        assert turn.lost
        async with Held(other, "t", wait_s=0):
            with pytest.raises(TurnLost):
                await one.save("t", state_of("a", "b"))
            with pytest.raises(TurnLost):
                await one.delete("t")
            await other.save("t", state_of("a", "c"))
    assert await one.load("t") == state_of("a", "c")
    await one.save("t", state_of("a", "c", "d"))


@pytest.mark.parametrize("warm", [True, False])
async def test_a_holder_that_lost_its_turn_does_not_end_the_turn_of_its_successor(
    make_store: Make, sql: RunSQL, warm: bool
) -> None:
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"), "first")
    mine, taken = Held(one, "t"), Held(other, "t", wait_s=0)
    await mine.__aenter__()
    sql("UPDATE locus_store_threads SET turn_until = UTC_TIMESTAMP(6)")
    async with taken:
        if not warm:
            await other.save("t", state_of("a", "c"))
        with pytest.raises(TurnLost):
            await one.save("t", state_of("a", "b"))
        await mine.__aexit__(None, None, None)
        with pytest.raises(ThreadBusy):
            async with Held(one, "t", wait_s=0):
                raise AssertionError
        await other.save("t", state_of("a", "c", "d"))


@pytest.mark.parametrize("how", ["delete", "forget_tenant", "vacuum", "expire and vacuum"])
async def test_a_thread_that_another_removes_during_a_turn(
    make_store: Make, expire: Callable[[str], None], how: str
) -> None:
    """Vacuum skips the thread. Deleting the thread ends the turn; the turn does not recreate the thread."""
    one, other = make_store(), make_store()
    await one.save("t", state_of("a"))
    async with Held(one, "t"):
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
    async with Held(one, "t"):
        assert await one.delete("t", *([] if whole else ["first"])) is True
        assert await other.exists("t") is False
        assert await other.list_threads() == []
        with pytest.raises(ThreadBusy):
            async with Held(other, "t", wait_s=0):
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
    async with Held(one, "copy"):
        assert await copier.copy_thread("source", "copy") is True
        assert await other.load("copy") == state_of("a")
        with pytest.raises(ThreadBusy):
            async with Held(other, "copy", wait_s=0):
                raise AssertionError
        await one.save("copy", state_of("a", "b"), expected="first")
    assert await other.load("copy") == state_of("a", "b")
    assert await other.load("source") == state_of("a")


async def test_the_copy_of_a_thread_with_a_turn_has_none(make_store: Make) -> None:
    one, other = make_store(), make_store()
    await one.save("source", state_of("a"))
    async with Held(one, "source"):
        assert await one.copy_thread("source", "copy") is True
        async with Held(other, "copy", wait_s=0):
            pass


async def test_a_turn_is_renewed_while_it_is_held(make_store: Make, sql: RunSQL) -> None:
    one = make_store()

    def until() -> Any:
        return sql("SELECT turn_until FROM locus_store_threads")[0][0]

    async with Held(one, "t", lease_s=SHORT_S):
        first = until()
        end = time.monotonic() + DEADLINE_S
        while not (until() - first).total_seconds() > SHORT_S:
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
        await one.save("t", state_of("a"))


async def test_leaving_a_block_by_an_error_gives_the_turn_back(make_store: Make) -> None:
    one, other = make_store(), make_store()
    with pytest.raises(LookupError):
        async with Held(one, "t"):
            raise LookupError
    async with Held(other, "t", wait_s=0):
        pass


async def test_closing_a_store_within_a_turn_ends_neither(make_store: Make) -> None:
    one, other = make_store(), make_store()
    async with Held(one, "t"):
        await one.close()
        with pytest.raises(ThreadBusy):
            async with Held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("a"))
    async with Held(other, "t", wait_s=0):
        pass


@pytest.mark.parametrize("numbers", [{"wait_s": -1}, {"wait_s": "x"}, {"lease_s": 0}, {"lease_s": True}])
async def test_times_of_a_turn_are_checked(store: Any, numbers: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store.wrapped.turn("t", **numbers)


@pytest.mark.parametrize("fault", ["drop_before", "drop_after_send"])
@pytest.mark.parametrize("command", range(1, 4))
async def test_lost_requests_and_answers_of_a_turn_do_no_harm(
    make_store: Make, proxy: WireProxy, fault: str, command: int
) -> None:
    one = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    other = make_store()
    await one.save("t", state_of("a"))
    getattr(proxy, fault)(command)
    async with Held(one, "t"):
        with pytest.raises(ThreadBusy):
            async with Held(other, "t", wait_s=0):
                raise AssertionError
        await one.save("t", state_of("a", "b"))
    async with Held(other, "t", wait_s=0):
        assert await other.load("t") == state_of("a", "b")


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


async def test_a_task_that_is_cancelled_while_it_waits_or_works_leaves_the_turn_free(make_config: MakeConfig) -> None:
    config = make_config(driver="mysql-connector")
    async with CheckpointStore(config) as one, CheckpointStore(config) as other:
        inside = asyncio.Event()

        async def hold(store: CheckpointStore) -> None:
            async with store.turn("t"):
                inside.set()
                await asyncio.Event().wait()

        holding = asyncio.create_task(hold(one))
        await inside.wait()
        waiting = [asyncio.create_task(hold(store)) for store in (one, other, other)]
        await asyncio.sleep(0.05)  # the waiters may have reached any step
        for task in (*waiting, holding):
            task.cancel()
        await asyncio.gather(holding, *waiting, return_exceptions=True)
        async with other.turn("t", wait_s=0):
            pass


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


# Other processes


@contextmanager
def another_process(work: Callable[..., None], *args: Any) -> Any:
    """Yield the connection to a child process, which is killed at the end."""
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(there, *args))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join(DEADLINE_S)


def receive(line: Connection) -> Any:
    assert line.poll(DEADLINE_S), "the other process sent nothing"
    return line.recv()


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
def test_a_killed_holder_blocks_others_no_longer_than_its_lease(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, 1.0) as (process, line):
        assert receive(line) == "has it"
        with pytest.raises(ThreadBusy), store.turn("t", wait_s=0):
            raise AssertionError
        os.kill(process.pid, signal.SIGKILL)
        with store.turn("t", wait_s=DEADLINE_S):
            store.save("t", state_of("a", "b"))


@pytest.mark.slow
def test_a_frozen_holder_whose_lease_ran_out_saves_nothing_when_it_wakes(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, 1.0) as (process, line):
        assert receive(line) == "has it"
        os.kill(process.pid, signal.SIGSTOP)
        with store.turn("t", wait_s=DEADLINE_S):
            store.save("t", state_of("a", "b"))
            os.kill(process.pid, signal.SIGCONT)
            line.send("save")
            assert receive(line) == "lost it"
        assert store.load("t") == state_of("a", "b")


@pytest.mark.slow
def test_a_frozen_holder_whose_turn_nobody_took_saves_nothing_either(make_config: MakeConfig, sql: RunSQL) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, SHORT_S) as (process, line):
        assert receive(line) == "has it"
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: sql("SELECT turn_until < UTC_TIMESTAMP(6) FROM locus_store_threads") == ((1,),))
        os.kill(process.pid, signal.SIGCONT)
        line.send("save")
        assert receive(line) == "lost it"
        assert store.load("t") == state_of("a")


def take_nine_turns(config: MySQLConfig, name: str, start: Any) -> None:
    with SyncCheckpointStore(config) as store:
        start.wait(DEADLINE_S)
        for _ in range(9):
            with store.turn("t", wait_s=DEADLINE_S):
                state = store.load("t") or {"turns": []}
                store.save("t", {"turns": [*state["turns"], name]})


def test_turns_of_two_processes_follow_each_other(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store:
        start = PROCESSES.Barrier(2)
        processes = [PROCESSES.Process(target=take_nine_turns, args=(config, name, start)) for name in "ab"]
        for process in processes:
            process.start()
        for process in processes:
            process.join(DEADLINE_S)
            assert process.exitcode == 0
        state = store.load("t")
        assert state is not None
        assert sorted(state["turns"]) == ["a"] * 9 + ["b"] * 9


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
