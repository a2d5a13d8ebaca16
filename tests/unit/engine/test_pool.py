"""A pool keeps, pings, closes or drops connections by the outcome of calls; both sides, without a server."""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.engine import pool as pools
from locus_mysql.engine.commands import CommandGenerator, Connect, Sleep
from locus_mysql.engine.counters import Counters, PoolState
from locus_mysql.engine.servers import Role, ServerConnection
from locus_mysql.engine.sides import AwaitedSide, BlockingSide
from locus_mysql.engine.topology import LeadsToSecondary, Topology
from locus_mysql.engine.watch import ThreadWatch, TimerWatch
from locus_mysql.errors import PoolTimeout

from . import scripted
from .scripted import Driver, result_of

SEVERAL = MySQLConfig(hosts=("a", "b"), pool_size=4, pool_timeout_s=0.01)
SINGLE = MySQLConfig(host="a", pool_size=4, pool_timeout_s=0.01)
A, B = SEVERAL.endpoints

LOST = ConnectionLost("It gives no answer.")
READ_ONLY = ServerError(1290, "takes no writes")
DUPLICATE = ServerError(1062, "Duplicate entry")

pytestmark = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch calls, but look for another primary only if a test requests it, however slow the machine."""
    monkeypatch.setattr(ThreadWatch, "_run", lambda self: None)
    monkeypatch.setattr(TimerWatch, "_inspect", lambda self: None)


class Pool:
    """A pool of either side with awaitable methods; its connections go to the first of its servers."""

    def __init__(self, awaited: bool, config: MySQLConfig = SINGLE) -> None:
        self.awaited = awaited
        self.driver: Any = Driver()
        self.topology = Topology(config.endpoints)
        self.counters = Counters()
        self.gone_if = False
        self.asked_whether_gone: list[Endpoint] = []
        self.side = AwaitedSide() if awaited else BlockingSide()
        role = Role(self._connect, self._is_gone)
        self.pool: Any = pools.Pool(config, self.driver, self.side, self.topology, self.counters, role)

    def _connect(self, config: Any, driver: Any, topology: Any) -> CommandGenerator[ServerConnection]:
        endpoint = topology.order()[0]
        return ServerConnection((yield Connect(driver, config, endpoint)), endpoint, None)

    def _is_gone(self, config: Any, driver: Any, topology: Any, endpoint: Endpoint) -> CommandGenerator[bool]:
        self.asked_whether_gone.append(endpoint)
        yield Sleep(0)
        return self.gone_if

    async def run(self, steps: CommandGenerator[Any]) -> Any:
        return await scripted.run(steps, awaited=self.awaited)

    async def borrow(self, *, tested: bool = False) -> Any:
        return await self.run(scripted.borrow(self.pool, tested=tested))

    async def give_back(self, lent: Any, error: BaseException | None = None) -> None:
        await self.run(scripted.give_back(self.pool, lent, error))

    async def close(self) -> None:
        await self.run(self.pool.close())

    async def look_for_another(self, silent: Any) -> None:
        await self.run(self.pool._look_for_another(silent))

    async def idle(self, count: int) -> None:
        """Open this number of idle connections."""
        for lent in [await self.borrow() for _ in range(count)]:
            await self.give_back(lent)

    @property
    def ended(self) -> list[str]:
        return [one.ended for one in self.driver.opened]

    @property
    def waiting(self) -> list[Any]:
        return list(self.pool._watch.calls.waiting())


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
    assert (pool.topology.order()[0] == B) is isinstance(error, ConnectionLost)
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


async def test_idle_connections_to_a_single_server_are_kept(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(2)
    await pool.give_back(await pool.borrow(), LOST)
    assert sorted(pool.ended) == ["", "aborted"]
    assert pool.counters.lost == 1


async def test_where_the_only_address_leads_to_a_secondary_all_connections_go_at_once(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(3)
    await pool.give_back(await pool.borrow(), LeadsToSecondary("takes no writes"))
    assert pool.ended == ["aborted"] * 3


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


async def test_a_connection_that_is_closed_by_its_user_is_not_kept(awaited: bool) -> None:
    pool = Pool(awaited)
    lent = await pool.borrow()
    await result_of(lent.connection.close())
    await pool.give_back(lent)
    assert pool.pool.state() == PoolState(0, 0, 0)


async def test_a_connection_is_pinged_after_a_while_idle_or_on_request(
    awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(awaited)
    await pool.idle(1)
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 0
    await pool.give_back(await pool.borrow(tested=True))
    assert pool.driver.opened[0].pings == 1
    monkeypatch.setattr("locus_mysql.engine.idle.PING_AFTER_S", -1.0)
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
    lent = await pool.borrow(tested=True)
    assert pool.ended == ["aborted", "aborted", "aborted", ""]
    assert [one.pings for one in pool.driver.opened] == [0, 0, 1, 0]
    assert pool.counters.lost == 0
    assert pool.counters.opened == 4
    assert "it and 2 idle ones were dropped" in caplog.text
    if config is SEVERAL:
        assert pool.waiting == [lent]


async def test_an_expired_connection_is_closed_before_another_is_opened(
    awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    pool = Pool(awaited)
    await pool.idle(2)
    now = pool.pool._idle._clock()
    pool.pool._idle._clock = lambda: now + SINGLE.pool_max_age_s + 1
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


async def test_the_reason_is_logged_when_connections_are_closed_or_dropped(
    awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    pool = Pool(awaited, SEVERAL)
    await pool.idle(2)
    await pool.give_back(await pool.borrow(), LOST)
    await pool.give_back(await pool.borrow(), ValueError())
    await pool.idle(1)
    await pool.close()
    logged = [record.getMessage() for record in caplog.records if not record.getMessage().startswith("Opened")]
    assert logged == [
        "Lost a connection to MySQL at a:3306 in use, and dropped 1 idle ones: It gives no answer.",
        "Dropped a connection to MySQL at b:3306 in use: ValueError.",
        "Closed a connection to MySQL at b:3306: the pool was closed.",
    ]


async def test_a_full_pool_raises_pool_timeout(awaited: bool) -> None:
    pool = Pool(awaited)
    lent = [await pool.borrow() for _ in range(4)]
    for _ in range(2):
        with pytest.raises(PoolTimeout):
            await pool.borrow()
    assert pool.pool.state() == PoolState(4, 4, 0)
    await pool.give_back(lent[0])
    assert await pool.borrow() is lent[0]


async def test_a_failed_connection_attempt_takes_no_place(awaited: bool) -> None:
    pool = Pool(awaited)
    pool.driver.answers = lambda *_: LOST
    for _ in range(6):
        with pytest.raises(ConnectionLost):
            await pool.borrow()
    assert pool.pool.state() == PoolState(0, 0, 0)
    pool.driver.answers = lambda *_: []
    await pool.borrow()
    assert pool.pool.state() == PoolState(1, 1, 0)


async def test_calls_on_one_of_several_servers_are_watched_and_a_ping_is_as_well(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    lent = await pool.borrow()
    assert pool.waiting == [lent]
    pinged: list[list[Any]] = []
    lent.connection.try_ping = lambda: pinged.append(pool.waiting)
    await pool.give_back(lent)
    assert pool.waiting == []
    await pool.borrow(tested=True)
    assert pinged == [[lent]]
    assert Pool(awaited).pool._watch is None


async def test_a_call_that_cannot_be_watched_takes_no_place(awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(connection: Any) -> None:
        raise RuntimeError("no thread can be started any more")

    pool = Pool(awaited, SEVERAL)
    await pool.idle(1)
    monkeypatch.setattr(pool.pool._watch, "begin", fail)
    for _ in range(2):  # with an idle connection, and with a new one
        with pytest.raises(RuntimeError, match="no thread"):
            await pool.borrow()
    assert pool.pool.state() == PoolState(0, 0, 0)
    assert pool.ended == ["aborted", "aborted"]


async def test_a_silent_server_is_left_once_another_one_is_the_primary(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    silent, idle = await pool.borrow(), await pool.borrow()
    await pool.give_back(idle)
    pool.topology.is_primary(B)
    pool.gone_if = False
    await pool.look_for_another(silent)
    assert pool.asked_whether_gone == [A]
    assert pool.ended == ["", ""]
    await pool.give_back(await pool.borrow())
    pool.gone_if = True
    new = await pool.borrow()
    other = await pool.borrow()
    last = await pool.borrow()
    await pool.give_back(last)
    await pool.look_for_another(silent)
    assert last.connection.ended == "aborted"  # it was idle
    assert silent.connection.ended == ("aborted" if awaited else "interrupted")
    assert other.endpoint == B
    assert other.connection.ended == ""
    await pool.give_back(silent, LOST)
    assert pool.counters.lost == 1  # new connections are kept
    await pool.give_back(new)
    assert new.connection.ended


async def test_a_ping_that_is_interrupted_leaves_nothing_behind(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(1)

    def interrupted() -> None:
        raise KeyboardInterrupt

    pool.driver.opened[0].try_ping = interrupted
    with pytest.raises(KeyboardInterrupt):
        await pool.borrow(tested=True)
    assert pool.pool.state() == PoolState(0, 0, 0)
    assert pool.ended == ["aborted"]


async def test_idle_connections_are_closed_and_checked_until_none_is_left(
    awaited: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    called: list[float] = []
    pool = Pool(awaited)
    monkeypatch.setattr(pool.side, "reap_in", lambda pool, wait_s: called.append(wait_s))
    now = [pool.pool._idle._clock()]
    pool.pool._idle._clock = lambda: now[0]

    async def reap() -> float | None:
        """Reap idle connections; return when the next call is due."""
        before = len(called)
        await pool.run(pool.pool.reap())
        return called.pop() if len(called) > before else None

    idle_s = SINGLE.pool_idle_s
    first, second = await pool.borrow(), await pool.borrow()
    await pool.give_back(first)
    now[0] += idle_s - 1
    await pool.give_back(second)
    assert called == [pytest.approx(idle_s, abs=0.1)]  # one call for both
    assert await reap() == pytest.approx(1.0, abs=0.1)
    assert pool.ended == ["", ""]
    now[0] += 2
    assert await reap() == pytest.approx(idle_s - 2, abs=0.1)
    assert sorted(pool.ended) == ["", "closed"]
    await pool.idle(1)
    assert len(called) == 1
    now[0] += idle_s + 1
    assert await reap() is None
    assert pool.ended == ["closed", "closed"]
    assert caplog.text.count("too old") == 2
    await pool.idle(1)
    assert len(called) == 2


async def test_a_timer_of_an_event_loop_calls_its_pool_and_does_not_keep_it(awaited: bool) -> None:
    pool = Pool(awaited, MySQLConfig(host="a", pool_idle_s=0.01))
    await pool.idle(1)
    deadline = asyncio.get_running_loop().time() + 60
    while pool.ended != ["closed"]:
        assert asyncio.get_running_loop().time() < deadline, "nobody closed it"
        await asyncio.sleep(0.01)
    kept = weakref.ref(pool.pool)
    await pool.idle(1)
    pool.pool = None
    assert kept() is None
    if isinstance(pool.side, AwaitedSide):
        pool.side._reap(kept)


async def test_a_pool_by_itself_counts_and_chooses_for_itself(awaited: bool) -> None:
    driver: Any = Driver()
    pool = pools.Pool(SINGLE, driver, AwaitedSide() if awaited else BlockingSide())

    def use(lent: ServerConnection) -> CommandGenerator[ServerConnection]:
        yield Sleep(0)
        return lent

    lent = [await scripted.run(pool.lend(use), awaited=awaited) for _ in range(2)]
    assert lent[0] is lent[1]
    assert pool.state() == PoolState(1, 0, 0)
    assert driver.opened[0].pings == 0


async def test_a_closed_or_aborted_pool_stops_watching(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    lent, idle = await pool.borrow(), await pool.borrow()
    await pool.give_back(idle)
    if awaited:
        assert pool.pool._watch._timer is not None
        pool.pool.abort()
        assert pool.ended == ["", "aborted"]
        assert pool.pool._watch._timer is None
        await pool.give_back(lent)
        assert pool.ended == ["closed", "aborted"]
        Pool(awaited).pool.abort()
        await pool.borrow()
    await pool.close()
    if awaited:
        assert pool.pool._watch._timer is None


def test_a_freed_pool_of_a_closed_event_loop_drops_its_idle_connections(awaited: bool) -> None:
    pool = Pool(awaited)
    asyncio.run(pool.idle(1))
    pool.pool = None
    assert pool.ended == ["aborted"]
    unused = Pool(awaited)
    unused.pool = None


async def test_a_freed_pool_drops_its_idle_connections_unless_they_are_the_parent_s(awaited: bool) -> None:
    for process, ended in ((None, "aborted"), (-1, "")):
        pool = Pool(awaited)
        await pool.idle(1)
        if process is not None:
            pool.pool._process = process
        pool.pool = None
        if awaited:
            assert pool.ended == [""]  # the event loop closes it
        await asyncio.sleep(0)
        assert pool.ended == [ended]
