"""An agent of Pydantic AI whose model is scripted, so that the chapter needs none."""

from __future__ import annotations

from pydantic_ai import Agent, Conversation, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.conversation_store import ConversationStore
from pydantic_ai.models.function import AgentInfo, FunctionModel

CONVERSATION, CUSTOMER = "router-7", "ada"


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer with the number of questions in the conversation that the model receives, and the first one."""
    asked = questions(messages)
    return ModelResponse(parts=[TextPart(content=f"Question {len(asked)}. You began with: {asked[0]}")])


def questions(messages: list[ModelMessage]) -> list[str]:
    """Return the user's messages."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]


AGENT = Agent(FunctionModel(answer))


async def turn(store: ConversationStore, question: str) -> str:
    """Load the conversation, run a turn, and store it; returns the answer.

    Raises:
        ConversationConflict: Another process stored a turn meanwhile; nothing was stored.
    """
    loaded = await store.load(CONVERSATION, scope=CUSTOMER) or Conversation(conversation_id=CONVERSATION)
    result = await AGENT.run(question, conversation=loaded)
    await store.save(result, scope=CUSTOMER)
    output: str = result.output
    return output
