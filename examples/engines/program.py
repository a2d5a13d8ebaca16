"""A whole program: one turn of an agent with a memory. Its DSN says which database holds it, and nothing else does.

    LOCUS_MYSQL_DSN=mysql://user:password@host/app      python -m examples.engines.program ada "Hello, I am Ada."
    LOCUS_MYSQL_DSN=mysql+embedded:///agent-memory      python -m examples.engines.program ada "Hello, I am Ada."

It prints the agent's answer, and the number of turns so far, which is in the session's working memory.
"""

from __future__ import annotations

import asyncio
import sys

from locus.agent import Agent
from locus.testing import FunctionModel

from locus_mysql import Database, MySQLCheckpointer, MySQLConfig
from locus_mysql.working import MySQLStorage, WorkingMemory

from ..agents.agents import answer


async def turn(thread_id: str, prompt: str) -> str:
    """Let the agent answer; return its answer, and the number of turns."""
    async with Database(MySQLConfig.from_env()) as database:
        agent = Agent(
            model=FunctionModel(answer),
            system_prompt="You serve the customers of a coffee shop.",
            checkpointer=MySQLCheckpointer(database),
            context_window=1_000_000,
        )
        memory = WorkingMemory(thread_id, MySQLStorage(database))
        result = await agent.arun(prompt, thread_id=thread_id)
        turns = await memory.get("turns", 0) + 1
        await memory.set("turns", turns)
    return f"{result.text} (turn {turns})"


if __name__ == "__main__":
    print(asyncio.run(turn(*sys.argv[1:])))
