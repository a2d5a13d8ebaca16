"""Another worker, which takes the turn on a thread and gets stuck in a node until it is killed.

Started as ``python -m examples.turns.worker``. It reads one line of JSON, an `Assignment`, and writes one when it is in
the node, ``{"node": "refund"}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.langgraph import AsyncMySQLSaver

from .graph import compiled, thread


class Assignment(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    thread_id: str
    lease_s: float


async def work(given: Assignment) -> None:
    """Run the graph in a turn, and never end."""

    async def refunding() -> None:
        print(json.dumps({"node": "refund"}), flush=True)
        await asyncio.Event().wait()

    saver, thread_id = AsyncMySQLSaver(MySQLConfig(**given["options"])), given["thread_id"]
    async with saver, saver.turn(thread_id, lease_s=given["lease_s"]):
        await compiled(saver, refunding).ainvoke({"log": []}, thread(thread_id), durability="sync")


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
