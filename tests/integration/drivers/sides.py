"""One interface to a driver's asynchronous and synchronous side, so that each contract test runs on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.statement import Param, Statement
from locus_mysql.drivers.interface import Result, find_driver

from ...thoroughness import FULL
from ..drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS


class DriverSide:
    """A driver's asynchronous or synchronous side; both are awaited here."""

    def __init__(self, driver: str, *, awaited: bool) -> None:
        self.driver = driver
        self.awaited = awaited

    def __repr__(self) -> str:
        return f"{self.driver}-{'async' if self.awaited else 'sync'}"

    async def open(self, config: MySQLConfig) -> DriverConnection:
        """Connect with this driver, whichever driver the configuration names."""
        driver = find_driver(self.driver)
        (endpoint, *_) = config.endpoints
        if self.awaited:
            return DriverConnection(await driver.connect_async(config, endpoint))
        return DriverConnection(driver.connect(config, endpoint))


class DriverConnection:
    """A connection of either side."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @property
    def closed(self) -> bool:
        return bool(self.connection.closed)

    async def execute(self, *statements: Statement) -> list[Result]:
        return await self._await(self.connection.execute(statements))

    async def rows(self, sql: str, *params: Param) -> list[tuple[Any, ...]]:
        (result,) = await self.execute(Statement(sql, params))
        return list(result.rows)

    async def value(self, sql: str, *params: Param) -> Any:
        ((value,),) = await self.rows(sql, *params)
        return value

    async def ping(self) -> None:
        await self._await(self.connection.ping())

    async def close(self) -> None:
        await self._await(self.connection.close())

    def abort(self) -> None:
        self.connection.abort()

    @staticmethod
    async def _await(outcome: Any) -> Any:
        return await outcome if hasattr(outcome, "__await__") else outcome


ASYNC_SIDES = [DriverSide(name, awaited=True) for name in ASYNC_DRIVERS]
SYNC_SIDES = [DriverSide(name, awaited=False) for name in SYNC_DRIVERS]
SIDES: Sequence[DriverSide] = [*ASYNC_SIDES, *SYNC_SIDES]

#: One side for each way of reading results after the login: blocking, awaited, and in a worker thread.
WAYS_OF_READING: Sequence[DriverSide] = [
    DriverSide("pymysql", awaited=False),
    DriverSide("mysql-connector", awaited=True),
    DriverSide("pymysql", awaited=True),
]
each_way_of_reading = pytest.mark.parametrize("side", SIDES if FULL else WAYS_OF_READING, ids=repr)


def wait_until(condition: Callable[[], object], deadline_s: float = 10) -> None:
    """Wait until the condition holds; fail at the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come about"
        time.sleep(0.01)
