"""Each event loop has pools of its own, which end with the loop or with the engine."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import Result, register_driver
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation

from .scripted import Driver
from .test_execution import SELECT, SINGLE, Engine, once


@pytest.fixture
def driver() -> Driver:
    driver: Any = Driver(lambda _, statements: [Result(((1,),), columns=1) for _ in statements])
    register_driver("scripted", driver)
    return driver  # type: ignore[no-any-return]


def ask() -> Operation[None]:
    yield Batch.of(Statement("SELECT 1"))


def new_engine() -> AsyncEngine:
    return AsyncEngine(MySQLConfig(driver="scripted"))


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "not closed"])
@pytest.mark.filterwarnings("ignore:unclosed event loop:ResourceWarning")
def test_an_event_loop_that_is_dropped_is_freed_with_its_pools(driver: Driver, closes: bool) -> None:
    engine = new_engine()

    def use() -> Iterator[weakref.ref[Any]]:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(engine.run(ask()))
        yield weakref.ref(loop)
        yield weakref.ref(driver.opened.pop())
        if closes:
            loop.close()

    dropped = [one for _ in range(3) for one in use()]
    gc.collect()
    assert [one() for one in dropped] == [None] * 6
    assert engine.pools() == ()


def test_an_engine_that_is_dropped_leaves_nothing_at_a_running_loop(driver: Driver) -> None:
    async def use() -> list[str]:
        for _ in range(3):
            await new_engine().run(ask())
        gc.collect()
        await asyncio.sleep(0)  # for the aborts
        return [one.ended for one in driver.opened]

    assert asyncio.run(use()) == ["aborted"] * 3


def test_each_event_loop_has_its_own_pool_which_can_be_closed_from_another_event_loop() -> None:
    engine = Engine(True)
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        for loop in (first, second, first):
            loop.run_until_complete(engine.run(once(Batch.of(SELECT))))
        assert [one.ended for one in engine.driver.opened] == ["", ""]
        assert len(engine.engine.pools()) == 2
        second.run_until_complete(engine.close())
        assert [one.ended for one in engine.driver.opened] == ["", "closed"]
        first.run_until_complete(asyncio.sleep(0))  # only this loop may use its transports
        assert [one.ended for one in engine.driver.opened] == ["aborted", "closed"]
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize(
    "config", [SINGLE, MySQLConfig(hosts=("a", "d"), driver="scripted")], ids=["single", "several"]
)
def test_the_pool_of_a_closed_event_loop_is_dropped(config: MySQLConfig) -> None:
    engine = Engine(True, config)
    asyncio.run(engine.run(once(Batch.of(SELECT))))
    assert engine.driver.opened[0].ended == ""
    asyncio.run(engine.run(once(Batch.of(SELECT))))
    assert [one.ended for one in engine.driver.opened] == ["aborted", ""]
    assert len(engine.engine.pools()) == 1
    asyncio.run(engine.close())
    assert [one.ended for one in engine.driver.opened] == ["aborted", "aborted"]
