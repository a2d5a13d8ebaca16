"""Stores with unusual connections: wrong answers, killed statements, idle connections, forks with a held lock."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import LocusMySQLError

from ..integration.conftest import EACH_WAY, EVERY_SIDE, ONE_OF_EACH, MakeConfig, OpenStore
from ..integration.proxy import WireProxy
from ..unit.drivers.wire.answers import Done, Refused, encoded
from ..waiting import until

RunSQL = Callable[..., tuple[Any, ...]]
DEADLINE_S = 180.0
STATE = {"messages": [{"content": "hello"}]}

every_side = pytest.mark.parametrize("side", EVERY_SIDE)  # each library closes connections in its own way
each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


@each_way
async def test_a_load_answered_without_rows_is_repeated(open_store: OpenStore, proxy: WireProxy, side: str) -> None:
    await open_store(side).save("t", STATE)
    store = open_store(side, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")  # has not cached the thread
    assert await store.list_threads() == ["t"]
    proxy.answer_instead(encoded([Done()]))
    assert await store.load("t") == STATE


@each_way
@pytest.mark.parametrize("errno", [1062, 1048, 1317, 1999, 65535])
async def test_every_error_number_raises_an_error_of_this_package(
    open_store: OpenStore, proxy: WireProxy, side: str, errno: int
) -> None:
    store = open_store(side, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", retry_deadline_s=0)
    await store.save("t", STATE)
    for call in (
        lambda: store.load("t"),
        lambda: store.history("t"),
        lambda: store.delete("t"),
        lambda: store.list_threads(),
    ):
        proxy.answer_instead(encoded([Refused(errno, "odd")]))
        with pytest.raises(LocusMySQLError, match="odd"):
            await call()
    assert await store.load("t") == STATE


@every_side
async def test_an_idle_connection_is_closed_without_another_use(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str
) -> None:
    def connections() -> int:
        ((number,),) = run_sql("SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_db = %s", database)
        return int(number)

    store = open_store(side, pool_idle_s=0.3)
    opened = 0
    for _ in range(2):  # also after idle connections were closed once
        await store.save("t", STATE)
        before, opened = opened, store.store.database.stats().opened
        assert opened > before
        await until(lambda: connections() == 0, "the idle connection is closed")


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@every_side
def test_connections_waiting_to_be_closed_do_not_keep_the_interpreter_alive(
    make_config: MakeConfig, server_dsn: str, database: str, side: str
) -> None:
    driver, _, way = side.rpartition("-")
    outcome = run_script(
        """
        import asyncio, sys
        from locus_mysql import CheckpointStore, MySQLConfig, SyncCheckpointStore
        dsn, database, driver, way = sys.argv[1:]
        given = MySQLConfig(dsn=dsn)
        config = MySQLConfig(**{**given.model_dump(exclude_unset=True), "database": database, "driver": driver})
        if way == "sync":
            SyncCheckpointStore(config).list_threads()
        else:
            asyncio.run(CheckpointStore(config).list_threads())
        print("done")
        """,
        server_dsn,
        database,
        driver,
        way,
    )
    assert (outcome.stdout, outcome.stderr) == ("done\n", "")


def test_a_blocking_store_has_no_thread_at_a_fork(server_dsn: str, database: str) -> None:
    """Python 3.12 warns of a fork with threads. Parent and child both continue and close idle connections."""
    outcome = run_script(
        """
        import os, sys, time
        from locus_mysql import MySQLConfig, SyncCheckpointStore
        dsn, database = sys.argv[1:]
        given = MySQLConfig(dsn=dsn)
        config = MySQLConfig(**{**given.model_dump(exclude_unset=True), "database": database, "pool_idle_s": 0.2})
        store = SyncCheckpointStore(config)
        store.save("t", {"n": 1})
        child = os.fork()
        assert store.load("t") == {"n": 1}
        pool = store.database.synchronous._pool
        end = time.monotonic() + 60
        while pool._idle:
            assert time.monotonic() < end
            time.sleep(0.01)
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print("both")
        """,
        server_dsn,
        database,
    )
    assert (outcome.stdout, outcome.stderr) == ("both\n", "")
