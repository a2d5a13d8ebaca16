"""Another process with the session: it runs a turn or adds notes, reports that, and waits to be killed.

Started as ``python -m examples.strands.worker``. It reads one line of JSON, a `Shift`, and writes one,
``{"keys": …}`` or ``{"taken": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage

from .support import add_notes, take_turn


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users.

    Args:
        options: The options of the database.
        turn: The number of the turn that it runs; None for no turn.
        notes: The notes that it adds.
    """

    options: dict[str, Any]
    turn: int | None
    notes: list[str]


def work(shift: Shift) -> None:
    """Do the work, and wait."""
    config, number = MySQLConfig(**shift["options"]), shift["turn"]
    if number is None:
        with StrandsSessionRepository(config) as repository:
            report = {"taken": str(add_notes(repository, shift["notes"]))}
    else:
        report = {"keys": str(len(asyncio.run(turn(config, number))))}
    print(json.dumps(report), flush=True)
    threading.Event().wait()


async def turn(config: MySQLConfig, number: int) -> list[str]:
    """Run a turn; returns the keys of the storage."""
    async with StrandsStorage(config) as storage:
        await take_turn(storage, number)
        return await storage.list()


if __name__ == "__main__":
    work(json.loads(sys.stdin.readline()))
