"""A pool keeps, pings, closes or drops connections by the outcome of calls; both sides, without a server."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.engine import pool as pools
from locus_mysql.engine.commands import CommandGenerator
from locus_mysql.engine.logs import Counters, PoolState
from locus_mysql.engine.sides import AwaitedSide, BlockingSide

from . import scripted
from .scripted import Driver

SEVERAL = MySQLConfig(hosts=("a", "b"), pool_size=4)
SINGLE = MySQLConfig(host="a", pool_size=4)
A, _ = SEVERAL.endpoints

LOST = ConnectionLost("It gives no answer.")
READ_ONLY = ServerError(1290, "takes no writes")
DUPLICATE = ServerError(1062, "Duplicate entry")

pytestmark = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Pool:
    """A pool of either side with awaitable methods; its connections go to the first of its servers."""

    def __init__(self, awaited: bool, config: MySQLConfig = SINGLE, clock: Any = None) -> None:
        self.awaited = awaited
        self.driver: Any = Driver()
        self.counters = Counters()
        self.side = AwaitedSide() if awaited else BlockingSide()
        self.servers = scripted.Servers(config, self.driver)
        self.now = time.monotonic()
        self.pool: Any = pools.Pool(config, self.side, self.servers, self.counters, clock or (lambda: self.now))

    async def run(self, steps: CommandGenerator[Any]) -> Any:
        return await scripted.run(steps, awaited=self.awaited)

    async def borrow(self, *, tested: bool = False) -> Any:
        return await self.run(scripted.borrow(self.pool, tested=tested))

    async def give_back(self, lent: Any, error: BaseException | None = None) -> None:
        await self.run(scripted.give_back(self.pool, lent, error))

    async def close(self) -> None:
        await self.run(self.pool.close())

    async def idle(self, count: int) -> None:
        """Open this number of idle connections."""
        for lent in [await self.borrow() for _ in range(count)]:
            await self.give_back(lent)

    @property
    def ended(self) -> list[str]:
        return [one.ended for one in self.driver.opened]


@pytest.mark.parametrize(
    ("error", "kept", "lost"),
    [
        (None, True, 0),
        (DUPLICATE, True, 0),
        (READ_ONLY, False, 1),
        (LOST, False, 1),
        (ValueError("of the caller"), False, 0),
        (asyncio.CancelledError(), False, 0),
    ],
)
@pytest.mark.parametrize("config", [SINGLE, SEVERAL], ids=["single", "several"])
async def test_a_connection_is_used_again_unless_its_call_was_cancelled_or_left_doubts(
    awaited: bool, config: MySQLConfig, error: BaseException | None, kept: bool, lost: int
) -> None:
    pool = Pool(awaited, config)
    lent = await pool.borrow()
    assert pool.pool.state() == PoolState(1, 1, 0)
    await pool.give_back(lent, error)
    assert pool.pool.state() == PoolState(int(kept), 0, 0)
    assert await pool.borrow() is lent if kept else pool.ended == ["aborted"]
    assert (pool.counters.opened, pool.counters.lost) == (1, lost)
    assert pool.counters.total.received_bytes == 100


@pytest.mark.parametrize(
    ("error", "others_go"), [(LOST, True), (READ_ONLY, True), (DUPLICATE, False), (OSError(), False)]
)
async def test_where_a_server_fails_all_connections_to_it_go_at_once(
    awaited: bool, error: BaseException, others_go: bool
) -> None:
    pool = Pool(awaited, SEVERAL)
    await pool.idle(3)
    failing, other = await pool.borrow(), await pool.borrow()
    await pool.give_back(failing, error)
    assert pool.ended.count("aborted") == (2 if others_go else int(error is not DUPLICATE))
    assert pool.counters.lost == (2 if others_go else 0)
    assert pool.servers.failures == ([(A, error)] if others_go else [])
    await pool.give_back(other)
    assert other.connection.ended == ("closed" if others_go else "")  # its server is not used any more


async def test_only_the_first_of_many_failed_calls_drops_the_idle_connections(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    first, second, third = [await pool.borrow() for _ in range(3)]
    await pool.give_back(first, LOST)
    await pool.idle(1)  # to another server
    await pool.give_back(second, LOST)
    await pool.give_back(third, DUPLICATE)  # usable, but to a server that is not used any more
    assert pool.ended == ["aborted", "aborted", "aborted", ""]
    assert pool.counters.lost == 2
    assert pool.pool.state() == PoolState(1, 0, 0)


async def test_a_closed_pool_closes_idle_connections_and_lent_ones_on_return(awaited: bool) -> None:
    pool = Pool(awaited)
    lent, other = await pool.borrow(), await pool.borrow()
    await pool.give_back(lent)
    await pool.close()
    assert pool.ended == ["closed", ""]
    await pool.give_back(other)
    assert pool.ended == ["closed", "closed"]
    await pool.idle(1)
    assert pool.ended == ["closed", "closed", ""]


async def test_a_connection_is_pinged_after_a_while_idle_or_on_request(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(1)
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 0
    await pool.give_back(await pool.borrow(tested=True))
    assert pool.driver.opened[0].pings == 1
    pool.now += pools.PING_AFTER_S
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 1
    pool.now += pools.PING_AFTER_S + 0.1
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 2
    assert len(pool.driver.opened) == 1


@pytest.mark.parametrize("config", [SINGLE, SEVERAL], ids=["single", "several"])
async def test_a_failed_ping_drops_all_idle_connections(
    awaited: bool, config: MySQLConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.connections")
    pool = Pool(awaited, config)
    await pool.idle(3)
    for opened in pool.driver.opened:
        opened.dead = True
    await pool.borrow(tested=True)
    assert pool.ended == ["aborted", "aborted", "aborted", ""]
    assert [one.pings for one in pool.driver.opened] == [0, 0, 1, 0]
    assert pool.counters.lost == 0
    assert pool.counters.opened == 4
    assert "it and 2 idle ones were dropped" in caplog.text


async def test_idle_connections_are_closed_and_checked_until_none_is_left(
    awaited: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    called: list[float] = []
    pool = Pool(awaited)
    monkeypatch.setattr(pool.side, "call_later", lambda work, wait_s: called.append(wait_s))

    async def reap() -> float | None:
        """Reap idle connections; return when the next call is due."""
        before = len(called)
        await pool.run(pool.pool.reap())
        return called.pop() if len(called) > before else None

    idle_s = SINGLE.pool_idle_s
    first, second = await pool.borrow(), await pool.borrow()
    await pool.give_back(first)
    pool.now += idle_s - 1
    await pool.give_back(second)
    assert called == [pytest.approx(idle_s, abs=0.1)]  # one call for both
    assert await reap() == pytest.approx(1.0, abs=0.1)
    assert pool.ended == ["", ""]
    pool.now += 2
    assert await reap() == pytest.approx(idle_s - 2, abs=0.1)
    assert sorted(pool.ended) == ["", "closed"]
    await pool.idle(1)
    assert len(called) == 1
    pool.now += idle_s + 1
    assert await reap() is None
    assert pool.ended == ["closed", "closed"]
    assert caplog.text.count("too old") == 2
    await pool.idle(1)
    assert len(called) == 2


async def test_an_expired_connection_is_closed_before_another_is_opened(
    awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    pool = Pool(awaited)
    await pool.idle(2)
    pool.now += SINGLE.pool_max_age_s + 1
    await pool.borrow()
    assert pool.ended == ["closed", "closed", ""]
    assert [record.getMessage().split(" to MySQL")[0] for record in caplog.records] == [
        "Opened a connection",
        "Opened a connection",
        "Closed a connection",
        "Closed a connection",
        "Opened a connection",
    ]
    assert "too old" in caplog.text


class Gate(Driver):
    """A driver whose new connections wait until the test lets them through."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()

    def connect(self, config: Any, endpoint: Any) -> Any:
        assert self.open.wait(60)
        return super().connect(config, endpoint)

    async def connect_async(self, config: Any, endpoint: Any) -> Any:
        while not self.open.is_set():  # noqa: ASYNC110 - a test sets it for either side
            await asyncio.sleep(0.001)
        return await super().connect_async(config, endpoint)


class Gated(Pool):
    """A pool with such a driver, and calls that are made beside the test."""

    def __init__(self, awaited: bool) -> None:
        super().__init__(awaited)
        self.driver = self.servers.driver = Gate()

    def borrow_beside(self) -> asyncio.Future[Any]:
        if self.awaited:
            return asyncio.ensure_future(self.borrow())
        steps = scripted.borrow(self.pool)
        return asyncio.get_running_loop().run_in_executor(None, scripted.run_blocking, steps)

    async def until(self, open: int, in_use: int, waiting: int) -> None:
        """Wait for a state of the pool."""
        async with asyncio.timeout(60):
            while self.pool.state() != PoolState(open, in_use, waiting):  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.001)


async def test_a_call_takes_a_connection_that_is_given_back_before_the_one_that_is_opened_for_it(awaited: bool) -> None:
    pool = Gated(awaited)
    first = await pool.borrow()
    pool.driver.open.clear()
    second = pool.borrow_beside()
    await pool.until(2, 2, 1)
    await pool.give_back(first)
    assert await asyncio.wait_for(second, 60) is first
    pool.driver.open.set()
    await pool.until(2, 1, 0)
    assert await pool.borrow() is not first
    assert len(pool.driver.opened) == 2


async def test_as_many_connections_are_opened_at_once_as_calls_wait_for_one(awaited: bool) -> None:
    pool = Gated(awaited)
    pool.driver.open.clear()
    calls = [pool.borrow_beside() for _ in range(6)]
    await pool.until(4, 4, 5)  # one opens a connection itself
    pool.driver.open.set()
    while calls:
        done, _ = await asyncio.wait(calls, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        for call in done:
            calls.remove(call)
            await pool.give_back(call.result())
    async with asyncio.timeout(60):  # the calls may have taken given back connections meanwhile
        while len(pool.driver.opened) < 4:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.001)
    await pool.until(4, 0, 0)


async def test_a_call_fails_if_no_connection_can_be_opened_and_nobody_has_one(awaited: bool) -> None:
    pool = Gated(awaited)
    pool.driver.open.clear()
    pool.driver.answers = lambda *_: LOST
    calls = [pool.borrow_beside() for _ in range(2)]
    await pool.until(2, 2, 1)
    pool.driver.open.set()
    outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 60)
    assert outcomes == [LOST, LOST]
    await pool.until(0, 0, 0)


async def test_a_call_waits_for_another_one_s_connection_if_none_can_be_opened(awaited: bool) -> None:
    pool = Gated(awaited)
    first = await pool.borrow()
    pool.driver.answers = lambda *_: ServerError(1040, "Too many connections")
    second = pool.borrow_beside()
    await pool.until(1, 1, 1)
    await pool.give_back(first)
    assert await asyncio.wait_for(second, 60) is first
