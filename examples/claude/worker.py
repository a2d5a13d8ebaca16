"""Another process with the session: it stores a turn, reports that, and waits to be killed before the next one.

Started as ``python -m examples.claude.worker``. It reads one line of JSON, a `Shift`, and writes one,
``{"entries": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore

from .entries import KEY, turn


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    turn: int


async def work(shift: Shift) -> None:
    """Store a turn, and wait."""
    async with ClaudeSessionStore(MySQLConfig(**shift["options"])) as store:
        await store.append(KEY, turn(shift["turn"]))
        print(json.dumps({"entries": str(len(await store.load(KEY) or ()))}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
