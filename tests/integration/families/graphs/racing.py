"""Counts first puts that are lost or damaged while other processes remove threads.

As a program, it takes a DSN, a driver and a number:
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from dataclasses import dataclass
from typing import Any

from locus_mysql import MySQLCheckpointSaver, MySQLConfig
from locus_mysql.errors import LocusMySQLError

#: The operation of each other process on the threads that are being created.
REMOVERS = ("prune", "prune", "delete_thread")

#: Number of concurrent puts.
AT_ONCE = 4

STATE = {"said": [f"{word} " * 1_500 for word in ("plum", "fig")]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of acknowledged puts.

    Args:
        puts: Number of puts.
        deleted: Number of puts deleted by a call that reported it.
        gone: Number of missing puts that no call reported as deleted.
        damaged: Number of threads that cannot be listed, or that accept no further puts.
    """

    puts: int
    deleted: int
    gone: int
    damaged: int


def race(options: dict[str, Any], puts: int) -> Outcome:
    """Put first checkpoints while other processes remove threads.

    Args:
        options: Options of the configuration.
        puts: Number of threads to create.
    """
    context = multiprocessing.get_context("spawn")
    current, deleted = context.Value("i", 0), context.Queue()
    ready, done = context.Barrier(len(REMOVERS) + 1), context.Event()
    removers = [
        context.Process(target=_remove, args=(options, how, puts, current, ready, done, deleted), daemon=True)
        for how in REMOVERS
    ]
    for remover in removers:
        remover.start()
    try:
        ready.wait(120)
        asyncio.run(_put(options, puts, current))
        done.set()
        gone_on_purpose = {name for _ in removers for name in deleted.get(timeout=120)}
    finally:
        done.set()
        for remover in removers:
            remover.join(60)
            if remover.is_alive():
                remover.kill()
    return asyncio.run(_count(options, puts, gone_on_purpose))


async def _put(options: dict[str, Any], puts: int, current: Any) -> None:
    async with MySQLCheckpointSaver(MySQLConfig(**options)) as saver:
        numbers = iter(range(puts))

        async def some() -> None:
            for number in numbers:
                current.value = number
                await saver.put(thread_id=f"t{number}", checkpoint_id="c1", checkpoint_data=STATE)

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def _remove(options: dict[str, Any], how: str, puts: int, current: Any, ready: Any, done: Any, deleted: Any) -> None:
    deleted.put(asyncio.run(_removing(options, how, puts, current, ready, done)))


async def _removing(options: dict[str, Any], how: str, puts: int, current: Any, ready: Any, done: Any) -> list[str]:
    gone: list[str] = []
    async with MySQLCheckpointSaver(MySQLConfig(**options)) as saver:
        await saver.count()
        ready.wait(120)
        while not done.is_set():
            for ahead in range(AT_ONCE):
                name = f"t{min(current.value + ahead, puts - 1)}"
                if how == "prune":
                    await saver.prune(thread_id=name, keep=1)
                elif await saver.delete_thread(name):
                    gone.append(name)
    return gone


async def _count(options: dict[str, Any], puts: int, deleted: set[str]) -> Outcome:
    gone = damaged = 0
    async with MySQLCheckpointSaver(MySQLConfig(**options)) as saver:
        for number in range(puts):
            name = f"t{number}"
            try:
                found = await saver.list_checkpoints(thread_id=name)
                if not found:
                    gone += name not in deleted
                    await saver.put(thread_id=name, checkpoint_id="c1", checkpoint_data={"anew": number})
                    found = await saver.list_checkpoints(thread_id=name)
                damaged += len(found) != 1
            except LocusMySQLError:
                damaged += 1
    return Outcome(puts, len(deleted), gone, damaged)


if __name__ == "__main__":
    dsn, driver, number = sys.argv[1:]
    print(driver, race({"dsn": dsn, "driver": driver, "ssl_mode": "DISABLED"}, int(number)))
