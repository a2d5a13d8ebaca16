"""Another process, on another day, in another conversation with the same user.

Started as ``python -m examples.memories.worker``. It reads one line of JSON, a `Question`, and writes
one, ``{"answer": …}``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.families.memories.hashing import HashingEmbedder
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.memory import MySQLMemory
from locus_mysql.runtime.database import Database

from .agents import make_agent


class Question(TypedDict):
    """The question for the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    user: str
    thread_id: str
    prompt: str


async def ask(question: Question) -> str:
    """Run one turn; return the answer."""
    async with Database(MySQLConfig(**question["options"])) as database:
        agent = make_agent(MySQLCheckpointer(database), MySQLMemory(database, embedder=HashingEmbedder()))
        result = await agent.arun(
            question["prompt"], thread_id=question["thread_id"], metadata={"user": question["user"]}
        )
    return str(result.text)


if __name__ == "__main__":
    logging.getLogger("locus").setLevel(logging.ERROR)
    print(json.dumps({"answer": asyncio.run(ask(json.loads(sys.stdin.readline())))}), flush=True)
