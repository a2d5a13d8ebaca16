"""`Database.stats`: pool usage and counters."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from locus_mysql import CheckpointStore, Database, SyncCheckpointStore
from locus_mysql.engine.logs import PoolState
from locus_mysql.runtime.database import Stats

from ..conftest import EACH_WAY, MakeConfig, OpenStore
from ..proxy import WireProxy


def test_statistics_of_an_unused_database_are_zero(make_config: MakeConfig) -> None:
    stats = Database(make_config()).stats()
    assert stats == Stats(**dict.fromkeys(Stats.__slots__[:-2], 0))
    with pytest.raises(FrozenInstanceError):
        stats.open = 1  # type: ignore[misc]


@pytest.mark.parametrize("side", EACH_WAY)
async def test_round_trips_and_bytes_are_those_on_the_wire(
    make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy, side: str
) -> None:
    config = make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    store = open_store(side, config=config)
    await store.save("t", {"n": 0})
    stats = store.store.database.stats
    before = stats()
    with proxy.counting() as count:
        for number in range(5):
            await store.save("t", {"n": number, "text": "a" * 10_000})
            assert await store.load("t")
            assert await store.load("nobody") is None
    after = stats()
    assert after.round_trips - before.round_trips == count.round_trips >= 15
    assert after.sent_bytes - before.sent_bytes == count.bytes_sent
    assert after.received_bytes - before.received_bytes == count.bytes_received
    assert (after.opened, after.lost, after.retries) == (1, 0, 0)


@pytest.mark.parametrize("side", EACH_WAY)
async def test_the_cache_helps_whoever_wrote_last(make_config: MakeConfig, open_store: OpenStore, side: str) -> None:
    store, other = open_store(side), open_store(side)
    stats = store.store.database.stats
    await store.save("t", {"n": 0})
    for _ in range(3):
        await store.load("t")
    assert (stats().cache_hits, stats().cache_misses) == (3, 0)
    await other.save("t", {"n": 1})
    assert await store.load("t") == {"n": 1}
    assert (stats().cache_hits, stats().cache_misses) == (3, 1)


@pytest.mark.parametrize("side", EACH_WAY)
async def test_a_lost_connection_and_the_retry_are_counted(
    make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy, side: str
) -> None:
    store = open_store(side, config=make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED"))
    await store.save("t", {"n": 0})
    proxy.drop_before()
    await store.save("t", {"n": 1})
    stats = store.store.database.stats()
    assert (stats.opened, stats.lost, stats.retries) == (2, 1, 1)
    assert (stats.open, stats.in_use, stats.waiting) == (1, 0, 0)


async def test_each_event_loop_has_a_pool(make_config: MakeConfig) -> None:
    async with Database(make_config(driver="mysql-connector", pool_size=1)) as db:
        store = CheckpointStore(db)
        await store.count()
        seen: list[Stats] = []

        async def elsewhere() -> None:
            await store.count()
            seen.append(db.stats())

        await asyncio.to_thread(asyncio.run, elsewhere())
        assert seen[0].asynchronous == (PoolState(1, 0, 0), PoolState(1, 0, 0))
        assert seen[0].open == 2


async def test_calls_that_wait_for_a_connection_are_counted(
    make_config: MakeConfig, run_sql: Callable[..., Any]
) -> None:
    async with Database(make_config(driver="asyncmy", pool_size=1)) as db:
        store = CheckpointStore(db)
        await store.save("t", {"n": 0})
        calls = [asyncio.create_task(store.load("t")) for _ in range(3)]
        await asyncio.sleep(0)
        assert db.stats().asynchronous == (PoolState(open=1, in_use=1, waiting=2),)
        await asyncio.gather(*calls)
        assert db.stats().asynchronous == (PoolState(open=1, in_use=0, waiting=0),)


def test_threads_are_counted_rightly(make_config: MakeConfig) -> None:
    with Database(make_config(driver="pymysql", pool_size=4, cache_bytes=0)) as db:
        store = SyncCheckpointStore(db)
        store.save("t", {"n": 0})
        before = db.stats()
        most_waiting = 0

        def read() -> None:
            for _ in range(100):
                store.count()

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            stats = db.stats()
            assert 0 <= stats.in_use <= stats.open <= 4
            assert 0 <= stats.waiting <= 8
            most_waiting = max(most_waiting, stats.waiting)
        after = db.stats()
    assert after.round_trips - before.round_trips == 800 + after.opened - before.opened  # each sets its session up
    assert (after.in_use, after.waiting) == (0, 0)
    assert most_waiting


def test_a_forked_child_counts_its_own(make_config: MakeConfig) -> None:
    with Database(make_config(driver="pymysql")) as db:
        store = SyncCheckpointStore(db)
        store.save("t", {"n": 0})
        before = db.stats()
        child = os.fork()
        if child == 0:
            try:
                started = db.stats()
                store.count()
                right = (started.round_trips, started.open, db.stats().open) == (0, 0, 1) and db.stats().opened == 1
                store.close()
                os._exit(0 if right else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert db.stats() == before
