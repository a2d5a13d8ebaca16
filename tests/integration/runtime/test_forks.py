"""A forked child uses the stores of its parent's `Database`, whatever the parent's threads did when it was forked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..conftest import EVERY_SIDE

#: Arguments: the database, DSN, driver and side. Another thread holds all locks of the package's objects at the fork.
SCRIPT = """
import asyncio, gc, os, signal, sys, threading, warnings

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork with threads
from locus_mysql import Database, MySQLConfig
from tests.integration.engine.every_store import every_store

LOCKS = type(threading.Lock()), type(threading.RLock())
name, dsn, driver, side = sys.argv[1:]
database = Database(MySQLConfig(dsn=dsn).model_copy(update={"database": name, "driver": driver}))
stores = every_store(database, side == "async")


async def write(step):
    for steps in stores.values():
        await steps.write(step)


async def read():
    return {name: await steps.read() for name, steps in stores.items()}


def hold(held, done):
    objects = [one for one in gc.get_objects() if str(type(one).__module__).startswith("locus_mysql")]
    locks = {id(value): value for one in objects for value in getattr(one, "__dict__", {}).values()}
    locks = [lock for lock in locks.values() if isinstance(lock, LOCKS) and lock.acquire(timeout=1)]
    print(len(locks) > 5, flush=True)
    held.set()
    done.wait()
    for lock in locks:
        lock.release()


with asyncio.Runner() as runner:
    runner.run(write(0))
    held, done = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold, args=(held, done))
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for a lock
        counted = database.stats()
        assert (counted.opened, counted.round_trips, counted.cache_hits) == (0, 0, 0), counted
        found = asyncio.run(read())
        assert all(steps == [0] for steps in found.values()), found
        assert database.stats().cache_misses > 0, "a child begins with empty caches"
        asyncio.run(write(1))
        database.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    holder.join()
    opened = database.stats().opened
    found = runner.run(read())
    assert all(steps == [0, 1] for steps in found.values()), found
    assert (database.stats().opened, database.stats().lost) == (opened, 0)
"""


@pytest.mark.parametrize("side", EVERY_SIDE)
def test_a_child_waits_for_no_lock_of_its_parents_threads_and_leaves_its_connections_alone(
    server_dsn: str, database: str, side: str
) -> None:
    driver, _, way = side.rpartition("-")
    command = [sys.executable, "-c", SCRIPT, database, server_dsn, driver, way]
    ran = subprocess.run(command, check=False, timeout=180, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr
