"""The workloads: conversations of several sizes and kinds, each as a sequence of states."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from locus.core.messages import Message, ToolResult
from locus.core.state import AgentState

from .agents import Assistant
from .states import agent_state, compacted_states, grown

LARGE_OUTPUTS = "200 KB tool outputs"
COMPACTED = "compacted every 50 turns"
LARGE_MESSAGES = 30
FIRST_TURN, TURNS = 45, 70  # with two compactions among the first 60


@dataclass(frozen=True)
class Workload:
    """A conversation.

    Args:
        name: The number of messages, or the special property.
        begin: The first state.
        then: The following states, which are measured before the conversation starts again.
    """

    name: str
    begin: AgentState
    then: Sequence[AgentState]

    def passes(self, rounds: int) -> Iterator[tuple[int, AgentState, bool]]:
        """Yield conversation number, state, and whether to measure it, until enough states were measured."""
        done = number = 0
        while done < rounds:
            yield number, self.begin, False
            for state in self.then[: rounds - done]:
                yield number, state, True
                done += 1
            number += 1


async def of_size(messages: int) -> Workload:
    """Return a conversation that grows by a quarter of its messages, at most by 60, then starts again."""
    begin = await agent_state(messages)
    return Workload(str(messages), begin, _growing(begin, max(3, min(60, messages // 4)), grown))


async def of_large_outputs() -> Workload:
    """Return a conversation whose tool answers with 200 KB; each save adds such an answer."""
    assistant = Assistant(seed=2, large_outputs=True)

    def with_output(state: AgentState, source: random.Random) -> AgentState:
        return state.with_message(
            Message.tool(ToolResult(tool_call_id="call", name="look_up", content=assistant.tool_output()))
        )

    begin = await agent_state(LARGE_MESSAGES, large_outputs=True)
    return Workload(LARGE_OUTPUTS, begin, _growing(begin, 4, with_output))


async def of_compaction() -> Workload:
    """Return whole turns of a conversation that Locus' compactor shortens twice."""
    begin, *then = await compacted_states(FIRST_TURN, FIRST_TURN + TURNS)
    return Workload(COMPACTED, begin, then)


def _growing(
    begin: AgentState, steps: int, grow: Callable[[AgentState, random.Random], AgentState]
) -> list[AgentState]:
    source = random.Random(2)
    states = [begin]
    for _ in range(steps):
        states.append(grow(states[-1], source))
    return states[1:]
