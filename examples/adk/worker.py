"""Another process with the session: it runs turns of the agent, reports each, and waits to be killed after the last.

Started as ``python -m examples.adk.worker``. It reads one line of JSON, a `Shift`, and writes one for each turn,
``{"answer": …}``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any, TypedDict

from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai.types import Content, Part

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.google_adk import AdkSessionService, StaleSessionError

from .agents.shop.agent import root_agent

APP, USER = "shop", "ada"


class Shift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    session: str
    texts: Sequence[str]


def runner_on(sessions: BaseSessionService, memory: BaseMemoryService | None = None) -> Runner:
    """Return a runner of the agent."""
    return Runner(app_name=APP, agent=root_agent, session_service=sessions, memory_service=memory)


async def say(runner: Runner, session: str, text: str) -> str:
    """Run a turn and return the agent's answer."""
    answer = ""
    message = Content(role="user", parts=[Part(text=text)])
    async for event in runner.run_async(user_id=USER, session_id=session, new_message=message):
        if event.is_final_response() and event.content:
            answer = "".join(part.text or "" for part in event.content.parts or ())
    return answer


async def insist(runner: Runner, session: str, text: str) -> str:
    """Run a turn; repeat it if another process wrote to the session in the meantime."""
    while True:
        try:
            return await say(runner, session, text)
        except StaleSessionError:
            continue


async def work(shift: Shift) -> None:
    """Run the turns, and wait."""
    async with AdkSessionService(MySQLConfig(**shift["options"])) as sessions:
        runner = runner_on(sessions)
        for text in shift["texts"]:
            print(json.dumps({"answer": await insist(runner, shift["session"], text)}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
