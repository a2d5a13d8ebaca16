"""A read whose caller was cancelled or does not wait any longer ends by itself on the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import LocusMySQLError

from ..conftest import MakeConfig
from ..drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS

#: In seconds: the duration of a statement, and the deadline for its end after it was abandoned.
FOREVER_S, SOON_S = 600, 30.0

RunSQL = Callable[..., tuple[Any, ...]]


def asks_for_long() -> Operation[Any]:
    return (yield Batch.of(Statement(f"SELECT SLEEP({FOREVER_S})")))


class Running:
    """The statements of a schema that the server is running."""

    def __init__(self, run_sql: RunSQL, database: str) -> None:
        self._run_sql = run_sql
        self._database = database

    def wait_for(self, wanted: int) -> None:
        """Wait until a number of statements are running."""
        sql = "SELECT COUNT(*) FROM performance_schema.processlist WHERE db = %s AND info LIKE '%%SLEEP%%'"
        end = time.monotonic() + SOON_S
        while (found := int(self._run_sql(sql, self._database)[0][0])) != wanted:
            assert time.monotonic() < end, f"{found} statements are running, not {wanted}"
            time.sleep(0.02)


@pytest.fixture
def running(run_sql: RunSQL, database: str) -> Running:
    """Return the running statements of the test's schema."""
    return Running(run_sql, database)


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
async def test_a_cancelled_read_ends_by_itself(driver: str, make_config: MakeConfig, running: Running) -> None:
    engine = AsyncEngine(make_config(driver=driver, read_timeout_s=2))
    call = asyncio.create_task(engine.run(asks_for_long()))
    await asyncio.to_thread(running.wait_for, 1)
    call.cancel()
    await asyncio.wait([call])
    await asyncio.to_thread(running.wait_for, 0)
    await engine.close()


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
def test_a_read_that_nobody_waits_for_ends_by_itself(driver: str, make_config: MakeConfig, running: Running) -> None:
    engine = SyncEngine(make_config(driver=driver, read_timeout_s=0.3, retry_deadline_s=0.5))
    with pytest.raises(LocusMySQLError):
        engine.run(asks_for_long())
    running.wait_for(0)
    engine.close()
