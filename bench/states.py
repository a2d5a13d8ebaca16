"""Real states of Locus agents with a tool, as they grow.

A real agent takes a minute for 5,000 messages, so its states are cached in ``.cache/bench-states``.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer

from . import agents
from .agents import Assistant, prose

CACHE = Path(__file__).parent.parent / ".cache/bench-states"
SIZES = (10, 100, 1000, 5000)


class Newest(BaseCheckpointer):
    """Keeps the newest state in memory, so that turns of a long conversation take little time."""

    def __init__(self) -> None:
        self.state: AgentState | None = None

    async def save(
        self,
        state: AgentState,
        thread_id: str,
        checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Keep the state; states are immutable."""
        self.state = state
        return checkpoint_id or "newest"

    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> AgentState | None:
        """Return the newest state."""
        return self.state

    async def list_checkpoints(self, thread_id: str, limit: int = 10) -> list[str]:
        """Return an empty list: only the newest state is kept."""
        return []


async def turns(assistant: Assistant) -> AsyncIterator[AgentState]:
    """Yield the state after each turn of an endless conversation."""
    newest = Newest()
    agent = assistant.agent(newest, checkpoint_every_n_iterations=0)
    while True:
        await agent.arun(assistant.question(), thread_id="t")
        agent.model.received_messages.clear()  # else the model keeps 5,000 messages 2,500 times
        assert newest.state is not None
        yield newest.state


async def agent_state(messages: int, *, seed: int = 1, large_outputs: bool = False) -> AgentState:
    """Return the state of an agent with a number of messages besides its system message."""
    name = f"{messages}-messages-seed-{seed}{'-large' if large_outputs else ''}"
    return (await _kept(name, _first_with(messages, Assistant(seed, large_outputs=large_outputs))))[0]


async def compacted_states(first_turn: int, last_turn: int, *, turns_between_compactions: int = 50) -> list[AgentState]:
    """Return the states after these turns of a conversation whose history Locus compacts."""
    name = f"turns-{first_turn}-{last_turn}-compacted-every-{turns_between_compactions}"
    assistant = Assistant(turns_between_compactions=turns_between_compactions)
    return await _kept(name, _between(first_turn, last_turn, assistant))


def grown(state: AgentState, source: random.Random) -> AgentState:
    """Return the state with one more message."""
    return state.with_message(Message.assistant(prose(source)))


async def _first_with(messages: int, assistant: Assistant) -> AsyncIterator[AgentState]:
    async for state in turns(assistant):
        if len(state.messages) > messages:
            yield state
            return


async def _between(first_turn: int, last_turn: int, assistant: Assistant) -> AsyncIterator[AgentState]:
    number = 0
    async for state in turns(assistant):
        number += 1
        if number >= first_turn:
            yield state
        if number == last_turn:
            return


async def _kept(name: str, made: AsyncIterator[AgentState]) -> list[AgentState]:
    """Return the states that ``made`` yields, from the cache if these versions of Locus and this package made them."""
    file = CACHE / f"{name}-{_fingerprint()}.json"
    if not file.exists():
        collecting = gc.isenabled()
        gc.disable()
        try:
            encoded = [state.to_checkpoint() async for state in made]
        finally:
            if collecting:
                gc.enable()
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(encoded))
        unfinished.rename(file)
    return [AgentState.from_checkpoint(one) for one in json.loads(file.read_text())]


def _fingerprint() -> str:
    made_by = [version("locus-sdk"), Path(agents.__file__).read_text(), Path(__file__).read_text()]
    return hashlib.sha256("\n".join(made_by).encode()).hexdigest()[:12]
