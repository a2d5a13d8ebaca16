"""Round trips of each operation: exact."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from locus_mysql import MySQLCheckpointer, MySQLConfig

from ..database import fresh_database
from ..round_trips import CALLS, KNOWN, UNKNOWN, Call, counted
from ..wire import CountingProxy


def figures(dsn: str, calls: Mapping[str, Call] = CALLS) -> dict[str, float]:
    """Round trips of each call on a thread the process knows, and on one it has never seen."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy:
        config = MySQLConfig(dsn=proxy.dsn, ssl_mode="DISABLED")
        found: dict[str, float] = {}
        for whose, known in ((KNOWN, True), (UNKNOWN, False)):
            counts = asyncio.run(counted(proxy, lambda: MySQLCheckpointer(config), calls, known=known))
            found |= {f"{name}, {whose}": count for name, count in counts.items() if count is not None}
    return found
