"""Another process with the session: it runs a turn or adds notes, reports that, and waits to be killed.

Started as ``python -m examples.openai_agents.worker``. It reads one line of JSON, a `Shift`, and writes one,
``{"items": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.openai_agents import OpenAISession

from .assistant import SESSION, take_turn


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users.

    Args:
        options: The options of the database.
        turn: The number of the turn that it runs; None for no turn.
        notes: The number of notes that it adds.
    """

    options: dict[str, Any]
    turn: int | None
    notes: int


async def work(shift: Shift) -> None:
    """Do the work, and wait."""
    async with OpenAISession(SESSION, MySQLConfig(**shift["options"])) as session:
        if shift["turn"] is not None:
            await take_turn(session, shift["turn"])
        for number in range(shift["notes"]):
            await session.add_items([{"role": "user", "content": f"Note {number} of the other process"}])
        print(json.dumps({"items": str(len(await session.get_items()))}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
