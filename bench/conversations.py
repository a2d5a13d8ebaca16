"""Whole conversations of real Locus agents, turn by turn, with any checkpointer."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import Any

from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

from .agents import Assistant, prose

THREAD = "conversation"
QUESTION_WORDS = 20
TURNS_BETWEEN_COMPACTIONS = 50

#: Conversations by name. In each turn of the first, a question and an answer; of the second, three tool calls before
#: the answer, each saved, and these saves deleted at the turn's end. The history of the third is compacted by Locus.
PLAIN, ITERATIONS, COMPACTED = "plain turns", "three iteration saves per turn", "compacted every 50 turns"


async def conversation(kind: str, checkpointer: BaseCheckpointer, turns: int) -> AsyncIterator[tuple[int, AgentState]]:
    """Run a conversation; yield after each turn its number and its final state.

    The words are the same in each run; ids and times differ.
    """
    saved: list[AgentState] = []
    observed = _Observed(checkpointer, saved)
    agent, ask = _compacting(observed) if kind == COMPACTED else _looking_up(observed, 3 if kind == ITERATIONS else 0)
    for turn in range(1, turns + 1):
        await agent.arun(ask(), thread_id=THREAD)
        agent.model.received_messages.clear()  # else the test model keeps every history that it received
        yield turn, saved[-1]
        saved.clear()


def _compacting(checkpointer: BaseCheckpointer) -> tuple[Agent, Callable[[], str]]:
    assistant = Assistant(seed=4, turns_between_compactions=TURNS_BETWEEN_COMPACTIONS)
    return assistant.agent(checkpointer), assistant.question


def _looking_up(checkpointer: BaseCheckpointer, tool_calls: int) -> tuple[Agent, Callable[[], str]]:
    """Return an agent that calls its tool a given number of times, one after the other, before it answers."""
    source = random.Random(4)
    serial = count()

    @tool
    def look_up(topic: str) -> str:
        """Look a topic up."""
        return prose(source)

    def answer(heard: Sequence[Message], tools: object) -> ModelResponse:
        since_question = next(index for index, message in enumerate(reversed(heard)) if message.role.value == "user")
        if since_question < 2 * tool_calls:
            return tool_call("look_up", topic=f"topic {next(serial)}")
        return text(prose(source))

    agent = Agent(
        model=FunctionModel(answer),
        tools=[look_up] if tool_calls else [],
        checkpointer=checkpointer,
        checkpoint_every_n_iterations=1,
        context_window=1_000_000_000,
        system_prompt="Answer from what you look up.",
    )
    return agent, lambda: prose(source, QUESTION_WORDS)


class _Observed(BaseCheckpointer):
    """A checkpointer that records its final saves, so that the size of a state can be measured without a load."""

    def __init__(self, inner: BaseCheckpointer, saved: list[AgentState]) -> None:
        self._inner = inner
        self._saved = saved

    @property
    def deletes_single_checkpoints(self) -> bool:
        return self._inner.deletes_single_checkpoints

    async def save(self, state: AgentState, *arguments: Any, **options: Any) -> str:
        self._saved.append(state)
        return await self._inner.save(state, *arguments, **options)

    async def load(self, *arguments: Any, **options: Any) -> AgentState | None:
        return await self._inner.load(*arguments, **options)

    async def list_checkpoints(self, *arguments: Any, **options: Any) -> list[str]:
        return await self._inner.list_checkpoints(*arguments, **options)

    async def delete(self, *arguments: Any, **options: Any) -> bool:
        return await self._inner.delete(*arguments, **options)

    async def exists(self, *arguments: Any, **options: Any) -> bool:
        return await self._inner.exists(*arguments, **options)
