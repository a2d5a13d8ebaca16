"""Another process that serves a session.

Started as ``python -m examples.working.worker``. It reads one line of JSON, a `Step`, carries out
one turn of the agent on MySQL, writes ``{"answer": …}``, and waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any, TypedDict

from locus_mysql.config import MySQLConfig
from locus_mysql.families.working.store import WorkingMemory

from .agents import make_agent


class Step(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    session_id: str
    prompt: str


async def take(step: Step) -> None:
    """Run a turn and report it; then wait to be killed."""
    memory = WorkingMemory(step["session_id"], MySQLConfig(**step["options"]))
    result = await make_agent(memory).arun(step["prompt"])
    print(json.dumps({"answer": str(result.text)}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.getLogger("locus").setLevel(logging.ERROR)
    asyncio.run(take(json.loads(sys.stdin.readline())))
