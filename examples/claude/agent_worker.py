"""Another machine with an agent: the SDK runs its program for one turn, on a scripted model, with our session store.

Started as ``python -m examples.claude.agent_worker``. It reads one line of JSON, an `AgentShift`, and writes one,
``{"session": …, "answer": …}`` when the turn is over; then it waits to be killed. Its program has its own home folder,
so a session that it resumes can only come from the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TypedDict

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SessionStore, query

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore


class AgentShift(TypedDict):
    """The work of the process. It comes through a pipe: an argument would show the password to other users."""

    options: dict[str, Any]
    model: str
    directory: str
    home: str
    prompt: str
    session: str | None


async def turn(store: SessionStore, home: str, model: str, directory: str, prompt: str, session: str | None) -> Any:
    """Run one turn of an agent, and return its `ResultMessage`.

    Args:
        store: The session store.
        home: The folder in which the SDK's program keeps its own files.
        model: The address of the model.
        directory: The folder in which the agent works.
        prompt: The user's message.
        session: The session to resume; None for a new one.
    """
    options = ClaudeAgentOptions(
        session_store=store,
        resume=session,
        cwd=directory,
        system_prompt="Answer briefly.",
        setting_sources=[],
        allowed_tools=[],
        max_turns=1,
        env={
            "HOME": home,
            "CLAUDE_CONFIG_DIR": home,
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )
    result = None
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            result = message
    return result


def without_own_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the user's own settings and account for the SDK's program."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("ANTHROPIC_", "CLAUDE", "AWS_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY"))
    }


async def work(shift: AgentShift) -> None:
    """Run a turn, report its answer, and wait."""
    async with ClaudeSessionStore(MySQLConfig(**shift["options"])) as store:
        turn_of = (shift["home"], shift["model"], shift["directory"], shift["prompt"], shift["session"])
        result = await turn(store, *turn_of)
        print(json.dumps({"session": result.session_id, "answer": result.result}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    own = without_own_settings(os.environ)
    os.environ.clear()
    os.environ.update(own)
    asyncio.run(work(json.loads(sys.stdin.readline())))
