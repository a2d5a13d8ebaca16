"""Bytes on the wire: of a save against its one new message, of a load against the state."""

from __future__ import annotations

import asyncio
import random

from locus_mysql import MySQLCheckpointer

from ..database import fresh_database
from ..states import agent_state, grown
from ..wire import CountingProxy
from .housekeeping import without_random_housekeeping

SIZES = (10, 100, 1_000)

#: Number of consecutive saves whose bytes are summed: the period of the distances between a state and its base.
SAVES = 16


def figures(dsn: str) -> dict[str, float]:
    """Return the ratios, by number of messages."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy, without_random_housekeeping():
        return asyncio.run(_figures(proxy))


async def _figures(proxy: CountingProxy) -> dict[str, float]:
    found: dict[str, float] = {}
    async with MySQLCheckpointer(dsn=proxy.dsn, ssl_mode="DISABLED") as checkpointer:
        for size in SIZES:
            source = random.Random(6)
            thread = f"{size} messages"
            state = await agent_state(size)
            await checkpointer.save(state, thread)
            sent = new = 0
            for _ in range(SAVES):
                state = grown(state, source)
                with proxy.counting() as saving:
                    await checkpointer.save(state, thread)
                sent += saving.bytes_sent
                new += len(state.messages[-1].model_dump_json().encode())
            async with MySQLCheckpointer(dsn=proxy.dsn, ssl_mode="DISABLED") as stranger:
                await stranger.exists(thread)
                with proxy.counting() as loading:
                    await stranger.load(thread)
            found[f"sent by saves for each byte of a new message, n={size}"] = sent / new
            whole = len(state.model_dump_json().encode())
            found[f"received by a load in a new process for each byte of the state, n={size}"] = (
                loading.bytes_received / whole
            )
    return found
