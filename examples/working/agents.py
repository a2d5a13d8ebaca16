"""The agent of the chapter on working memory: a real Locus agent, whose scripted model uses only its session."""

from __future__ import annotations

import json
from typing import Any

from locus.agent import Agent
from locus.core.messages import Message, Role
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call

from locus_mysql.families.working.store import WorkingMemory
from locus_mysql.integrations.locus.working import WorkingMemoryHook, working_memory_tools

BEGIN, TRAIN, HOTEL, TICKETS = "Book a trip to Bonn.", "Find a train.", "And a hotel.", "Buy all of it."

#: The tools that the model calls for each prompt, one after another.
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    BEGIN: [
        ("begin_task", {"description": "A trip to Bonn", "total_steps": 3}),
        ("note", {"text": "She wants a window seat."}),
    ],
    TRAIN: [
        ("remember", {"key": "train", "value": {"number": "ICE 105", "seat": "61, window"}}),
        ("note", {"text": "ICE 105 has a window seat left."}),
        ("update_task", {"description": "Train found"}),
    ],
    HOTEL: [
        ("remember", {"key": "hotel", "value": {"name": "Rheinblick", "nights": 2}}),
        ("note", {"text": "Rheinblick is near the station."}),
        ("update_task", {"description": "Hotel found"}),
    ],
    TICKETS: [
        ("recall", {"key": "train"}),
        ("recall", {"key": "hotel"}),
        ("note", {"text": "Paid."}),
        ("update_task", {"status": "completed", "description": "Booked"}),
    ],
}


def make_agent(memory: WorkingMemory) -> Agent:
    """Return an agent without a conversation: its knowledge of the task is in its working memory.

    Args:
        memory: The session.
    """
    return Agent(
        model=FunctionModel(answer),
        system_prompt="You book trips.",
        tools=working_memory_tools(memory),
        hooks=[WorkingMemoryHook(memory)],
        context_window=1_000_000,
    )


def answer(messages: list[Message], _tools: list[dict[str, Any]]) -> ModelResponse:
    """The scripted model: it calls the tools of the prompt, then reports the content of its working memory."""
    index = next(index for index, message in enumerate(messages) if message.content in CALLS)
    calls = CALLS[messages[index].content or ""]
    done = sum(message.role == Role.TOOL for message in messages[index:])
    if done < len(calls):
        name, arguments = calls[done]
        return tool_call(name, **arguments)
    return text(_summary_of(messages[-1].content or ""))


def _summary_of(block: str) -> str:
    """Return the content of the working memory's block as a sentence."""
    lines = [json.loads(line) for line in block.splitlines() if line.startswith("{")]
    notes = [line["note"] for line in lines if "note" in line]
    for task in (line["task"] for line in lines if "task" in line):
        steps = f"step {task['current_step']} of {task['total_steps']}"
        return f"{task['description']}, {steps}. Noted last, of {len(notes)}: {notes[-1]}"
    return "I know of no task."
