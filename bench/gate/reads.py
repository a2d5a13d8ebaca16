"""Rows that the server reads for an operation, in a small table and in a table ten times as large.

The server counts them, so that a missing index, or a query that grows with the table, shows without a clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pymysql

from locus_mysql import CheckpointStore, MySQLConfig

from .. import fill
from ..database import fresh_database
from ..disk import administrator

SIZES = (500, 5_000)

#: Number of checkpoints of the thread that is loaded and saved.
LONG = 200

_KEY, _VALUE = fill.RARE_PAIR

#: The calls, of a store that saved the thread "long" and of one that has never seen it.
CALLS: dict[str, Callable[[CheckpointStore, CheckpointStore], Awaitable[Any]]] = {
    "load": lambda s, _: s.load("long"),
    "load, thread new to the process": lambda _, s: s.load("long"),
    "save": lambda s, _: s.save("long", _state(LONG + 1), "new"),
    "save under an existing id": lambda s, _: s.save("long", _state(LONG + 2), "new"),
    "delete of a checkpoint": lambda s, _: s.delete("long", "c100"),
    "exists": lambda s, _: s.exists("thread-7"),
    "get_metadata": lambda s, _: s.get_metadata("long"),
    "list_checkpoints": lambda s, _: s.list_checkpoints("long", 10),
    "list_threads": lambda s, _: s.list_threads(20),
    "list_with_metadata": lambda s, _: s.list_with_metadata(20),
    "query_by_metadata": lambda s, _: s.query_by_metadata(_KEY, _VALUE),
    "query_by_metadata, none found": lambda s, _: s.query_by_metadata(_KEY, "nobody"),
    "search": lambda s, _: s.search(fill.RARE_WORD),
    "save under an id of another process": lambda _, s: s.save("long", _state(LONG + 3), "c150"),
    "estimate_count": lambda s, _: s.estimate_count(),
}


def figures(dsn: str) -> dict[str, float]:
    """Return the rows read, by operation and size of the table."""
    found: dict[str, float] = {}
    for size in SIZES:
        with fresh_database(dsn) as own:
            config = MySQLConfig(dsn=own, pool_size=1)
            fill.fill(config, own, size)
            with administrator(own) as cursor:
                reads = asyncio.run(_reads(config, cursor))
        found |= {f"{name}, {size} checkpoints": count for name, count in reads.items()}
    return found


async def _reads(config: MySQLConfig, cursor: pymysql.cursors.Cursor) -> dict[str, int]:
    reads = {}
    async with CheckpointStore(config) as store, CheckpointStore(config) as stranger:
        await stranger.health_check()
        for turn in range(1, LONG + 1):
            await store.save("long", _state(turn), f"c{turn}")
        await store.search(fill.RARE_WORD)  # a search first indexes the text that saves left unindexed
        cursor.execute(f"ANALYZE TABLE `{config.table_prefix}store_threads`, `{config.table_prefix}store_checkpoints`")
        for name, call in CALLS.items():
            before = rows_read(cursor)
            await call(store, stranger)
            reads[name] = rows_read(cursor) - before
    return reads


def rows_read(cursor: pymysql.cursors.Cursor) -> int:
    """Return the rows read so far by the package's connections to this database."""
    cursor.execute(
        "SELECT SUM(s.VARIABLE_VALUE) FROM performance_schema.status_by_thread s"
        " JOIN performance_schema.threads t USING (THREAD_ID)"
        " WHERE t.PROCESSLIST_DB = DATABASE() AND t.PROCESSLIST_ID <> CONNECTION_ID()"
        " AND s.VARIABLE_NAME LIKE 'Handler\\\\_read\\\\_%'"
    )
    ((count,),) = cursor.fetchall()
    return int(count)


def _state(turns: int) -> dict[str, Any]:
    return {"messages": [f"turn {turn} " + f"filler{turn} " * 20 for turn in range(turns)]}
