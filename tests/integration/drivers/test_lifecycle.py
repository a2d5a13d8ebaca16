"""Closing, dropping, cancelling and forking: a connection ends cleanly whenever and wherever that happens."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql.dialect.statement import Statement
from locus_mysql.drivers.interface import ConnectionLost

from ..conftest import MakeConfig
from .conftest import Connect
from .sides import ASYNC_SIDES, SIDES, SYNC_SIDES, DriverConnection, DriverSide, wait_until

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
MODES = pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number is needed


@pytest.fixture
def user(run_sql: RunSQL, database: str) -> Iterator[str]:
    """Yield a separate user for this test: the server counts commands per user."""
    name = f"user_{secrets.token_hex(8)}"
    run_sql(f"CREATE USER {name} IDENTIFIED BY 'secret'")
    run_sql(f"GRANT ALL ON {database}.* TO {name}")
    yield name
    run_sql(f"DROP USER {name}")


@MODES
async def test_close_sends_com_quit(connect: Connect, run_sql: RunSQL, user: str, mode: str) -> None:
    line = await connect(ssl_mode=mode, user=user, password="secret")
    number = await line.value("SELECT CONNECTION_ID()")
    await line.close()
    assert line.closed
    wait_until(lambda: not run_sql("SELECT 1 FROM performance_schema.threads WHERE processlist_id = %s", number))
    ((goodbyes,),) = run_sql(
        "SELECT count_star FROM performance_schema.events_statements_summary_by_user_by_event_name"
        " WHERE user = %s AND event_name = 'statement/com/Quit'",
        user,
    )
    assert goodbyes == 1


async def test_close_and_abort_never_raise(line: DriverConnection, run_sql: RunSQL) -> None:
    run_sql(f"KILL {await line.value('SELECT CONNECTION_ID()')}")
    await line.close()
    line.abort()
    await line.close()
    line.abort()


@MODES
async def test_abort_drops_the_socket_at_once(connect: Connect, run_sql: RunSQL, mode: str) -> None:
    line = await connect(ssl_mode=mode)
    number = await line.value("SELECT CONNECTION_ID()")
    line.abort()
    assert line.closed
    # Without an await in between: the connection is closed although the event loop has not run.
    wait_until(lambda: not run_sql("SELECT 1 FROM performance_schema.threads WHERE processlist_id = %s", number))
    with pytest.raises(ConnectionLost):
        await line.value("SELECT 1")


@MODES
@pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)
async def test_a_cancelled_call_drops_the_connection(connect: Connect, mode: str) -> None:
    line = await connect(ssl_mode=mode)
    call = asyncio.create_task(line.value("SELECT SLEEP(30)"))
    await asyncio.sleep(0.1)  # until the packet is on its way
    start = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - start < 20
    assert line.closed
    with pytest.raises(ConnectionLost):
        await line.value("SELECT 1")


@pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)
async def test_a_cancelled_attempt_to_connect_leaves_nothing(side: DriverSide, make_config: MakeConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        attempt = asyncio.create_task(side.open(make_config(host="127.0.0.1", port=listener.getsockname()[1])))
        peer, _ = await asyncio.to_thread(listener.accept)
        await asyncio.sleep(0.05)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        with peer:
            peer.settimeout(60)
            assert await asyncio.to_thread(peer.recv, 1) == b""


@MODES
@pytest.mark.parametrize("side", SYNC_SIDES, ids=repr)
async def test_another_thread_can_drop_a_blocking_call(connect: Connect, mode: str) -> None:
    line = await connect(ssl_mode=mode)
    connection = line.connection
    errors: list[BaseException] = []

    def call() -> None:
        try:
            connection.execute([Statement("SELECT SLEEP(30)")])
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    await asyncio.sleep(0.1)  # until the packet is on its way
    connection.interrupt()
    thread.join(20)
    assert not thread.is_alive()
    assert isinstance(errors[0], ConnectionLost)


@MODES
@pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)
def test_a_connection_outlives_its_event_loop_only_to_be_dropped(
    side: DriverSide, make_config: MakeConfig, mode: str, run_sql: RunSQL
) -> None:
    gc.collect()
    before = open_descriptors()
    line = asyncio.run(side.open(make_config(ssl_mode=mode)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line.abort()
        line.abort()
        del line
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    wait_until(lambda: open_descriptors() == before)


@pytest.mark.parametrize("side", [side for side in ASYNC_SIDES if side.driver != "pymysql"], ids=repr)
def test_another_event_loop_cannot_use_a_connection(side: DriverSide, make_config: MakeConfig) -> None:
    line = asyncio.run(side.open(make_config()))
    with pytest.raises(ConnectionLost, match="another event loop"):
        asyncio.run(line.value("SELECT 1"))
    assert line.closed


@MODES
@pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)
def test_closing_as_the_last_thing_before_the_loop_ends_leaves_nothing(
    side: DriverSide, make_config: MakeConfig, mode: str
) -> None:
    gc.collect()
    before = open_descriptors()

    async def visit() -> None:
        line = await side.open(make_config(ssl_mode=mode))
        await line.value("SELECT 1")
        await line.close()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(visit())
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    wait_until(lambda: open_descriptors() == before)


PRELUDE = """
import asyncio, gc, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork with threads
from locus_mysql.config import MySQLConfig
from tests.integration.drivers.sides import DriverSide
config = MySQLConfig(dsn=sys.argv[1], ssl_mode=sys.argv[4])
side = DriverSide(sys.argv[2], awaited=sys.argv[3] == "True")
"""


def run_script(script: str, side: DriverSide, dsn: str, mode: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), dsn, side.driver, str(side.awaited), mode]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize("side", SIDES, ids=repr)
def test_a_forked_child_cannot_disturb_its_parents_connection(side: DriverSide, server_dsn: str) -> None:
    # A child forked inside a running loop must leave by ``os._exit`` in two cases. With worker threads, asyncio itself
    # would take the parent's wake-up pipe out of the epoll set they share. And on Python 3.14, asyncio never ends after
    # ``sys.exit`` there (docs/operations.md).
    must_leave = sys.version_info >= (3, 14) or repr(side) == "pymysql-async"
    exits = ["os._exit"] if must_leave else ["os._exit", "sys.exit"]
    cases = [(mode, leave) for mode in ("DISABLED", "REQUIRED") for leave in exits]
    outcome = run_script(
        f"""
        async def main(mode, leave):
            line = await side.open(config.model_copy(update={{"ssl_mode": mode}}))
            await line.value("SELECT 1")
            child = os.fork()
            if child == 0:
                assert line.closed
                line.abort()
                del line
                gc.collect()
                os._exit(0) if leave == "os._exit" else sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert await asyncio.wait_for(line.value("SELECT 2"), 5) == 2
            await line.close()
            print(mode, leave, flush=True)
        for mode, leave in {cases}:
            asyncio.run(main(mode, leave))
        """,
        side,
        server_dsn,
        "PREFERRED",
    )
    assert outcome.stdout == "".join(f"{mode} {leave}\n" for mode, leave in cases), outcome.stderr


@pytest.mark.parametrize("side", ASYNC_SIDES, ids=repr)
def test_a_call_that_hangs_does_not_keep_the_interpreter(side: DriverSide, server_dsn: str) -> None:
    start = time.monotonic()
    outcome = run_script(
        """
        async def main():
            line = await side.open(config)
            calls = [asyncio.create_task(line.value("SELECT SLEEP(100)"))]
            await asyncio.wait(calls, timeout=0.2)
        asyncio.run(main())
        """,
        side,
        server_dsn,
        "DISABLED",
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert time.monotonic() - start < 60  # includes the interpreter's start on a busy machine


@pytest.mark.parametrize("side", SIDES, ids=repr)
def test_a_connection_that_is_forgotten_makes_no_noise_at_exit(side: DriverSide, server_dsn: str) -> None:
    outcome = run_script("line = asyncio.run(side.open(config))", side, server_dsn, "PREFERRED")
    assert (outcome.returncode, outcome.stderr) == (0, "")
