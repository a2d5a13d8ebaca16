"""The agent of this chapter, on a scripted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import Agent, RunConfig, Runner
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message

SESSION = "customer-7"

#: The user's message and the answer of each turn.
TURNS: Sequence[tuple[str, str]] = (
    ("My router blinks red. What now?", "Hold its button for ten seconds, please."),
    ("It is green now.", "Good. What did it show before?"),
)


async def take_turn(session: Session, number: int) -> Sequence[str]:
    """Run a turn of the conversation; returns the texts that the model received."""
    question, answer = TURNS[number]
    model = ScriptedModel([[assistant_message(answer)]])
    agent: Agent[Any] = Agent(name="support", instructions="Help with routers.", model=model)
    await Runner.run(agent, question, session=session, run_config=RunConfig(tracing_disabled=True))
    (call,) = model.calls
    return [text_of(item) for item in call.input]


def text_of(item: Any) -> str:
    """Return the text of an item."""
    content = item.get("content") if isinstance(item, dict) else item
    return str(content[0]["text"] if isinstance(content, list) else content)
