"""Whole conversations of real Locus agents, turn by turn, with whichever checkpointer."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

from .states import prose

THREAD = "conversation"
QUESTION_WORDS = 20
TURNS_PER_COMPACTION = 50

#: Conversations by name: each turn a question and an answer; three tool calls before the answer, each saved and the
#: saves deleted at the turn's end; as the first, but its history is replaced by a summary now and then.
PLAIN, ITERATIONS, COMPACTED = "plain turns", "three iteration saves per turn", "compacted every 50 turns"


async def conversation(kind: str, checkpointer: BaseCheckpointer, turns: int) -> AsyncIterator[tuple[int, AgentState]]:
    """Have a conversation; after each turn, its number and the state that the turn ended with.

    The words are the same every time; ids and times differ.
    """
    source = random.Random(4)
    ended: list[AgentState] = []
    agent = _agent(source, tool_calls=3 if kind == ITERATIONS else 0, checkpointer=_Observed(checkpointer, ended))
    for turn in range(1, turns + 1):
        if kind == COMPACTED and turn % TURNS_PER_COMPACTION == 0:
            await checkpointer.save(_compacted(ended[-1], source), THREAD)
        await agent.arun(prose(source, QUESTION_WORDS), thread_id=THREAD)
        agent.model.received_messages.clear()  # or a test's model remembers every history it ever heard
        yield turn, ended[-1]
        del ended[:-1]


def _agent(source: random.Random, tool_calls: int, checkpointer: BaseCheckpointer) -> Agent:
    serial = count()

    @tool
    def look_up(topic: str) -> str:
        """Look a topic up."""
        return prose(source)

    def answer(heard: Sequence[Message], tools: object) -> ModelResponse:
        since_question = next(place for place, message in enumerate(reversed(heard)) if message.role.value == "user")
        if since_question < 2 * tool_calls:
            return tool_call("look_up", topic=f"topic {next(serial)}")
        return text(prose(source))

    return Agent(
        model=FunctionModel(answer),
        tools=[look_up] if tool_calls else [],
        checkpointer=checkpointer,
        checkpoint_every_n_iterations=1,
        context_window=1_000_000_000,
        system_prompt="Answer from what you look up.",
    )


def _compacted(state: AgentState, source: random.Random) -> AgentState:
    """The state with a summary in place of all but its last messages, as a compaction leaves it."""
    system, *history = state.messages
    summary = Message.user(f"Earlier turns were summarised: {prose(source, 300)}")
    return state.model_copy(update={"messages": (system, summary, *history[-4:])})


class _Observed(BaseCheckpointer):
    """A checkpointer whose lasting saves are noted, so that measuring a state needs no load."""

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
