"""What becomes of the connections of a pool, by how the calls on them end; of both sides, no server."""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.engine import pool as pools
from locus_mysql.engine.counters import Counters, PoolState
from locus_mysql.engine.members import AsyncMember, Role, SyncMember
from locus_mysql.engine.pool import AsyncPool, Lent, SyncPool
from locus_mysql.engine.reaper import REAPER
from locus_mysql.engine.topology import Topology
from locus_mysql.engine.watch import AsyncWatch, SyncWatch
from locus_mysql.errors import PoolTimeout

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
    """Calls are watched, but however long a test takes, no server is looked for unless it asks for that."""
    for watch in (SyncWatch, AsyncWatch):
        monkeypatch.setattr(watch, "_watch", lambda self: None)


class Pool:
    """A pool of one side, whose methods are awaited; its connections go to the first of its servers."""

    def __init__(self, awaited: bool, config: MySQLConfig = SINGLE) -> None:
        self.awaited = awaited
        self.driver: Any = Driver()
        self.topology = Topology(config.endpoints)
        self.counters = Counters()
        self.gone_if = False
        self.asked_whether_gone: list[Endpoint] = []
        role = Role(self._connect, self._connect_async, self._gone, self._gone_async)
        kind: Any = AsyncPool if awaited else SyncPool
        self.pool = kind(config, self.driver, self.topology, self.counters, role)

    def _member(self, opened: Any, kind: Any, config: Any) -> Any:
        return kind(opened, opened.endpoint) if len(config.endpoints) > 1 else opened

    def _connect(self, config: Any, driver: Any, topology: Any) -> Any:
        return self._member(driver.connect(config, topology.order()[0]), SyncMember, config)

    async def _connect_async(self, config: Any, driver: Any, topology: Any) -> Any:
        return self._member(await driver.connect_async(config, topology.order()[0]), AsyncMember, config)

    def _gone(self, config: Any, driver: Any, topology: Any, endpoint: Endpoint) -> bool:
        self.asked_whether_gone.append(endpoint)
        return self.gone_if

    async def _gone_async(self, *arguments: Any) -> bool:
        return self._gone(*arguments)

    async def borrow(self, *, tested: bool = False) -> Lent[Any]:
        return await result_of(self.pool.borrow(tested=tested))  # type: ignore[no-any-return]

    async def give_back(self, lent: Lent[Any], error: BaseException | None = None) -> None:
        await result_of(self.pool.give_back(lent, error))

    async def close(self) -> None:
        await result_of(self.pool.close())

    async def look_for_another(self, silent: Any) -> None:
        await result_of(self.pool._look_for_another(silent))

    async def idle(self, count: int) -> None:
        """Have so many connections idle."""
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
async def test_a_connection_is_used_again_unless_its_call_leaves_doubts(
    awaited: bool, config: MySQLConfig, error: BaseException | None, kept: bool, lost: int
) -> None:
    pool = Pool(awaited, config)
    lent = await pool.borrow()
    assert pool.pool.state() == PoolState(1, 1, 0)
    await pool.give_back(lent, error)
    assert pool.pool.state() == PoolState(int(kept), 0, 0)
    assert (await pool.borrow()).connection is lent.connection if kept else pool.ended == ["aborted"]
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
    assert other.connection.connection.ended == ("closed" if others_go else "")  # its server is left


async def test_of_many_calls_that_a_server_fails_only_the_first_drops_what_is_idle(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    first, second, third = [await pool.borrow() for _ in range(3)]
    await pool.give_back(first, LOST)
    await pool.idle(1)  # to another server
    await pool.give_back(second, LOST)
    await pool.give_back(third, DUPLICATE)  # sound, but to the server that is left
    assert pool.ended == ["aborted", "aborted", "aborted", ""]
    assert pool.counters.lost == 2
    assert pool.pool.state() == PoolState(1, 0, 0)


async def test_the_others_of_a_single_server_stay(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(2)
    await pool.give_back(await pool.borrow(), LOST)
    assert sorted(pool.ended) == ["", "aborted"]
    assert pool.counters.lost == 1


async def test_a_closed_pool_closes_what_is_idle_and_what_is_lent_when_it_comes_back(awaited: bool) -> None:
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


async def test_one_that_was_idle_for_a_while_or_is_to_be_tested_is_pinged(
    awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(awaited)
    await pool.idle(1)
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 0
    await pool.give_back(await pool.borrow(tested=True))
    assert pool.driver.opened[0].pings == 1
    monkeypatch.setattr("locus_mysql.engine.pool.PING_AFTER_S", -1.0)
    await pool.idle(1)
    assert pool.driver.opened[0].pings == 2
    assert len(pool.driver.opened) == 1


@pytest.mark.parametrize("config", [SINGLE, SEVERAL], ids=["single", "several"])
async def test_one_that_is_found_gone_takes_all_that_are_idle_with_it(
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
        assert pool.waiting == [lent.connection]


async def test_one_that_is_too_old_is_closed_before_another_is_opened(
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


async def test_the_log_tells_why_connections_are_closed_or_dropped(
    awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    pool = Pool(awaited, SEVERAL)
    await pool.idle(2)
    await pool.give_back(await pool.borrow(), LOST)
    await pool.give_back(await pool.borrow(), ValueError())
    await pool.idle(1)
    await pool.close()
    told = [record.getMessage() for record in caplog.records if not record.getMessage().startswith("Opened")]
    assert told == [
        "Lost a connection to MySQL at a:3306 in use, and dropped 1 idle ones: It gives no answer.",
        "Dropped a connection to MySQL at b:3306 in use: ValueError.",
        "Closed a connection to MySQL at b:3306: the pool was closed.",
    ]


async def test_a_full_pool_lets_nobody_in_and_says_so(awaited: bool) -> None:
    pool = Pool(awaited)
    lent = [await pool.borrow() for _ in range(4)]
    for _ in range(2):
        with pytest.raises(PoolTimeout):
            await pool.borrow()
    assert pool.pool.state() == PoolState(4, 4, 0)
    await pool.give_back(lent[0])
    assert (await pool.borrow()).connection is lent[0].connection


async def test_what_fails_to_open_takes_no_place(awaited: bool) -> None:
    pool = Pool(awaited)
    pool.driver.answers = lambda *_: LOST
    for _ in range(6):
        with pytest.raises(ConnectionLost):
            await pool.borrow()
    assert pool.pool.state() == PoolState(0, 0, 0)
    assert not pool.pool.reached
    pool.driver.answers = lambda *_: []
    await pool.borrow()
    assert pool.pool.reached


async def test_calls_on_one_of_several_servers_are_watched_and_a_ping_is_as_well(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    lent = await pool.borrow()
    assert pool.waiting == [lent.connection]
    pinged: list[list[Any]] = []
    lent.connection.connection.try_ping = lambda: pinged.append(pool.waiting)
    await pool.give_back(lent)
    assert pool.waiting == []
    await pool.borrow(tested=True)
    assert pinged == [[lent.connection]]
    assert Pool(awaited).pool._watch is None


async def test_a_silent_server_is_left_once_another_one_is_the_primary(awaited: bool) -> None:
    pool = Pool(awaited, SEVERAL)
    silent, idle = await pool.borrow(), await pool.borrow()
    await pool.give_back(idle)
    pool.topology.is_primary(B)
    pool.gone_if = False
    await pool.look_for_another(silent.connection)
    assert pool.asked_whether_gone == [A]
    assert pool.ended == ["", ""]
    await pool.give_back(await pool.borrow())
    pool.gone_if = True
    new = await pool.borrow()
    other = (await pool.borrow()).connection
    last = await pool.borrow()
    await pool.give_back(last)
    await pool.look_for_another(silent.connection)
    assert last.connection.connection.ended == "aborted"  # it was idle
    assert silent.connection.connection.ended == ("aborted" if awaited else "interrupted")
    assert other.endpoint == B
    assert other.connection.ended == ""
    await pool.give_back(silent, LOST)
    assert pool.counters.lost == 1  # what is new stays
    await pool.give_back(new)
    assert new.connection.connection.ended


async def test_a_ping_that_is_interrupted_leaves_nothing_behind(awaited: bool) -> None:
    pool = Pool(awaited)
    await pool.idle(1)

    def interrupted() -> None:
        raise KeyboardInterrupt

    pool.driver.opened[0].try_ping = interrupted
    with pytest.raises(KeyboardInterrupt):
        await pool.borrow(tested=True)
    assert pool.pool.state() == PoolState(0, 0, 0)
    if awaited:
        assert pool.ended == ["aborted"]


async def test_what_is_idle_for_too_long_is_closed_and_looked_for_as_long_as_there_is_some(
    awaited: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql.connections")
    called: list[float] = []
    monkeypatch.setattr(REAPER, "call", lambda pool, wait_s: called.append(wait_s))
    monkeypatch.setattr(AsyncPool, "_reap_in", lambda pool, wait_s: called.append(wait_s))
    pool = Pool(awaited)
    now = [pool.pool._idle._clock()]
    pool.pool._idle._clock = lambda: now[0]

    async def reap() -> float | None:
        """What the pool asks for: when it is to be called again."""
        before = len(called)
        wait_s = pool.pool.reap()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if awaited:
            return called.pop() if len(called) > before else None
        return wait_s  # type: ignore[no-any-return]

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
    if awaited:
        pools._reap(kept)


async def test_a_pool_by_itself_counts_and_chooses_for_itself(awaited: bool) -> None:
    driver: Any = Driver()
    pool: Any = (AsyncPool if awaited else SyncPool)(SINGLE, driver)
    for _ in range(2):
        if awaited:
            async with pool.connection():
                pass
        else:
            with pool.connection():
                pass
    assert pool.state() == PoolState(1, 0, 0)
    assert driver.opened[0].pings == 0


async def test_a_pool_that_is_closed_or_aborted_watches_no_more(awaited: bool) -> None:
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


def test_a_pool_whose_event_loop_is_closed_drops_what_is_idle_when_it_is_freed(awaited: bool) -> None:
    pool = Pool(awaited)
    asyncio.run(pool.idle(1))
    pool.pool = None
    assert pool.ended == ["aborted"]
    unused = Pool(awaited)
    unused.pool = None


async def test_a_pool_that_is_freed_drops_what_is_idle_unless_it_is_the_parent_s(awaited: bool) -> None:
    for process, ended in ((None, "aborted"), (-1, "")):
        pool = Pool(awaited)
        await pool.idle(1)
        if process is not None:
            pool.pool._process = process
        pool.pool = None
        if awaited:
            assert pool.ended == [""]  # the event loop does it
        await asyncio.sleep(0)
        assert pool.ended == [ended]
