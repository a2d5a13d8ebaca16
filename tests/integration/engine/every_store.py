"""Every store of an embedded database, used in the same way: each writes numbered steps and reads them back.

As a program, it adds steps to all stores in turn until it is killed: ``python -m tests.integration.engine.every_store
DSN SIDE``. It prints a line for each step of a store that was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from locus_mysql import Database, MySQLConfig

from ..contract.samples import SAMPLES


class Steps(NamedTuple):
    """The steps in one store.

    Args:
        write: Adds a step of this number, after all others.
        read: Returns the numbers of all steps in their order, and checks what is stored with them.
    """

    write: Callable[[int], Awaitable[Any]]
    read: Callable[[], Awaitable[list[int]]]


def every_store(where: str | Database, awaited: bool) -> dict[str, Steps]:
    """Open every store of one side.

    Args:
        where: A DSN, or a database that all stores share.
        awaited: Whether to open the asynchronous stores, or the blocking ones.
    """
    config = where if isinstance(where, Database) else MySQLConfig(dsn=where)
    driver = "" if isinstance(config, Database) else config.driver
    found = {}
    for name, sample in SAMPLES.items():
        if name == "toys":  # a family of the tests
            continue
        store = sample.open(config, f"{driver}-{'async' if awaited else 'sync'}")
        found[name] = Steps(partial(sample.write, store, "t"), partial(sample.steps, store, "t"))
    return found


async def write_until_killed(dsn: str, side: str) -> None:
    """Add steps to every store, in turn, after those that are there."""
    stores = every_store(dsn, side == "async")
    following = {name: len(await steps.read()) for name, steps in stores.items()}
    while True:
        for name, steps in stores.items():
            await steps.write(following[name])
            print(name, following[name], flush=True)
            following[name] += 1


if __name__ == "__main__":
    asyncio.run(write_until_killed(*sys.argv[1:]))
