"""Connecting while other callbacks block the event loop: blocked time does not count as a silent server."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from ci.local_server import LocalServer
from locus_mysql.drivers.interface import ConnectionLost
from locus_mysql.engine.passwords import ask_password_async

from ..conftest import MakeConfig
from ..proxy import WireProxy
from .sides import ASYNC_SIDES, DriverSide

#: In seconds: the limit for connecting, the time for which each callback blocks the loop, and a limit that no test
#: reaches.
LIMIT_S, BLOCKED_S, NEVER_S = 0.1, 0.15, 30.0

awaited_sides = pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)


@awaited_sides
@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
async def test_a_connect_succeeds_though_every_turn_of_the_loop_takes_longer_than_its_limit(
    side: DriverSide, make_config: MakeConfig, mode: str
) -> None:
    connecting = asyncio.ensure_future(side.open(make_config(ssl_mode=mode, connect_timeout_s=LIMIT_S)))
    while not connecting.done():
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - a callback that blocks the loop
        await asyncio.sleep(0)
    line = await connecting
    assert await line.value("SELECT 1") == 1
    await line.close()


@pytest.mark.slow
@awaited_sides
async def test_a_connect_is_begun_again_if_the_server_hung_up_while_the_loop_was_blocked(
    side: DriverSide, own_server: LocalServer, own_config: MakeConfig, own_sql: Callable[..., tuple[tuple[int], ...]]
) -> None:
    ((before,),) = own_sql("SELECT @@GLOBAL.connect_timeout")
    own_sql("SET GLOBAL connect_timeout = 2")  # the minimum on MySQL
    try:
        with WireProxy("127.0.0.1", own_server.port) as proxy:
            config = own_config(port=proxy.port, connect_timeout_s=1)
            connecting = asyncio.ensure_future(side.open(config))
            while not proxy.total.connections:  # noqa: ASYNC110 - another thread increments it
                await asyncio.sleep(0)
            time.sleep(4)  # noqa: ASYNC251 - blocks the loop
            line = await connecting
            assert await line.value("SELECT 1") == 1
            await line.close()
            assert proxy.total.connections == (1 if side.driver == "pymysql" else 2)  # pymysql logs in in a thread
    finally:
        own_sql("SET GLOBAL connect_timeout = %s", before)


@awaited_sides
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_a_server_that_does_not_answer_is_given_up_also_by_a_busy_loop(
    side: DriverSide, make_config: MakeConfig, proxy: WireProxy, busy: bool
) -> None:
    proxy.black_hole()
    connecting = asyncio.ensure_future(
        side.open(make_config(host="127.0.0.1", port=proxy.port, connect_timeout_s=LIMIT_S))
    )
    start = time.monotonic()
    while not connecting.done():
        if busy:
            time.sleep(LIMIT_S / 10)  # noqa: ASYNC251 - blocks the loop
        await asyncio.sleep(LIMIT_S / 10)
    with pytest.raises(ConnectionLost) as caught:
        await connecting
    assert caught.value.connecting
    assert LIMIT_S <= time.monotonic() - start < NEVER_S


@awaited_sides
async def test_a_server_that_refuses_is_reported_at_once_by_a_blocked_loop(
    side: DriverSide, make_config: MakeConfig
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = make_config(host="127.0.0.1", port=port, connect_timeout_s=LIMIT_S)
    connecting = asyncio.ensure_future(side.open(config))
    turns = 0
    while not connecting.done():
        time.sleep(LIMIT_S / 20)  # noqa: ASYNC251 - blocks the loop
        await asyncio.sleep(0)
        turns += 1
    with pytest.raises(ConnectionLost):
        await connecting
    assert turns < 50  # of the hundred turns that would use up the limit


async def test_a_password_s_function_is_not_given_up_because_the_loop_was_blocked(make_config: MakeConfig) -> None:
    async def password() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "secret"

    asking = asyncio.ensure_future(ask_password_async(make_config(password=password, connect_timeout_s=LIMIT_S)))
    while not asking.done():
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - blocks the loop
        await asyncio.sleep(0)
    assert await asking == "secret"
