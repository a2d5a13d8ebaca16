"""Round trips: the exact number of each operation, and the average of a save with its housekeeping."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from locus_mysql import MySQLCheckpointer, MySQLConfig

from ..database import fresh_database
from ..round_trips import (
    AVERAGE,
    AVERAGED_SAVES,
    CALLS,
    KNOWN,
    UNKNOWN,
    Call,
    average_of_saves,
    counted,
)
from ..wire import CountingProxy


def figures(dsn: str, calls: Mapping[str, Call] = CALLS) -> dict[str, float]:
    """Return the round trips of each call on a known thread and on one never seen, and the average of many saves."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy:
        return asyncio.run(_figures(proxy, calls))


async def _figures(proxy: CountingProxy, calls: Mapping[str, Call]) -> dict[str, float]:
    config = MySQLConfig(dsn=proxy.dsn, ssl_mode="DISABLED")
    found: dict[str, float] = {}
    for whose, known in ((KNOWN, True), (UNKNOWN, False)):
        counts = await counted(proxy, lambda: MySQLCheckpointer(config), calls, known=known)
        found |= {f"{name}, {whose}": count for name, count in counts.items() if count is not None}
    async with MySQLCheckpointer(config) as checkpointer:
        found[AVERAGE] = await average_of_saves(proxy, checkpointer, AVERAGED_SAVES)
    return found
