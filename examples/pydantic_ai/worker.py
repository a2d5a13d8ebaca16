"""Another process with the conversation: it runs turns, reports that, and waits to be killed.

Started as ``python -m examples.pydantic_ai.worker``. It reads one line of JSON, a `Shift`, and writes one,
``{"answer": …, "refused": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from pydantic_ai.conversation_store import ConversationConflict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore

from .agent import turn


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    questions: list[str]


async def work(shift: Shift) -> None:
    """Run the turns, and wait."""
    answer, refused = "", 0
    async with PydanticConversationStore(MySQLConfig(**shift["options"])) as store:
        for question in shift["questions"]:
            stored = False
            while not stored:
                try:
                    answer, stored = await turn(store, question), True
                except ConversationConflict:
                    refused += 1
        print(json.dumps({"answer": answer, "refused": str(refused)}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
