"""Real states: what Locus agents with a tool have in memory after a number of messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import count

from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.memory import MemoryCheckpointer
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

WORDS_PER_MESSAGE = 80
_SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "vel", "dor", "pin", "su", "gra", "che", "no"]


def prose(source: random.Random, words: int = WORDS_PER_MESSAGE) -> str:
    """Made-up words, as many kinds of them as English text has."""
    return " ".join("".join(source.choices(_SYLLABLES, k=source.randint(1, 4))) for _ in range(words))


async def agent_state(messages: int, *, seed: int = 1) -> AgentState:
    """The state of an agent that answered questions with one tool call each, once it has this many messages."""
    source = random.Random(seed)
    serial = count()

    @tool
    def look_up(topic: str) -> str:
        """Look a topic up."""
        return prose(source)

    def answer(heard: Sequence[Message], tools: object) -> ModelResponse:
        if heard[-1].role.value == "tool":
            return text(prose(source))
        return tool_call("look_up", topic=f"topic {next(serial)}")

    memory = MemoryCheckpointer()
    agent = Agent(
        model=FunctionModel(answer),
        tools=[look_up],
        checkpointer=memory,
        context_window=10_000_000,
        checkpoint_every_n_iterations=0,
        system_prompt="Answer from what you look up.",
    )
    while True:
        await agent.arun(prose(source), thread_id="t")
        state = await memory.load("t")
        assert state is not None
        if len(state.messages) >= messages:
            return state


def grown(state: AgentState, source: random.Random) -> AgentState:
    """The state one message later."""
    return state.with_message(Message.assistant(prose(source)))


if __name__ == "__main__":
    print(len(asyncio.run(agent_state(40)).messages))
