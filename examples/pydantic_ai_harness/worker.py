"""Another process with the agent: it runs one turn, hangs in a tool call, and is killed there.

Started as ``python -m examples.pydantic_ai_harness.worker``. It reads one line of JSON, a `Shift`, and writes one,
``{"event": "restarting"}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.runtime.database import Database

from .agent import CONVERSATION, make_agent


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    question: str


async def work(shift: Shift) -> None:
    """Run the turn."""
    async with Database(MySQLConfig(**shift["options"])) as database:
        await make_agent(database, hangs=True).run(shift["question"], conversation_id=CONVERSATION)


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
