"""Save and load latency of each driver under pytest-benchmark, to compare runs of one machine with each other."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator

import pytest
from locus.core.state import AgentState

from locus_mysql import SyncMySQLCheckpointer

from .database import fresh_database
from .states import agent_state, grown

SYNC_DRIVERS = ("mysql-connector", "pymysql")


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """A database of this module's own."""
    with fresh_database(os.environ["LOCUS_MYSQL_TEST_DSN"]) as own:
        yield own


@pytest.fixture(scope="module", params=[10, 100, 1000], ids="n={}".format)
def state(request: pytest.FixtureRequest) -> AgentState:
    """A real agent's state."""
    return asyncio.run(agent_state(request.param))


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
def test_save(benchmark, dsn: str, state: AgentState, driver: str) -> None:
    """A save of the state one message later."""
    source = random.Random(5)
    thread_id = f"save/{driver}/{len(state.messages)}"
    with SyncMySQLCheckpointer(dsn=dsn, driver=driver) as checkpointer:
        checkpointer.save(state, thread_id)
        held = [state]

        def one_more() -> tuple[tuple[AgentState, str], dict[str, str]]:
            held[0] = grown(held[0], source)
            return (held[0], thread_id), {}

        benchmark.pedantic(checkpointer.save, setup=one_more, rounds=30, warmup_rounds=3)
        assert checkpointer.load(thread_id) == held[0]


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
def test_load(benchmark, dsn: str, state: AgentState, driver: str) -> None:
    """A load of the newest state."""
    thread_id = f"load/{driver}/{len(state.messages)}"
    with SyncMySQLCheckpointer(dsn=dsn, driver=driver) as checkpointer:
        checkpointer.save(state, thread_id)
        assert benchmark(checkpointer.load, thread_id) == state
