"""Frameworks: round trips, rows read and bytes of appending and loading one turn, at two lengths of the conversation.

A figure of an append that grows with the conversation shows that more than the new turn is written or read.
"""

from __future__ import annotations

import asyncio

from locus_mysql import MySQLConfig

from ..database import fresh_database
from ..disk import administrator, bytes_in_rows
from ..frameworks.contestants import Framework, frameworks, turn
from ..wire import CountingProxy
from .housekeeping import without_random_housekeeping
from .reads import rows_read

#: Numbers of turns before the measured append.
SIZES = (10, 100)


def figures(dsn: str) -> dict[str, float]:
    """Return the counts by framework, call and number of turns, and the stored bytes."""
    found: dict[str, float] = {}
    for name, framework in frameworks().items():
        with fresh_database(dsn) as own, CountingProxy(own) as proxy, without_random_housekeeping():
            counts = asyncio.run(_figures(proxy, own, framework))
        found |= {f"{name}: {what}": figure for what, figure in counts.items()}
    return found


async def _figures(proxy: CountingProxy, dsn: str, framework: Framework) -> dict[str, float]:
    found: dict[str, float] = {}
    ours = framework.entrants[0]
    contestant = ours.make(MySQLConfig(dsn=proxy.dsn, driver=ours.driver, ssl_mode="DISABLED", pool_size=1))
    turns = 0
    with administrator(dsn) as cursor:
        for size in SIZES:
            while turns < size:
                await contestant.append(turn(turns))
                turns += 1
            found[f"bytes stored, {size} turns"] = bytes_in_rows(dsn)
            before = rows_read(cursor)
            with proxy.counting() as count:
                await contestant.append(turn(turns))
            turns += 1
            found[f"append, rows read, {size} turns"] = rows_read(cursor) - before
            found[f"append, round trips, {size} turns"] = count.round_trips
            found[f"append, bytes, {size} turns"] = count.bytes_sent + count.bytes_received
            before = rows_read(cursor)
            with proxy.counting() as count:
                loaded = await contestant.load()
            assert loaded == turns, (loaded, turns)
            found[f"load, rows read, {size} turns"] = rows_read(cursor) - before
            found[f"load, round trips, {size} turns"] = count.round_trips
            found[f"load, bytes, {size} turns"] = count.bytes_sent + count.bytes_received
    await contestant.close()
    return found
