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


class Place:
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
    place = Place(side)
    turn = place.turn()
    async with turn as lease:
        assert side or turn.block._renewing.daemon
        assert place.checkpoints.context.turns.of(KEY) is lease
        assert not lease.ended
        assert place.sent == [TAKE]
    assert place.checkpoints.context.turns.of(KEY) is None
    assert lease.ended
    assert place.sent == [TAKE, GIVE]
    renewing = turn.block._renewing
    assert renewing.done() if side else not renewing.is_alive()
    async with place.turn() as another:
        assert another.token != lease.token


async def test_a_block_within_a_turn_is_part_of_it(side: bool) -> None:
    place = Place(side)
    async with place.turn() as outer:
        async with place.turn(wait_s=0) as inner:
            assert inner is outer
        assert not outer.ended
        assert place.sent == [TAKE]
        async with place.turn(key=("tenant", "another")) as other:
            assert other is not outer
        assert place.checkpoints.context.turns.of(KEY) is outer
    assert place.sent == [TAKE, TAKE, GIVE, GIVE]


@pytest.mark.parametrize("how", ["ended", "of the parent"])
async def test_an_expired_turn_cannot_be_joined(side: bool, how: str) -> None:
    place = Place(side)
    over = Lease(KEY, 20.0)
    place.checkpoints.context.turns.enter(over)
    if how == "ended":
        over.ended = True
    else:
        over._process = -1
    async with place.turn() as lease:
        assert lease is not over
    assert place.sent == [TAKE, GIVE]


async def test_a_waiter_polls_until_the_turn_is_free(side: bool) -> None:
    place = Place(side)
    place.whose = [[(0, 1_000)], [(0, 1_000)], MINE]
    async with place.turn():
        pass
    assert place.sent == [TAKE, TAKE, TAKE, GIVE]


async def test_a_waiter_that_times_out_raises_and_blocks_nobody(side: bool) -> None:
    place = Place(side)
    place.whose = [SOMEBODY_S]
    for wait_s in (0, 0.01):
        with pytest.raises(ThreadBusy) as caught:
            async with place.turn(wait_s=wait_s):
                pass
        assert "'t'" in str(caught.value)
    assert set(place.sent) == {TAKE}
    assert place.checkpoints.context.turns.of(KEY) is None
    place.whose = [MINE]
    async with place.turn(wait_s=1):
        pass


async def test_waiters_of_one_process_queue_without_polling(side: bool) -> None:
    place = Place(side)
    entered, leave = threading.Event(), threading.Event()
    outcomes: list[str] = []

    async def hold() -> None:
        async with place.turn():
            entered.set()
            await until(leave.is_set)

    async def wait(wait_s: float) -> None:
        try:
            async with place.turn(wait_s=wait_s):
                outcomes.append("had it")
        except ThreadBusy:
            outcomes.append("busy")

    if side:
        holding = asyncio.create_task(hold())
        await until(entered.is_set)
        await wait(0.01)
        waiting = asyncio.create_task(wait(PATIENCE_S))
        await asyncio.sleep(0)
        assert place.requests == [TAKE]
        leave.set()
        await asyncio.gather(holding, waiting)
    else:
        threads = [threading.Thread(target=asyncio.run, args=(hold(),))]
        threads[0].start()
        assert entered.wait(PATIENCE_S)
        await asyncio.to_thread(asyncio.run, wait(0.01))
        threads.append(threading.Thread(target=asyncio.run, args=(wait(PATIENCE_S),)))
        threads[1].start()
        assert place.requests == [TAKE]
        leave.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert outcomes == ["busy", "had it"]
    assert place.requests == [TAKE, GIVE, TAKE, GIVE]


@pytest.mark.parametrize("error", [Unavailable("The server is gone."), KeyboardInterrupt()])
async def test_a_turn_that_may_have_been_taken_is_released_and_cannot_be_taken_late(
    side: bool, error: Exception
) -> None:
    place = Place(side)
    place.fails["acquire"] = error
    with pytest.raises(type(error)):
        async with place.turn():
            pass
    assert place.sent == [TAKE, "record", GIVE]
    place.fails.clear()
    async with place.turn(wait_s=1):
        pass


async def test_a_turn_is_renewed_repeatedly(side: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    place = Place(side)
    async with place.turn() as lease:
        await until(lambda: place.sent.count("renew") > 3)
        assert not lease.lost
    count = place.sent.count("renew")
    assert place.requests == [TAKE, GIVE]
    await asyncio.sleep(0.02)
    assert place.sent.count("renew") <= count + 1  # one may have been under way


async def test_a_lost_turn_is_not_renewed(
    side: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    place = Place(side)
    place.renewed = lambda: 0
    turn = place.turn()
    async with turn as lease:
        await until(lambda: lease.lost)
        await until(lambda: turn.block._renewing.done() if side else not turn.block._renewing.is_alive())
        assert place.sent.count("renew") == 1
    assert "A turn was lost: it was not renewed in time, or its thread was deleted." in caplog.text


async def test_a_turn_that_cannot_be_renewed_is_lost_when_it_expires(
    side: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "RENEWALS", 5_000)
    place = Place(side)
    place.fails["renew"] = Unavailable("The server is gone.")
    turn = place.turn(lease_s=3_600)
    monkeypatch.setattr(turns, "RENEWALS", 1_000_000)
    async with turn as lease:
        await until(lambda: place.sent.count("renew") > 2)
        assert not lease.lost
        assert "A turn could not be renewed; trying again: Unavailable" in caplog.text
        turn.block._renewed_at -= 3_601
        await until(lambda: lease.lost)


async def test_a_renewal_counts_from_when_it_was_asked_for_and_not_after_the_end(side: bool) -> None:
    block = Place(side).turn().block
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
    place = Place(side)
    place.fails["release"] = Unavailable("The server is gone.")
    async with place.turn():
        pass
    assert "A turn could not be released; it ends when its lease expires: Unavailable" in caplog.text
    place.fails.clear()
    async with place.turn(wait_s=1):
        pass


async def test_a_forked_child_releases_no_turn(side: bool) -> None:
    place = Place(side)
    turn = place.turn()
    async with turn as lease:
        lease._process = -1
    assert place.requests == [TAKE]
    if side:
        turn.block._renewing.cancel()
    else:
        turn.block._stop.set()
    async with place.turn(wait_s=1):  # the lock is free
        pass


async def test_a_task_that_is_cancelled_gives_back_first() -> None:
    place = Place(True)
    going_on = asyncio.Event()
    run = place.run_async

    async def slow(operation: Any) -> Any:
        if place.requests:
            await going_on.wait()
        return await run(operation)

    place.run_async = slow  # type: ignore[method-assign]

    async def hold() -> None:
        async with place.turn():
            pass

    task = asyncio.create_task(hold())
    await until(lambda: place.requests == [TAKE])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert place.requests == [TAKE, GIVE]


def test_pauses_grow_but_end_with_the_owner_s_turn_or_the_timeout(side: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[tuple[float, float]] = []

    def draw(least: float, most: float) -> float:
        bounds.append((least, most))
        return most

    monkeypatch.setattr(turns.random, "uniform", draw)
    now = [100.0]
    monkeypatch.setattr(turns.time, "monotonic", lambda: now[0])
    block = Place(side).turn(wait_s=0).block
    pauses = [block._pause(50.0, 200.0) for _ in range(7)]
    assert pauses == pytest.approx([FIRST_PAUSE_S * 2**n for n in range(5)] + [LONGEST_PAUSE_S] * 2)
    assert [least for least, _ in bounds] == pytest.approx([pause / 2 for pause in pauses])
    assert block._pause(0.2, 200.0) == pytest.approx(0.21)
    assert block._pause(50.0, 100.3) == pytest.approx(0.3)
    assert block._pause(50.0, 100.000_01) == 0.001
    with pytest.raises(ThreadBusy):
        block._pause(50.0, 100.0)
    assert time.monotonic() == 100.0
