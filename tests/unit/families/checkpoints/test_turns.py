"""Blocks that hold a turn wait, renew and release it; both sides, without a server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.drivers.interface import Result
from locus_mysql.errors import ThreadBusy, Unavailable
from locus_mysql.families.checkpoints import turns
from locus_mysql.families.checkpoints.leases import Lease
from locus_mysql.families.checkpoints.turns import FIRST_PAUSE_S, LONGEST_PAUSE_S, AsyncTurn, SyncTurn

from .named_statements import KEY, answer, names, operations

PATIENCE_S = 60.0
MINE, SOMEBODY_S = [(1, 20_000_000)], [(0, 5_000_000)]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def side(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class ScriptedStore:
    """A store's operations with a scripted server."""

    def __init__(self, awaited: bool) -> None:
        self.awaited = awaited
        self.checkpoints = operations()
        self.sent: list[str] = []
        #: The answers to `acquire` in order; the last one repeats.
        self.whose: list[list[tuple[int, int]]] = [MINE]
        self.renewed: Callable[[], int] = lambda: 1
        self.fails: dict[str, Exception] = {}

    def run(self, operation: Any) -> Any:
        results: Any = None
        try:
            while True:
                batch = operation.send(results)
                self.sent.append(names(batch))
                for name, error in self.fails.items():
                    if name in self.sent[-1]:
                        operation.throw(error)
                rows = self.whose.pop(0) if "acquire" in self.sent[-1] and len(self.whose) > 1 else self.whose[0]
                renewed = Result(affected=self.renewed()) if self.sent[-1] == "renew" else Result()
                results = answer(batch, acquire_2=Result(rows=tuple(rows)), renew=renewed)
        except StopIteration as done:
            return done.value

    async def run_async(self, operation: Any) -> Any:
        await asyncio.sleep(0)
        return self.run(operation)

    def turn(self, wait_s: float = PATIENCE_S, lease_s: float = 20.0, key: tuple[str, str] = KEY) -> Turn:
        kind: Any = AsyncTurn if self.awaited else SyncTurn
        return Turn(kind(self.run_async if self.awaited else self.run, self, key, wait_s, lease_s), self.awaited)

    @property
    def requests(self) -> list[str]:
        """Return the sent requests except renewals."""
        return [sent for sent in self.sent if sent != "renew"]


class Turn:
    """A block with a turn, of either side."""

    def __init__(self, block: Any, awaited: bool) -> None:
        self.block, self.awaited = block, awaited

    async def __aenter__(self) -> Lease:
        return await self.block.__aenter__() if self.awaited else self.block.__enter__()  # type: ignore[no-any-return]

    async def __aexit__(self, *error: object) -> None:
        if self.awaited:
            await self.block.__aexit__(*error)
        else:
            self.block.__exit__(*error)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing signals the condition
            await asyncio.sleep(0.001)


TAKE, GIVE = "acquire acquire_2", "release release_2"


async def test_a_turn_is_taken_held_and_given_back(side: bool) -> None:
    store = ScriptedStore(side)
    turn = store.turn()
    async with turn as lease:
        assert side or turn.block._renewing.daemon
        assert store.checkpoints.context.turns.of(KEY) is lease
        assert not lease.ended
        assert store.sent == [TAKE]
    assert store.checkpoints.context.turns.of(KEY) is None
    assert lease.ended
    assert store.sent == [TAKE, GIVE]
    renewing = turn.block._renewing
    assert renewing.done() if side else not renewing.is_alive()
    async with store.turn() as another:
        assert another.token != lease.token


async def test_a_block_within_a_turn_is_part_of_it(side: bool) -> None:
    store = ScriptedStore(side)
    async with store.turn() as outer:
        async with store.turn(wait_s=0) as inner:
            assert inner is outer
        assert not outer.ended
        assert store.sent == [TAKE]
        async with store.turn(key=("tenant", "another")) as other:
            assert other is not outer
        assert store.checkpoints.context.turns.of(KEY) is outer
    assert store.sent == [TAKE, TAKE, GIVE, GIVE]


@pytest.mark.parametrize("how", ["ended", "of the parent"])
async def test_an_expired_turn_cannot_be_joined(side: bool, how: str) -> None:
    store = ScriptedStore(side)
    over = Lease(KEY, 20.0)
    store.checkpoints.context.turns.enter(over)
    if how == "ended":
        over.ended = True
    else:
        over._process = -1
    async with store.turn() as lease:
        assert lease is not over
    assert store.sent == [TAKE, GIVE]


async def test_a_waiter_polls_until_the_turn_is_free(side: bool) -> None:
    store = ScriptedStore(side)
    store.whose = [[(0, 1_000)], [(0, 1_000)], MINE]
    async with store.turn():
        pass
    assert store.sent == [TAKE, TAKE, TAKE, GIVE]


async def test_a_waiter_that_times_out_raises_and_blocks_nobody(side: bool) -> None:
    store = ScriptedStore(side)
    store.whose = [SOMEBODY_S]
    for wait_s in (0, 0.01):
        with pytest.raises(ThreadBusy) as caught:
            async with store.turn(wait_s=wait_s):
                pass
        assert "'t'" in str(caught.value)
    assert set(store.sent) == {TAKE}
    assert store.checkpoints.context.turns.of(KEY) is None
    store.whose = [MINE]
    async with store.turn(wait_s=1):
        pass


async def test_waiters_of_one_process_queue_without_polling(side: bool) -> None:
    store = ScriptedStore(side)
    entered, leave = threading.Event(), threading.Event()
    outcomes: list[str] = []

    async def hold() -> None:
        async with store.turn():
            entered.set()
            await until(leave.is_set)

    async def wait(wait_s: float) -> None:
        try:
            async with store.turn(wait_s=wait_s):
                outcomes.append("had it")
        except ThreadBusy:
            outcomes.append("busy")

    if side:
        holding = asyncio.create_task(hold())
        await until(entered.is_set)
        await wait(0.01)
        waiting = asyncio.create_task(wait(PATIENCE_S))
        await asyncio.sleep(0)
        assert store.requests == [TAKE]
        leave.set()
        await asyncio.gather(holding, waiting)
    else:
        threads = [threading.Thread(target=asyncio.run, args=(hold(),))]
        threads[0].start()
        assert entered.wait(PATIENCE_S)
        await asyncio.to_thread(asyncio.run, wait(0.01))
        threads.append(threading.Thread(target=asyncio.run, args=(wait(PATIENCE_S),)))
        threads[1].start()
        assert store.requests == [TAKE]
        leave.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert outcomes == ["busy", "had it"]
    assert store.requests == [TAKE, GIVE, TAKE, GIVE]


@pytest.mark.parametrize("error", [Unavailable("The server is gone."), KeyboardInterrupt()])
async def test_a_turn_that_may_have_been_taken_is_released_and_cannot_be_taken_late(
    side: bool, error: Exception
) -> None:
    store = ScriptedStore(side)
    store.fails["acquire"] = error
    with pytest.raises(type(error)):
        async with store.turn():
            pass
    assert store.sent == [TAKE, "record", GIVE]
    store.fails.clear()
    async with store.turn(wait_s=1):
        pass


async def test_a_turn_is_renewed_repeatedly(side: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    store = ScriptedStore(side)
    async with store.turn() as lease:
        await until(lambda: store.sent.count("renew") > 3)
        assert not lease.lost
    count = store.sent.count("renew")
    assert store.requests == [TAKE, GIVE]
    await asyncio.sleep(0.02)
    assert store.sent.count("renew") <= count + 1  # one may have been under way


async def test_a_lost_turn_is_not_renewed(
    side: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    store = ScriptedStore(side)
    store.renewed = lambda: 0
    turn = store.turn()
    async with turn as lease:
        await until(lambda: lease.lost)
        await until(lambda: turn.block._renewing.done() if side else not turn.block._renewing.is_alive())
        assert store.sent.count("renew") == 1
    assert "A turn was lost: it was not renewed in time, or its thread was deleted." in caplog.text


async def test_a_turn_that_cannot_be_renewed_is_lost_when_it_expires(
    side: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    store = ScriptedStore(side)
    store.fails["renew"] = Unavailable("The server is gone.")
    turn = store.turn(lease_s=3_600)
    monkeypatch.setattr(turns, "RENEWALS", 1_000_000)
    async with turn as lease:
        await until(lambda: store.sent.count("renew") > 2)
        assert not lease.lost
        assert "A turn could not be renewed; trying again: Unavailable" in caplog.text
        turn.block._renewed_at -= 3_601
        await until(lambda: lease.lost)


async def test_a_renewal_counts_from_when_it_was_asked_for_and_not_after_the_end(side: bool) -> None:
    block = ScriptedStore(side).turn().block
    block._renewed(5.0, True)
    assert block._renewed_at == 5.0
    block._lease.ended = True
    block._renewed(6.0, False)
    assert block._renewed_at == 5.0
    assert not block._lease.lost
    block._lease.ended = False
    block._renewed(7.0, False)
    assert block._renewed_at == 5.0
    assert block._lease.lost


async def test_a_turn_that_cannot_be_released_expires(side: bool, caplog: pytest.LogCaptureFixture) -> None:
    store = ScriptedStore(side)
    store.fails["release"] = Unavailable("The server is gone.")
    async with store.turn():
        pass
    assert "A turn could not be released; it ends when its lease expires: Unavailable" in caplog.text
    store.fails.clear()
    async with store.turn(wait_s=1):
        pass


async def test_a_forked_child_releases_no_turn(side: bool) -> None:
    store = ScriptedStore(side)
    turn = store.turn()
    async with turn as lease:
        lease._process = -1
    assert store.requests == [TAKE]
    if side:
        turn.block._renewing.cancel()
    else:
        turn.block._stop.set()
    async with store.turn(wait_s=1):  # the lock is free
        pass


async def test_a_task_that_is_cancelled_gives_back_first() -> None:
    store = ScriptedStore(True)
    going_on = asyncio.Event()
    run = store.run_async

    async def slow(operation: Any) -> Any:
        if store.requests:
            await going_on.wait()
        return await run(operation)

    store.run_async = slow  # type: ignore[method-assign]

    async def hold() -> None:
        async with store.turn():
            pass

    task = asyncio.create_task(hold())
    await until(lambda: store.requests == [TAKE])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.requests == [TAKE, GIVE]


def test_pauses_grow_but_end_with_the_owner_s_turn_or_the_timeout(side: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[tuple[float, float]] = []

    def draw(least: float, most: float) -> float:
        bounds.append((least, most))
        return most

    monkeypatch.setattr(turns.random, "uniform", draw)
    now = [100.0]
    monkeypatch.setattr(turns.time, "monotonic", lambda: now[0])
    block = ScriptedStore(side).turn(wait_s=0).block
    pauses = [block._pause(50.0, 200.0) for _ in range(7)]
    assert pauses == pytest.approx([FIRST_PAUSE_S * 2**n for n in range(5)] + [LONGEST_PAUSE_S] * 2)
    assert [least for least, _ in bounds] == pytest.approx([pause / 2 for pause in pauses])
    assert block._pause(0.2, 200.0) == pytest.approx(0.21)
    assert block._pause(50.0, 100.3) == pytest.approx(0.3)
    assert block._pause(50.0, 100.000_01) == 0.001
    with pytest.raises(ThreadBusy):
        block._pause(50.0, 100.0)
    assert time.monotonic() == 100.0
