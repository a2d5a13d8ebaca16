"""Locks, full pools, cancelled calls, several event loops, forks: calls succeed, or explain their failure."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MySQLConfig
from locus_mysql.errors import PoolTimeout, Unavailable

from ..waiting import until
from .conftest import ONE_OF_EACH, MakeConfig, OpenStore
from .connecting import connect
from .drivers_under_test import ASYNC_DRIVERS

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
LockThread = Callable[[MySQLConfig, str], "Rival"]
State = dict[str, Any]
DEADLINE_S = 180.0

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)
async_drivers = pytest.mark.parametrize("driver", ASYNC_DRIVERS)


def state_of(turns: int) -> State:
    return {"turns": turns, "messages": [{"content": f"turn {turn} " * 50} for turn in range(turns)]}


# Locks


class Rival:
    """Another client that holds the lock of a thread."""

    def __init__(self, config: MySQLConfig, thread_id: str) -> None:
        self.connection = connect(config, config.database, autocommit=False)
        with self.connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            where = "tenant = 'default' AND thread_id = %s"
            cursor.execute(f"SELECT * FROM locus_store_threads WHERE {where} FOR UPDATE", (thread_id,))

    def unlock(self) -> None:
        if self.connection.open:
            self.connection.close()


@pytest.fixture
def lock_thread(own_config: MakeConfig) -> Iterator[Callable[[MySQLConfig, str], Rival]]:
    """Return ``lock_thread(config, thread_id)``, which returns a rival. Its lock is released after the test."""
    rivals: list[Rival] = []

    def lock(config: MySQLConfig, thread_id: str) -> Rival:
        rivals.append(Rival(config, thread_id))
        return rivals[-1]

    yield lock
    for rival in rivals:
        rival.unlock()


@pytest.mark.slow
@one_of_each
async def test_a_save_waits_for_a_lock_longer_than_the_server_does(
    open_store: OpenStore, own_config: MakeConfig, lock_thread: LockThread, own_sql: RunSQL, side: str
) -> None:
    """The server ends the wait after a second (innodb_lock_wait_timeout); the save is repeated."""
    config = own_config()
    store = open_store(side, config=config)
    await store.save("thread", state_of(1))
    rival = lock_thread(config, "thread")
    before = int(own_sql("SHOW GLOBAL STATUS LIKE 'Com_rollback'")[0][1])

    def unlock_after_a_timeout() -> None:
        end = time.monotonic() + DEADLINE_S
        while int(own_sql("SHOW GLOBAL STATUS LIKE 'Com_rollback'")[0][1]) == before and time.monotonic() < end:
            time.sleep(0.02)
        rival.unlock()

    unlocking = threading.Thread(target=unlock_after_a_timeout)
    unlocking.start()
    await store.save("thread", state_of(2))
    unlocking.join()
    assert await store.load("thread") == state_of(2)
    assert len(await store.list_checkpoints("thread")) == 2


@one_of_each
async def test_a_save_raises_an_error_at_the_retry_deadline(
    open_store: OpenStore, own_config: MakeConfig, lock_thread: LockThread, side: str
) -> None:
    config = own_config(retry_deadline_s=0.5)
    store = open_store(side, config=config)
    await store.save("thread", state_of(1))
    rival = lock_thread(config, "thread")
    began = time.monotonic()
    with pytest.raises(Unavailable, match="retry_deadline_s"):
        await store.save("thread", state_of(2))
    assert time.monotonic() - began < 20  # by default it is 30
    rival.unlock()
    assert await store.load("thread") == state_of(1)
    await store.save("thread", state_of(2))
    assert len(await store.list_checkpoints("thread")) == 2


@one_of_each
async def test_a_deadlock_is_repeated(
    open_store: OpenStore, own_config: MakeConfig, lock_thread: LockThread, own_sql: RunSQL, side: str
) -> None:
    """The rival locks one of two threads and requests the other, which the copy has locked: the server ends one."""
    config = own_config()
    store = open_store(side, config=config)
    await store.save("a", state_of(1))
    deadlocks = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    before = own_sql(deadlocks)[0][0]
    rival = lock_thread(config, "nothing")
    with rival.connection.cursor() as cursor:
        # InnoDB ends the transaction that changed fewer rows, so the rival changes many.
        cursor.execute("CREATE TEMPORARY TABLE heavy (n INT PRIMARY KEY)")
        cursor.executemany("INSERT INTO heavy VALUES (%s)", [(n,) for n in range(500)])
        cursor.execute("CREATE TEMPORARY TABLE copied AS SELECT * FROM locus_store_threads WHERE thread_id = 'a'")
        cursor.execute("UPDATE copied SET thread_id = 'b'")
        cursor.execute("INSERT INTO locus_store_threads SELECT * FROM copied")
    failures: list[BaseException] = []

    def want_the_other() -> None:
        try:
            end = time.monotonic() + DEADLINE_S
            waits = "SELECT COUNT(*) FROM performance_schema.data_lock_waits"
            while not own_sql(waits)[0][0] and time.monotonic() < end:
                time.sleep(0.005)
            with rival.connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE locus_store_threads SET last_seq = last_seq + 0"
                    " WHERE tenant = 'default' AND thread_id = 'a'"
                )
        except BaseException as error:
            failures.append(error)
        finally:
            rival.unlock()

    wanting = threading.Thread(target=want_the_other)
    wanting.start()
    assert await store.copy_thread("a", "b")
    wanting.join()
    assert not failures
    assert own_sql(deadlocks)[0][0] > before
    assert await store.load("b") == state_of(1)


# Crowds


@async_drivers
async def test_many_tasks_share_a_small_pool(
    make_config: MakeConfig, run_sql: RunSQL, database: str, driver: str
) -> None:
    most = 0

    async with CheckpointStore(make_config(driver=driver, pool_size=4)) as store:
        await store.health_check()

        async def look(stop: asyncio.Event) -> None:
            nonlocal most
            query = "SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_db = %s"
            while not stop.is_set():
                most = max(most, (await asyncio.to_thread(run_sql, query, database))[0][0])

        async def work(task: int) -> None:
            for turn in range(3):
                await store.save(f"thread {task}", state_of(task + turn))
                assert await store.load(f"thread {task}") == state_of(task + turn)

        stop = asyncio.Event()
        watcher = asyncio.create_task(look(stop))
        await asyncio.gather(*(work(task) for task in range(32)))
        stop.set()
        await watcher
        assert await store.count() == 32
    assert 2 <= most <= 4


@one_of_each
async def test_a_pool_that_stays_full_says_what_to_raise(
    open_store: OpenStore, own_config: MakeConfig, lock_thread: LockThread, own_sql: RunSQL, side: str
) -> None:
    config = own_config(pool_size=1, pool_timeout_s=0.2)
    store = open_store(side, config=config)
    await store.save("thread", state_of(1))
    rival = lock_thread(config, "thread")
    with ThreadPoolExecutor(1) as threads:
        if side.endswith("async"):
            saving: Any = asyncio.create_task(store.save("thread", state_of(2)))
        else:
            saving = asyncio.wrap_future(threads.submit(store.store.save, "thread", state_of(2)))
        waits = "SELECT COUNT(*) FROM performance_schema.data_lock_waits"
        await until(lambda: own_sql(waits)[0][0], "the save waits for the lock")
        with pytest.raises(PoolTimeout, match="pool_size") as caught:
            await store.load("thread")
        rival.unlock()
        await saving
    assert "pool_timeout_s" in str(caught.value)
    assert isinstance(caught.value, TimeoutError)
    assert await store.load("thread") == state_of(2)


async def test_a_server_with_too_many_connections_is_waited_for(
    open_store: OpenStore, own_config: MakeConfig, own_sql: RunSQL
) -> None:
    name = "crowded"
    own_sql(f"CREATE USER {name} IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1")
    own_sql(f"GRANT ALL ON *.* TO {name}")
    try:
        config = own_config(user=name, password="x", retry_deadline_s=10)
        one, other = open_store(config=config), open_store("pymysql-sync", config=config)
        await one.save("thread", state_of(1))
        with pytest.raises(Unavailable):
            await open_store(config=config.model_copy(update={"retry_deadline_s": 0.1})).load("thread")
        closing = threading.Timer(0.2, asyncio.run_coroutine_threadsafe, (one.close(), asyncio.get_running_loop()))
        closing.start()
        assert await asyncio.to_thread(other.store.load, "thread") == state_of(1)
        closing.join()
    finally:
        own_sql(f"DROP USER {name}")


# Cancelled tasks


@async_drivers
async def test_a_cancelled_save_leaves_the_store_usable_and_the_thread_loadable(
    make_config: MakeConfig, driver: str
) -> None:
    async with CheckpointStore(make_config(driver=driver, pool_size=2, pool_timeout_s=5)) as store:
        states = [state_of(1)]
        await store.save("thread", states[0])
        for step in range(24):
            state = {"step": step, "log": ["x" * 200_000]}
            saving = asyncio.create_task(store.save("thread", state))
            for _ in range(step):
                await asyncio.sleep(0)
            saving.cancel()
            outcome = (await asyncio.gather(saving, return_exceptions=True))[0]
            assert isinstance(outcome, asyncio.CancelledError | str)
            states.append(state)
            found = await store.load("thread")
            assert found in states, step
        await asyncio.gather(*(store.save(f"other {n}", state_of(n)) for n in range(8)))
        assert await store.count("other *") == 8


@async_drivers
async def test_a_cancelled_wait_for_a_connection_takes_none_with_it(
    own_config: MakeConfig, lock_thread: LockThread, driver: str
) -> None:
    config = own_config(driver=driver, pool_size=1, pool_timeout_s=5)
    async with CheckpointStore(config) as store:
        await store.save("thread", state_of(1))
        rival = lock_thread(config, "thread")
        saving = asyncio.create_task(store.save("thread", state_of(2)))
        waiting = [asyncio.create_task(store.load("thread")) for _ in range(5)]
        await asyncio.sleep(0.05)
        for task in waiting:
            task.cancel()
        rival.unlock()
        await asyncio.gather(*waiting, return_exceptions=True)
        await saving
        assert await store.load("thread") == state_of(2)


@async_drivers
async def test_a_timeout_around_a_save_ends_it_and_its_lock(
    own_config: MakeConfig, lock_thread: LockThread, driver: str
) -> None:
    config = own_config(driver=driver)
    async with CheckpointStore(config) as store:
        await store.save("thread", state_of(1))
        rival = lock_thread(config, "thread")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await store.save("thread", state_of(2))
        rival.unlock()
        await store.save("thread", state_of(3))
        assert await store.load("thread") == state_of(3)


# Event loops


@async_drivers
def test_one_store_serves_one_event_loop_after_another(make_config: MakeConfig, driver: str) -> None:
    store = CheckpointStore(make_config(driver=driver))

    async def turn(number: int) -> None:
        assert await store.load("thread") == (state_of(number) if number else None)
        await asyncio.gather(*(store.save("thread", state_of(number + 1)) for _ in range(3)))

    for number in range(3):
        asyncio.run(turn(number))
    asyncio.run(store.close())
    gc.collect()


@async_drivers
def test_one_store_serves_two_event_loops_at_once(make_config: MakeConfig, driver: str) -> None:
    store = CheckpointStore(make_config(driver=driver))

    async def work(name: str) -> None:
        for turn in range(5):
            await store.save(name, state_of(turn))
            assert await store.load(name) == state_of(turn)
        await store.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: asyncio.run(work(name)), [f"thread {n}" for n in range(24)]))

    assert asyncio.run(store.count()) == 24
    asyncio.run(store.close())
