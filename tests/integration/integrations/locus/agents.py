"""States, and agents with a scripted model."""

from __future__ import annotations

from typing import Any

from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.testing import ScriptedModel, text, tool_call
from locus.tools import tool

from locus_mysql import MySQLCheckpointer


def a_state(*contents: str, **fields: Any) -> AgentState:
    state = AgentState(run_id="run", **fields)
    for content in contents:
        state = state.with_message(Message.user(content))
    return state


def contents(state: AgentState | None) -> list[str | None]:
    assert state is not None
    return [message.content for message in state.messages if message.role.value != "system"]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def again(agent: Agent, checkpointer: MySQLCheckpointer) -> Agent:
    """Return an agent that runs the same script from its beginning."""
    return Agent(
        model=ScriptedModel([tool_call("add", a=1, b=2), tool_call("add", a=3, b=4, call_id="second"), text("7")]),
        tools=[add],
        checkpointer=checkpointer,
        checkpoint_every_n_iterations=1,
    )
