"""Threads and tasks wait for a slot in a full pool."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import ref

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.engine import connection_slots
from locus_mysql.engine.connection_slots import AwaitedSlots, Slot, pool_timeout
from locus_mysql.engine.pool import Pool
from locus_mysql.engine.servers import OneServer
from locus_mysql.engine.sides import AwaitedSide, BlockingSide, Side
from locus_mysql.errors import PoolTimeout

from ...growth import assert_linear
from . import scripted


def test_the_error_of_a_full_pool_names_the_options_to_raise() -> None:
    error = pool_timeout(MySQLConfig(pool_size=3, pool_timeout_s=0.5))
    assert isinstance(error, TimeoutError)
    for words in ("All 3 connections", "0.5 s", "pool_size", "pool_timeout_s", "max_connections"):
        assert words in str(error)


class Connection:
    """A stand-in for an open connection."""

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
    """The same for the asynchronous side."""

    async def connect_async(self, *_: object) -> Connection:
        return self.connect()


def pool_of(config: MySQLConfig, driver: Any, side: Side) -> Pool:
    return Pool(config, side, OneServer(config, driver))


@contextmanager
def lending(pool: Pool) -> Iterator[Any]:
    """Borrow a connection in a thread for a block."""
    lent = scripted.run_blocking(scripted.borrow(pool))
    try:
        yield lent.connection
    except BaseException as error:
        scripted.run_blocking(scripted.give_back(pool, lent, error))
        raise
    scripted.run_blocking(scripted.give_back(pool, lent))


@asynccontextmanager
async def lending_to_task(pool: Pool) -> AsyncIterator[Any]:
    """Borrow a connection in a task for a block."""
    lent = await scripted.run_awaited(scripted.borrow(pool))
    yield lent.connection
    await scripted.run_awaited(scripted.give_back(pool, lent))


def test_connections_are_reused_and_one_in_doubt_is_not() -> None:
    driver: Any = Driver()
    pool = pool_of(MySQLConfig(pool_size=1, pool_timeout_s=0.01), driver, BlockingSide())
    for _ in range(3):
        with lending(pool), pytest.raises(PoolTimeout), lending(pool):
            pass
    assert len(driver.opened) == 1
    with pytest.raises(KeyboardInterrupt), lending(pool):
        raise KeyboardInterrupt
    assert driver.opened[0].ended == "aborted"
    with lending(pool) as second:
        scripted.run_blocking(pool.close())
    assert second is driver.opened[1]
    assert driver.opened[1].ended == "closed"
    with lending(pool):
        pass
    assert len(driver.opened) == 3


def test_threads_wait_for_a_slot_and_every_one_gets_it() -> None:
    driver: Any = Driver()
    pool = pool_of(MySQLConfig(pool_size=2, pool_timeout_s=60), driver, BlockingSide())
    counting = threading.Lock()
    most: list[int] = []
    inside: list[object] = []

    def lend() -> None:
        for _ in range(25):
            with lending(pool) as connection:
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
    pool = pool_of(MySQLConfig(pool_size=1, pool_timeout_s=60), driver, BlockingSide())

    def lend() -> object:
        with lending(pool) as connection:
            return connection

    with ThreadPoolExecutor(1) as threads:
        with lending(pool) as first:
            second = threads.submit(lend)
            deadline = time.monotonic() + 60
            while not pool.state().waiting:
                assert time.monotonic() < deadline, "nobody waited"
                time.sleep(0.001)
            assert not second.done()
        assert second.result(timeout=60) is first


def test_a_slot_goes_to_the_next_thread_if_the_woken_one_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = Driver()
    pool = pool_of(MySQLConfig(pool_size=1, pool_timeout_s=600), driver, BlockingSide())
    monkeypatch.setattr(connection_slots, "RECHECK_S", 600)
    first_take, outcomes = pool._slots.take, dict[str, object]()

    def take(slot: Slot) -> bool:
        taken = first_take(slot)
        if taken and threading.current_thread().name == "first":
            raise KeyboardInterrupt
        return taken

    monkeypatch.setattr(pool._slots, "take", take)

    def lend() -> None:
        name = threading.current_thread().name
        try:
            with lending(pool) as connection:
                outcomes[name] = connection
        except KeyboardInterrupt:
            outcomes[name] = "interrupted"

    with lending(pool) as connection:
        threads = []
        for waiting, name in enumerate(("first", "second"), 1):
            threads.append(threading.Thread(target=lend, name=name, daemon=True))
            threads[-1].start()
            deadline = time.monotonic() + 60
            while pool.state().waiting < waiting:
                assert time.monotonic() < deadline, f"the {name} did not wait"
                time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert outcomes == {"first": "interrupted", "second": connection}
    assert (pool.state().in_use, pool.state().waiting) == (0, 0)


async def test_a_slot_goes_to_the_next_task_if_the_notified_one_is_cancelled() -> None:
    driver: Any = AsyncDriver()
    pool = pool_of(MySQLConfig(pool_size=1, pool_timeout_s=600), driver, AwaitedSide())

    async def lend() -> object:
        async with lending_to_task(pool) as connection:
            return connection

    async with lending_to_task(pool) as connection:
        first, second = asyncio.create_task(lend()), asyncio.create_task(lend())
        await asyncio.sleep(0)
        assert pool.state().waiting == 2
    first.cancel()  # the slot was given to it, but it has not run since
    assert await asyncio.wait_for(second, 60) is connection
    assert first.cancelled()
    assert (pool.state().in_use, pool.state().waiting) == (0, 0)


def test_a_failed_connection_attempt_gives_its_slot_back() -> None:
    class Broken(Driver):
        def connect(self, *_: object) -> Connection:
            raise OSError("no route")

    driver: Any = Broken()
    pool = pool_of(MySQLConfig(pool_size=1, pool_timeout_s=0.01), driver, BlockingSide())
    for _ in range(3):
        with pytest.raises(OSError, match="no route"), lending(pool):
            pass
    assert pool.state().in_use == 0


def test_the_work_of_a_waiting_task_does_not_grow_with_the_number_of_those_that_wait() -> None:
    compared = 0

    class Counted(Slot):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

        __hash__ = Slot.__hash__

    async def use(slots: AwaitedSlots) -> None:
        slot = Counted()
        if not slots.take(slot):
            await slots.wait(slot)
        await asyncio.sleep(0)
        slots.taken.discard(ref(slot))
        slots.wake()

    async def all_at_once(count: int) -> None:
        slots = AwaitedSlots(MySQLConfig(pool_size=2, pool_timeout_s=600), [])
        await asyncio.gather(*(use(slots) for _ in range(count)))

    def comparisons(count: int) -> int:
        nonlocal compared
        compared = 0
        asyncio.run(all_at_once(count))
        return compared

    assert_linear(comparisons, 50)


def test_a_slot_that_is_freed_is_not_offered_to_tasks_of_a_closed_event_loop() -> None:
    slots = AwaitedSlots(MySQLConfig(pool_size=1, pool_timeout_s=600), [])
    holding, waiting = Slot(), Slot()
    assert slots.take(holding)
    loop = asyncio.new_event_loop()
    task = loop.create_task(slots.wait(waiting))
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert len(slots.waiters) == 1
    loop.close()
    slots.taken.discard(ref(holding))
    slots.wake()
    assert not slots.taken
    assert not slots.waiters
    task._log_destroy_pending = False  # type: ignore[attr-defined]
