"""Save and load latency of each driver under pytest-benchmark, to compare runs of one machine with each other.

ci/mysql run -- .venv/bin/python -m pytest bench/test_latency.py --benchmark-enable
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from locus.core.state import AgentState

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer

from .contestants import DRIVERS, SYNC_DRIVERS
from .database import fresh_database
from .states import agent_state, grown

ROUNDS = 30
CLIENTS = [*((driver, "async") for driver in DRIVERS), *((driver, "blocking") for driver in SYNC_DRIVERS)]


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """Create a database for this module."""
    with fresh_database(os.environ["LOCUS_MYSQL_TEST_DSN"]) as own:
        yield own


@pytest.fixture(scope="module", params=[10, 100, 1000], ids="{}-messages".format)
def state(request: pytest.FixtureRequest) -> AgentState:
    """Return a real agent's state."""
    return asyncio.run(agent_state(request.param))


@contextmanager
def checkpointer_calls(dsn: str, driver: str, kind: str) -> Iterator[Callable[..., Any]]:
    """Return a function that calls a checkpointer's method by name and waits for the result."""
    if kind == "blocking":
        with SyncMySQLCheckpointer(dsn=dsn, driver=driver) as blocking:
            yield lambda method, *arguments: getattr(blocking, method)(*arguments)
        return
    with closing(asyncio.Runner()) as runner:
        checkpointer = MySQLCheckpointer(dsn=dsn, driver=driver)
        yield lambda method, *arguments: runner.run(getattr(checkpointer, method)(*arguments))
        runner.run(checkpointer.close())


@pytest.mark.parametrize(("driver", "kind"), CLIENTS)
def test_save(benchmark: Any, dsn: str, state: AgentState, driver: str, kind: str) -> None:
    """Measure a save of the state with one more message."""
    source = random.Random(5)
    thread_id = f"save/{driver}/{kind}/{len(state.messages)}"
    with checkpointer_calls(dsn, driver, kind) as call:
        call("save", state, thread_id)
        held = [state]

        def one_more() -> tuple[tuple[str, AgentState, str], dict[str, str]]:
            held[0] = grown(held[0], source)
            return ("save", held[0], thread_id), {}

        benchmark.pedantic(call, setup=one_more, rounds=ROUNDS, warmup_rounds=3)
        assert call("load", thread_id) == held[0]


@pytest.mark.parametrize(("driver", "kind"), CLIENTS)
def test_load(benchmark: Any, dsn: str, state: AgentState, driver: str, kind: str) -> None:
    """Measure a load of the newest state."""
    thread_id = f"load/{driver}/{kind}/{len(state.messages)}"
    with checkpointer_calls(dsn, driver, kind) as call:
        call("save", state, thread_id)
        assert benchmark.pedantic(call, ("load", thread_id), rounds=ROUNDS, warmup_rounds=3) == state
