"""Another process that answers a graph's question, and runs the graph to its end.

Started as ``python -m examples.langgraph.worker``. It reads one line of JSON, an `Answer`, and writes
one, ``{"log": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TypedDict

from langgraph.types import Command

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.langgraph import AsyncMySQLSaver

from .graph import compiled, thread


class Answer(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    thread_id: str
    answer: str


async def resume(given: Answer) -> list[str]:
    """Resume the graph with the answer; return its log."""
    async with AsyncMySQLSaver(MySQLConfig(**given["options"])) as saver:
        ended = await compiled(saver).ainvoke(Command(resume=given["answer"]), thread(given["thread_id"]))
    return list(ended["log"])


if __name__ == "__main__":
    print(json.dumps({"log": ", ".join(asyncio.run(resume(json.loads(sys.stdin.readline()))))}), flush=True)
