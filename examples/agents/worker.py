"""Another process of the application, driven through its standard streams.

Started as ``python -m examples.agents.worker``.

It reads one line of JSON, an `Assignment`, and writes one line of JSON for each event: ``{"calling": tool}`` when it
executes a tool, ``{"answer": text}`` at the end. In the tool named ``hang_in`` it blocks until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from .agents import make_agent


class Assignment(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    thread_id: str
    prompt: str
    executions: str
    hang_in: str | None


async def work(assignment: Assignment) -> str:
    """Run one turn; return the answer."""

    def on_call(name: str) -> None:
        _tell({"calling": name})
        if name == assignment["hang_in"]:
            sys.stdin.read()  # returns only if the process that should kill this one has ended
            os._exit(1)

    async with MySQLCheckpointer(MySQLConfig(**assignment["options"])) as checkpointer:
        agent = make_agent(checkpointer, Path(assignment["executions"]), on_call)
        result = await agent.arun(assignment["prompt"], thread_id=assignment["thread_id"])
    return str(result.text)


def _tell(event: dict[str, str]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    _tell({"answer": asyncio.run(work(json.loads(sys.stdin.readline())))})
