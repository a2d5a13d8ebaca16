"""An agent with memory and persistent steps, whose model is scripted, so that the chapter needs none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import Memory
from pydantic_ai_harness.step_persistence import StepPersistence

from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, PydanticStepStore
from locus_mysql.runtime.database import Database

CONVERSATION, CUSTOMER = "router-7", "ada"
NOTE = "- The customer's router is a Lynx 7."


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Note the router, restart it, and answer; a later conversation searches the notes."""
    question = questions(messages)[-1]
    done = tools_used(messages)
    if question.startswith("Restart") and len(done) < 2:
        call = ToolCallPart("write_memory", {"content": NOTE}) if not done else ToolCallPart("restart", {})
        return ModelResponse(parts=[call])
    if question.startswith("Which") and not done:
        return ModelResponse(parts=[ToolCallPart("search_memory", {"query": "router"})])
    return ModelResponse(parts=[TextPart(content=f"Done, after {' and '.join(done)}.")])


def questions(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the user's messages, without the memory that the framework adds to them."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part.content for part in parts if isinstance(part, UserPromptPart) and isinstance(part.content, str)]


def tools_used(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the names of the tools that have returned."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part.tool_name for part in parts if isinstance(part, ToolReturnPart)]


def make_agent(database: Database, *, hangs: bool = False) -> Agent[None, str]:
    """Return the agent.

    Args:
        database: Where it stores its memory and its steps.
        hangs: Whether the tool that restarts the router reports itself and never returns.
    """
    memory = Memory(PydanticMemoryStore(database), namespace=CUSTOMER)
    steps = StepPersistence(store=PydanticStepStore(database), agent_name="support")
    agent: Agent[None, str] = Agent(FunctionModel(answer), capabilities=[memory, steps])

    @agent.tool_plain
    async def restart() -> str:
        """Restart the customer's router."""
        if hangs:
            print('{"event": "restarting"}', flush=True)
            await asyncio.Event().wait()
        return "restarted"

    return agent
