"""Statements whose caller was cancelled or timed out are killed on the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.engine.asynchronous import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.engine.synchronous import SyncEngine
from locus_mysql.errors import LocusMySQLError

from ..conftest import MakeConfig
from ..drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS

#: In seconds: the duration of a statement, and the deadline for its end after it was abandoned.
FOREVER_S, SOON_S = 600, 20.0

RunSQL = Callable[..., tuple[Any, ...]]


def asks(sql: str) -> Operation[Any]:
    """Run one query."""
    results = yield Batch.of(Statement(sql))
    return results[0].rows


class Running:
    """The statements of a schema that the server is running."""

    def __init__(self, run_sql: RunSQL, database: str) -> None:
        self.run_sql = run_sql
        self.database = database

    def count(self) -> int:
        sql = "SELECT COUNT(*) FROM performance_schema.processlist WHERE db = %s AND info LIKE '%%SLEEP%%'"
        return int(self.run_sql(sql, self.database)[0][0])

    def wait_for(self, wanted: int) -> None:
        """Wait until a number of statements are running."""
        end = time.monotonic() + SOON_S
        while (found := self.count()) != wanted:
            assert time.monotonic() < end, f"{found} statements are running, not {wanted}"
            time.sleep(0.02)


@pytest.fixture
def running(run_sql: RunSQL, database: str) -> Running:
    """Return the running statements of the test's schema."""
    return Running(run_sql, database)


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
async def test_a_cancelled_call_leaves_no_statement(driver: str, make_config: MakeConfig, running: Running) -> None:
    engine = AsyncEngine(make_config(driver=driver))
    calls = [asyncio.create_task(engine.run(asks(f"SELECT SLEEP({FOREVER_S})"))) for _ in range(3)]
    await asyncio.to_thread(running.wait_for, 3)
    for call in calls[:2]:
        call.cancel()
    await asyncio.wait(calls[:2])
    await asyncio.to_thread(running.wait_for, 1)
    assert not calls[2].done(), "only those that were cancelled"
    calls[2].cancel()
    await asyncio.wait(calls)
    await engine.close()
    await asyncio.to_thread(running.wait_for, 0)  # a killed statement may be listed a moment longer


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
async def test_a_call_whose_time_is_over_leaves_no_statement(
    driver: str, make_config: MakeConfig, running: Running
) -> None:
    engine = AsyncEngine(make_config(driver=driver, read_timeout_s=0.3, retry_deadline_s=0.5))
    with pytest.raises(LocusMySQLError):
        await engine.run(asks(f"SELECT SLEEP({FOREVER_S})"))
    await asyncio.to_thread(running.wait_for, 0)
    await engine.close()


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
def test_a_blocking_call_whose_time_is_over_leaves_no_statement(
    driver: str, make_config: MakeConfig, running: Running
) -> None:
    engine = SyncEngine(make_config(driver=driver, read_timeout_s=0.3, retry_deadline_s=0.5))
    with pytest.raises(LocusMySQLError):
        engine.run(asks(f"SELECT SLEEP({FOREVER_S})"))
    running.wait_for(0)
    engine.close()


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
async def test_a_session_of_another_server_with_the_same_number_is_left_alone(
    driver: str, make_config: MakeConfig, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several servers may share an address, and each may have a session with the same number."""
    engine = AsyncEngine(make_config(driver=driver))
    call = asyncio.create_task(engine.run(asks(f"SELECT SLEEP({FOREVER_S})")))
    await asyncio.to_thread(running.wait_for, 1)
    monkeypatch.setattr("locus_mysql.engine.session_killer._SERVER", Statement("SELECT 'another server'"))
    call.cancel()
    await asyncio.wait([call])
    await engine.close()
    assert running.count() == 1
    monkeypatch.undo()
    number = running.run_sql(
        "SELECT id FROM performance_schema.processlist WHERE db = %s AND info LIKE '%%SLEEP%%'", running.database
    )[0][0]
    running.run_sql(f"KILL {number}")
