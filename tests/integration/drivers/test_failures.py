"""Every failure of a driver raises one of two errors and leaves the connection in a known state."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql.dialect.statement import Statement
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.errors import UnsupportedServer

from ..conftest import MakeConfig
from ..proxy import WireProxy, with_version
from .conftest import Connect
from .sides import DriverConnection, DriverSide, wait_until

RunSQL = Callable[..., tuple[Any, ...]]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Yield a port that accepts connections and never sends a byte."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


async def test_a_packet_is_one_round_trip(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    with proxy.counting() as count:
        await line.execute(Statement("BEGIN"), Statement("SELECT 1"), Statement("DO 1"), Statement("COMMIT"))
    assert count.round_trips == 1


async def test_without_pipeline_each_statement_is_a_round_trip(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", pipeline=False)
    with proxy.counting() as count:
        await line.execute(Statement("BEGIN"), Statement("SELECT 1"), Statement("COMMIT"))
    assert count.round_trips == 3


async def test_a_session_is_set_up_in_at_most_two_round_trips(connect: Connect, proxy: WireProxy) -> None:
    with proxy.counting() as count:
        await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    assert count.round_trips <= 2  # PyMySQL also sends SET NAMES


@pytest.mark.parametrize("number", [1, 188, 3032])
async def test_an_error_of_the_server_s_files_or_storage_engine_leaves_the_connection_sound(
    line: DriverConnection, number: int
) -> None:
    with pytest.raises(ServerError) as caught:
        await line.execute(Statement(f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'no space'"))
    assert (caught.value.errno, caught.value.message) == (number, "no space")
    assert not line.closed
    assert await line.value("SELECT 2") == 2


async def test_a_connection_that_breaks_before_a_packet_is_lost(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await line.execute(Statement("CREATE TABLE t (n INT)"))
    proxy.drop_before()
    with pytest.raises(ConnectionLost) as caught:
        await line.execute(Statement("INSERT INTO t VALUES (1)"))
    assert not caught.value.connecting
    assert line.closed
    assert await (await connect()).rows("SELECT n FROM t") == []


async def test_a_connection_that_breaks_before_the_answer_is_lost(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await line.execute(Statement("CREATE TABLE t (n INT)"))
    proxy.drop_after_send()
    with pytest.raises(ConnectionLost):
        await line.execute(Statement("INSERT INTO t VALUES (1)"), Statement("INSERT INTO t VALUES (2)"))
    assert line.closed
    assert await (await connect()).rows("SELECT n FROM t ORDER BY n") == [(1,), (2,)]


async def test_an_answer_that_never_comes_ends_with_the_read_timeout(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(
        host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", read_timeout_s=1.0, write_timeout_s=1.0
    )
    proxy.swallow_answer()
    start = time.monotonic()
    with pytest.raises(ConnectionLost, match=r"time limit|timed out"):
        await line.value("SELECT 1")
    assert time.monotonic() - start < 30
    assert line.closed


async def test_a_server_that_never_greets_ends_with_the_connect_timeout(
    side: DriverSide, make_config: MakeConfig, silent_port: int
) -> None:
    start = time.monotonic()
    with pytest.raises(ConnectionLost) as caught:
        await side.open(make_config(host="127.0.0.1", port=silent_port, connect_timeout_s=0.2))
    assert caught.value.connecting
    assert time.monotonic() - start < 8  # by default it is 10


async def test_a_server_that_talks_nonsense_is_no_connection(side: DriverSide, make_config: MakeConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        config = make_config(host="127.0.0.1", port=listener.getsockname()[1], connect_timeout_s=2)
        with pytest.raises(ConnectionLost) as caught:
            await side.open(config)
        await asyncio.to_thread(thread.join)
    assert caught.value.connecting


async def test_a_connection_that_was_killed_while_idle_is_lost(line: DriverConnection, run_sql: RunSQL) -> None:
    run_sql(f"KILL {await line.value('SELECT CONNECTION_ID()')}")
    with pytest.raises(ConnectionLost):
        await line.value("SELECT 1")
    assert line.closed
    with pytest.raises(ConnectionLost):
        await line.value("SELECT 1")


async def test_ping_distinguishes_a_live_connection_from_a_dead_one(line: DriverConnection, run_sql: RunSQL) -> None:
    await line.ping()
    assert await line.value("SELECT 1") == 1
    run_sql(f"KILL {await line.value('SELECT CONNECTION_ID()')}")
    with pytest.raises(ConnectionLost):
        await line.ping()
    assert line.closed


async def test_an_idle_connection_that_the_server_closed_is_lost(line: DriverConnection, run_sql: RunSQL) -> None:
    number = await line.value("SELECT CONNECTION_ID()")
    await line.execute(Statement("SET SESSION wait_timeout = 1"))
    wait_until(lambda: not run_sql("SELECT 1 FROM performance_schema.threads WHERE processlist_id = %s", number))
    with pytest.raises(ConnectionLost):  # MySQL sends error 4031 before it closes the connection
        await line.value("SELECT 1")


async def test_a_statement_that_runs_too_long_is_a_server_error(line: DriverConnection) -> None:
    await line.execute(Statement("SET SESSION max_execution_time = 50"))
    with pytest.raises(ServerError) as caught:
        await line.rows("SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b")
    assert caught.value.errno == 3024
    assert await line.value("SELECT 1") == 1


async def test_an_unsupported_server_is_refused_before_the_login(
    side: DriverSide, make_config: MakeConfig, proxy: WireProxy
) -> None:
    proxy.greeting = with_version("5.5.5-10.11.6-MariaDB-1:10.11.6")
    with pytest.raises(UnsupportedServer, match=r"MariaDB 10\.11\.6"):
        await side.open(make_config(host="127.0.0.1", port=proxy.port))
    assert proxy.total.bytes_sent == 0


async def test_a_statement_that_brings_two_results_drops_the_connection(line: DriverConnection) -> None:
    with pytest.raises(ConnectionLost, match="1 statements brought 2 results"):
        await line.execute(Statement("SELECT 1; SELECT 2"))
    assert line.closed
