"""Working memory: round trips, rows read and bytes on the wire at two sizes; time compared with bare calls.

A figure that grows with the number of variables shows unneeded reads. Times are those of the blocking side on PyMySQL,
where processor time is the largest part of a call; a bare call is one statement by primary key.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from locus_mysql import Database
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.working import SyncWorkingMemory

from ..database import fresh_database
from ..disk import administrator
from ..floor import PyMySQLFloor
from ..wire import CountingProxy
from ..working import GET, SET, BareMySQL, run_through, value
from .housekeeping import without_random_housekeeping
from .reads import rows_read

SIZES = (50, 400)
ROUNDS, WARM_UP_ROUNDS = 150, 10

#: The calls of a session, in this order.
CALLS: dict[str, Callable[[SyncWorkingMemory], Any]] = {
    "get": lambda m: m.get("variable 00007"),
    "set": lambda m: m.set("variable 00007", "x" * 200),
    "set of a new one": lambda m: m.set("new", "x" * 200),
    "set_many of 10": lambda m: m.set_many({f"variable {n:05}": "x" * 200 for n in range(10, 20)}),
    "increment": lambda m: m.increment("number"),
    "compare_and_set": lambda m: m.compare_and_set("number", 1, 2),
    "delete": lambda m: m.delete("new"),
    "append_scratchpad": lambda m: m.append_scratchpad("x" * 100),
    "get_scratchpad": lambda m: m.get_scratchpad(3),
    "get_task_state": lambda m: m.get_task_state(),
}


def figures(dsn: str) -> dict[str, float]:
    """Return round trips, rows read and bytes, by call and number of variables."""
    found: dict[str, float] = {}
    for size in SIZES:
        with (
            fresh_database(dsn) as own,
            CountingProxy(own) as proxy,
            administrator(own) as cursor,
            without_random_housekeeping(),
        ):
            storage = MySQLStorage(dsn=proxy.dsn, driver="pymysql", ssl_mode="DISABLED", pool_size=1)
            memory = SyncWorkingMemory("session", storage)
            memory.set_many({f"variable {n:05}": "x" * 200 for n in range(size)})
            cursor.execute("ANALYZE TABLE locus_working_sessions, locus_working_entries")
            cursor.fetchall()
            for name, call in CALLS.items():
                before = rows_read(cursor)
                with proxy.counting() as count:
                    call(memory)
                found[f"round trips, {name}, {size} variables"] = count.round_trips
                found[f"rows read, {name}, {size} variables"] = rows_read(cursor) - before
                found[f"bytes, {name}, {size} variables"] = count.bytes_sent + count.bytes_received
            storage.close()
    return found


def times(dsn: str) -> dict[str, float]:
    """Return the times of get and set as multiples of the bare call's time."""
    with fresh_database(dsn) as own, Database(own, driver="pymysql") as database:
        memory = SyncWorkingMemory("session", database)
        memory.set_many({f"variable {n:05}": value() for n in range(100)})
        floor = PyMySQLFloor(own)
        bare = BareMySQL(PyMySQLFloor, 1, own)
        bare.floors = [floor]
        run_through(bare.begin(100))
        calls = bare.calls(0)
        ways: dict[str, Callable[[str], Any]] = {
            GET: memory.get,
            SET: lambda key: memory.set(key, value()),
            f"bare {GET}": calls[GET],
            f"bare {SET}": calls[SET],
        }
        source, taken = random.Random(6), {name: [] for name in ways}
        for number in range(-WARM_UP_ROUNDS, ROUNDS):
            for name, way in source.sample(list(ways.items()), len(ways)):
                begin = time.perf_counter()
                way(f"variable {source.randrange(100):05}")
                if number >= 0:
                    taken[name].append(time.perf_counter() - begin)
        run_through(floor.close())
    quick = {name: statistics.quantiles(times, n=4)[0] for name, times in taken.items()}
    return {f"{what} against the bare one": quick[what] / quick[f"bare {what}"] for what in (GET, SET)}
