"""Which idle connection is lent, pinged or thrown away."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.engine.pool import (
    PING_AFTER_S,
    AsyncPool,
    IdleConnections,
    SyncPool,
    pool_timeout,
)
from locus_mysql.errors import PoolTimeout

from .conftest import Clock


@pytest.fixture
def idle(clock: Clock) -> IdleConnections[Any]:
    return IdleConnections(MySQLConfig(pool_idle_s=60, pool_max_age_s=600), clock)


def test_the_connection_last_used_is_lent_first(idle: IdleConnections[Any], clock: Clock) -> None:
    for name in ("first", "second"):
        idle.put(name, clock.now)
    kept, ping, stale = idle.take()
    assert kept is not None
    assert (kept.connection, ping, stale) == ("second", False, [])
    assert idle.take()[0].connection == "first"  # type: ignore[union-attr]
    assert idle.take() == (None, False, [])


def test_one_in_steady_use_is_never_pinged_and_one_idle_for_a_while_is(
    idle: IdleConnections[Any], clock: Clock
) -> None:
    idle.put("a", clock.now)
    clock.now += PING_AFTER_S
    assert idle.take()[1] is False
    idle.put("a", clock.now)
    clock.now += PING_AFTER_S + 0.1
    assert idle.take()[1] is True


def test_one_that_is_too_long_idle_or_too_old_is_thrown_away(idle: IdleConnections[Any], clock: Clock) -> None:
    idle.put("old", clock.now - 601)
    idle.put("idle", clock.now)
    clock.now += 61
    idle.put("good", clock.now - 100)
    kept, _, stale = idle.take()
    assert kept is not None
    assert kept.connection == "good"
    assert {one.connection for one in stale} == {"old", "idle"}
    assert idle.take() == (None, False, [])


def test_age_counts_from_the_opening_however_often_it_is_used(idle: IdleConnections[Any], clock: Clock) -> None:
    opened = clock.now
    for _ in range(13):
        idle.put("a", opened)
        clock.now += 50
        kept, _, stale = idle.take()
        if clock.now - opened > 600:
            assert kept is None
            assert len(stale) == 1
        else:
            assert kept is not None


def test_all_can_be_taken_to_be_closed(idle: IdleConnections[Any], clock: Clock) -> None:
    for name in "abc":
        idle.put(name, clock.now)
    assert [one.connection for one in idle.take_all()] == ["a", "b", "c"]
    assert idle.take_all() == []


def test_a_full_pool_says_what_to_raise() -> None:
    error = pool_timeout(MySQLConfig(pool_size=3, pool_timeout_s=0.5))
    assert isinstance(error, TimeoutError)
    for words in ("All 3 connections", "0.5 s", "pool_size", "pool_timeout_s", "max_connections"):
        assert words in str(error)


class Connection:
    """Stands for an open connection."""

    def __init__(self) -> None:
        self.server_version = "9.7.0"
        self.ended = ""
        self.closed = False

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"


class Driver:
    """Opens connections and counts them."""

    name = "counting"

    def __init__(self) -> None:
        self.opened: list[Connection] = []

    def connect(self, *_: object) -> Connection:
        self.opened.append(Connection())
        return self.opened[-1]


class AsyncDriver(Driver):
    """The same, awaited."""

    async def connect_async(self, *_: object) -> Connection:
        return self.connect()


def test_connections_are_reused_and_one_in_doubt_is_not() -> None:
    driver: Any = Driver()
    pool = SyncPool(MySQLConfig(pool_size=1, pool_timeout_s=0.01), driver)
    for _ in range(3):
        with pool.connection(), pytest.raises(PoolTimeout), pool.connection():
            pass
    assert len(driver.opened) == 1
    with pytest.raises(KeyboardInterrupt), pool.connection():
        raise KeyboardInterrupt
    assert driver.opened[0].ended == "aborted"
    with pool.connection() as second:
        pool.close()
    assert second is driver.opened[1]
    assert driver.opened[1].ended == "closed"
    with pool.connection():
        pass
    assert len(driver.opened) == 3


def test_threads_wait_for_a_place_and_every_one_gets_it() -> None:
    driver: Any = Driver()
    pool = SyncPool(MySQLConfig(pool_size=2, pool_timeout_s=60), driver)
    counting = threading.Lock()
    most: list[int] = []
    inside: list[object] = []

    def lend() -> None:
        for _ in range(25):
            with pool.connection() as connection:
                with counting:
                    inside.append(connection)
                    most.append(len(inside))
                with counting:
                    inside.remove(connection)

    with ThreadPoolExecutor(12) as threads:
        for done in [threads.submit(lend) for _ in range(12)]:
            done.result(timeout=60)
    assert len(most) == 12 * 25
    assert max(most) <= 2
    assert len(driver.opened) <= 2
    assert (pool.state().in_use, pool.state().waiting) == (0, 0)


def test_a_connection_that_comes_back_goes_to_the_thread_that_waits() -> None:
    driver: Any = Driver()
    pool = SyncPool(MySQLConfig(pool_size=1, pool_timeout_s=60), driver)

    def lend() -> object:
        with pool.connection() as connection:
            return connection

    with ThreadPoolExecutor(1) as threads:
        with pool.connection() as first:
            second = threads.submit(lend)
            deadline = time.monotonic() + 60
            while not pool.state().waiting:
                assert time.monotonic() < deadline, "nobody waited"
                time.sleep(0.001)
            assert not second.done()
        assert second.result(timeout=60) is first


class Interrupting(threading.Condition):
    """Interrupts one of the threads that wait, right after it was told that it may go on."""

    interrupted: threading.Thread | None = None

    def wait(self, timeout: float | None = None) -> bool:
        told = super().wait(timeout)
        if threading.current_thread() is self.interrupted:
            raise KeyboardInterrupt
        return told


def test_a_place_that_a_thread_was_told_of_as_it_was_interrupted_goes_to_the_next() -> None:
    driver: Any = Driver()
    pool = SyncPool(MySQLConfig(pool_size=1, pool_timeout_s=600), driver)
    pool._freed = freed = Interrupting(pool._lock)
    outcomes: dict[str, object] = {}

    def lend() -> None:
        name = threading.current_thread().name
        try:
            with pool.connection() as connection:
                outcomes[name] = connection
        except KeyboardInterrupt:
            outcomes[name] = "interrupted"

    with pool.connection() as connection:
        threads = []
        for waiting, name in enumerate(("first", "second"), 1):
            threads.append(threading.Thread(target=lend, name=name, daemon=True))
            threads[-1].start()
            deadline = time.monotonic() + 60
            while pool.state().waiting < waiting:
                assert time.monotonic() < deadline, f"the {name} did not wait"
                time.sleep(0.001)
        freed.interrupted = threads[0]  # told first, as it has waited for longest
    for thread in threads:
        thread.join(60)
    assert outcomes == {"first": "interrupted", "second": connection}
    assert (pool.state().in_use, pool.state().waiting) == (0, 0)


async def test_a_place_that_a_task_was_told_of_as_it_was_cancelled_goes_to_the_next() -> None:
    driver: Any = AsyncDriver()
    pool = AsyncPool(MySQLConfig(pool_size=1, pool_timeout_s=600), driver)

    async def lend() -> object:
        async with pool.connection() as connection:
            return connection

    async with pool.connection() as connection:
        first, second = asyncio.create_task(lend()), asyncio.create_task(lend())
        await asyncio.sleep(0)
        assert pool.state().waiting == 2
    first.cancel()  # the place was given to it, but it has not run since
    assert await asyncio.wait_for(second, 60) is connection
    assert first.cancelled()
    assert (pool.state().in_use, pool.state().waiting) == (0, 0)


def test_what_fails_to_open_gives_its_place_back() -> None:
    class Broken(Driver):
        def connect(self, *_: object) -> Connection:
            raise OSError("no route")

    driver: Any = Broken()
    pool = SyncPool(MySQLConfig(pool_size=1, pool_timeout_s=0.01), driver)
    for _ in range(3):
        with pytest.raises(OSError, match="no route"), pool.connection():
            pass
    assert pool.state().in_use == 0
