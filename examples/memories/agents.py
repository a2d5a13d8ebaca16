"""The agent of the chapter on memories: a real Locus agent and memory manager, with a scripted, offline model."""

from __future__ import annotations

import re
from typing import Any

from locus.agent import Agent
from locus.agent.config import ReflexionConfig
from locus.core.events import RunInfo
from locus.core.messages import Message, Role
from locus.memory.manager import LLMMemoryManager, Memory, MemoryType
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text

from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.memory import MySQLMemory

_FACT = re.compile(r"\bI (drink|live|repair) ([^.]+)\.")
_RECALLED = re.compile(r"USER \[\w+\]: ([^\n]+)")


def make_agent(checkpointer: MySQLCheckpointer, memory: MySQLMemory) -> Agent:
    """Return an agent that keeps facts about its users, and receives the fact that fits each question.

    Args:
        checkpointer: Keeps each conversation.
        memory: Keeps the facts about each user in the user's namespace.
    """
    manager = LLMMemoryManager(
        store=memory, extract_fn=facts_in, retrieve_limit=1, namespace_resolver=lambda run: namespace_of(run)
    )
    return Agent(
        model=FunctionModel(answer),
        system_prompt="You remember what your users tell you.",
        checkpointer=checkpointer,
        memory_manager=manager,
        reflexion=ReflexionConfig(include_guidance=False),
        context_window=1_000_000,
    )


def namespace_of(run: RunInfo) -> tuple[str, ...]:
    """Return the namespace of a run's user."""
    return ("users", str(run.metadata["user"]))


async def facts_in(messages: list[Message]) -> list[Memory]:
    """Extract the facts that users state about themselves; replaces a call of a model."""
    said = [message.content or "" for message in messages if message.role == Role.USER]
    found = {verb: f"The user {verb}s {rest}." for one in said for verb, rest in _FACT.findall(one)}
    return [Memory(MemoryType.USER, verb, fact) for verb, fact in found.items()]


def answer(messages: list[Message], _tools: list[dict[str, Any]]) -> ModelResponse:
    """The scripted model: it answers only with the facts that it receives."""
    prompt = [message.content or "" for message in messages if message.role == Role.USER][-1]
    if _FACT.search(prompt):
        return text("I will remember that.")
    recalled = [fact for message in messages if message.role == Role.SYSTEM for fact in _recalled(message)]
    return text(f"As I recall: {' '.join(recalled)}" if recalled else "I do not know.")


def _recalled(message: Message) -> list[str]:
    return _RECALLED.findall(message.content or "")
