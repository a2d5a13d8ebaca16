"""The agent of this chapter on a scripted model, and notes that several processes add to one session."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any

from strands import Agent
from strands.models import Model
from strands.session import SnapshotSessionManager
from strands.session.session_repository import SessionRepository
from strands.storage import Storage
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

SESSION, AGENT, NOTES_SESSION = "customer-7", "support", "notes"

#: The user's message and the answer of each turn.
TURNS: Sequence[tuple[str, str]] = (
    ("My router blinks red. What now?", "Hold its button for ten seconds, please."),
    ("It is green now.", "Good. What did it show before?"),
)


class ScriptedModel(Model):
    """Gives one answer, and keeps the messages that it received."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self.received: list[Any] = []

    def update_config(self, **model_config: Any) -> None:
        """Ignore options: there are none."""

    def get_config(self) -> dict[str, Any]:
        """Return the options."""
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        """Refuse what no turn needs."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterable[Any]:
        """Answer as a real model does, in events."""
        self.received = copy.deepcopy(messages)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": self._answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


async def take_turn(storage: Storage, number: int) -> Sequence[str]:
    """Run a turn of the conversation, whose state is restored and saved; returns the texts that the model received."""
    question, answer = TURNS[number]
    model = ScriptedModel(answer)
    manager = SnapshotSessionManager(SESSION, storage=storage, snapshot_trigger=lambda **_: True)
    agent = Agent(model, agent_id=AGENT, session_manager=manager, callback_handler=None)
    await agent.invoke_async(question)
    return [text_of(message) for message in model.received]


def text_of(message: Any) -> str:
    """Return the text of a message."""
    return str(message["content"][0]["text"])


def begin_notes(repository: SessionRepository) -> None:
    """Create the session with the notes."""
    repository.create_session(Session(NOTES_SESSION, SessionType.AGENT))
    repository.create_agent(NOTES_SESSION, SessionAgent(AGENT, {}, {}))


def add_notes(repository: SessionRepository, notes: Sequence[str]) -> int:
    """Add notes under the next free ids; returns how often another process had taken the id first."""
    taken = 0
    for note in notes:
        while True:
            number = len(repository.list_messages(NOTES_SESSION, AGENT))
            message = SessionMessage.from_message({"role": "user", "content": [{"text": note}]}, number)
            try:
                repository.create_message(NOTES_SESSION, AGENT, message)
                break
            except SessionException:
                taken += 1
    return taken
