"""Connections of every driver and side, closed after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ..conftest import MakeConfig
from .sides import SIDES, DriverConnection, DriverSide

Connect = Callable[..., Awaitable[DriverConnection]]


@pytest.fixture(params=SIDES, ids=repr)
def side(request: pytest.FixtureRequest) -> DriverSide:
    return request.param


@pytest.fixture
async def connect(side: DriverSide, make_config: MakeConfig) -> AsyncIterator[Connect]:
    """Yield ``await connect(**options)``: a connection of the driver and side under test."""
    lines: list[DriverConnection] = []

    async def open_line(**options: object) -> DriverConnection:
        line = await side.open(make_config(**options))
        lines.append(line)
        return line

    yield open_line
    for line in lines:
        await line.close()


@pytest.fixture
async def line(connect: Connect) -> DriverConnection:
    return await connect()
