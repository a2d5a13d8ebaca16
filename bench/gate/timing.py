"""Time of a save and of a load, against the floor in the same run, both on Connector/Python.

The floor is the least that a durable save and a load can cost: one bare INSERT of the new message and one bare SELECT
of the state, with the encoding and decoding that no Locus checkpointer can avoid.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from locus.core.state import AgentState
from mysql.connector.aio import connect

from locus_mysql import MySQLCheckpointer, MySQLConfig

from ..database import fresh_database
from ..states import agent_state, grown

SIZES = (10, 100, 1_000)
WARM_UP_ROUNDS = 10
ROUNDS = 100


def figures(dsn: str) -> dict[str, float]:
    """Ratios by number of messages."""
    return asyncio.run(_figures(dsn))


async def _figures(dsn: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for size in SIZES:
        with fresh_database(dsn) as own:
            async with MySQLCheckpointer(dsn=own) as checkpointer:
                floor = await Floor.open(own)
                times = await _times(checkpointer, floor, await agent_state(size))
                await floor.close()
        for what in ("save", "load"):
            found[f"{what} against the floor, n={size}"] = _typical(times[what]) / _typical(times[f"floor's {what}"])
    return found


async def _times(checkpointer: MySQLCheckpointer, floor: Floor, begun: AgentState) -> dict[str, list[float]]:
    """Seconds of each call, all four in turn, one message more in each round; now and then in a new thread."""
    source = random.Random(8)
    times: dict[str, list[float]] = {}
    saves_per_thread = max(10, len(begun.messages) // 10)
    for number in range(-WARM_UP_ROUNDS, ROUNDS):
        if number % saves_per_thread == 0 or number == -WARM_UP_ROUNDS:
            state, thread = begun, f"thread {number}"
            await checkpointer.save(state, thread)
            await floor.keep_for_loading(state)
        state = grown(state, source)
        calls: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
            ("save", partial(checkpointer.save, state, thread)),
            ("floor's save", partial(floor.save, state)),
            ("load", partial(checkpointer.load, thread)),
            ("floor's load", floor.load),
        ]
        for name, call in calls if number % 2 else calls[::-1]:
            begin = time.perf_counter()
            await call()
            if number >= 0:
                times.setdefault(name, []).append(time.perf_counter() - begin)
    return times


def _typical(times: list[float]) -> float:
    """The lower quartile: what a call takes when other processes leave it alone."""
    return statistics.quantiles(times, n=4)[0]


class Floor:
    """A bare connection and two bare tables."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._encoded: dict[str, Any] = {}

    @classmethod
    async def open(cls, dsn: str) -> Floor:
        """Connect and make the tables."""
        config = MySQLConfig(dsn=dsn)
        floor = cls(
            await connect(
                host=config.host,
                port=config.port,
                user=config.user,
                password=config.password.get_secret_value(),
                database=config.database,
                autocommit=True,
            )
        )
        await floor._run("CREATE TABLE added (id INT AUTO_INCREMENT PRIMARY KEY, message LONGBLOB)")
        await floor._run("CREATE TABLE whole (id INT PRIMARY KEY, state LONGBLOB)")
        return floor

    async def save(self, state: AgentState) -> None:
        """Encode the state; store its newest message."""
        state.to_checkpoint()
        await self._run("INSERT INTO added (message) VALUES (%s)", state.messages[-1].model_dump_json().encode())

    async def keep_for_loading(self, state: AgentState) -> None:
        """Store the whole state; not part of the floor."""
        self._encoded = state.to_checkpoint()
        await self._run("REPLACE INTO whole VALUES (1, %s)", state.model_dump_json().encode())

    async def load(self) -> AgentState:
        """Read the whole state; decode what is decoded already from JSON."""
        await self._run("SELECT state FROM whole WHERE id = 1")
        return AgentState.from_checkpoint(self._encoded)

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()

    async def _run(self, sql: str, *parameters: Any) -> list[Any]:
        async with await self._connection.cursor() as cursor:
            await cursor.execute(sql, parameters)
            return await cursor.fetchall() if cursor.with_rows else []
