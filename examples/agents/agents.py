"""The demo's agent: a real Locus agent with a scripted, offline model and two tools of a shop."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locus.agent import Agent
from locus.agent.config import ReflexionConfig
from locus.core.messages import Message, Role
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

ORDER = "Order the espresso machine for Friday."
ASK_NAME = "What is my name?"
ASK_ORDER = "What did I order?"
TEA = "Make it Ceylon tea instead."

#: The tools in the order of their calls. The other process is killed in the second.
CHARGE, COURIER = "charge_card", "book_courier"


def make_agent(
    checkpointer: MySQLCheckpointer, executions: Path, on_call: Callable[[str], None] = lambda _: None
) -> Agent:
    """Return an agent of the shop.

    Args:
        checkpointer: Its memory.
        executions: Each execution of a tool adds a line to this file.
        on_call: Called with the name of each tool when it is executed.
    """

    def note(name: str) -> None:
        with executions.open("a") as file:
            file.write(f"{name}\n")
        on_call(name)

    @tool
    def charge_card(item: str, euros: int) -> str:
        """Charge the customer's card."""
        note(CHARGE)
        return f"receipt R-1: {item}, {euros} euros"

    @tool
    def book_courier(day: str) -> str:
        """Book a courier."""
        note(COURIER)
        return f"comes on {day}"

    return Agent(
        model=FunctionModel(answer),
        tools=[charge_card, book_courier],
        system_prompt="You serve the customers of a coffee shop.",
        checkpointer=checkpointer,
        checkpoint_every_n_iterations=1,
        reflexion=ReflexionConfig(include_guidance=False),
        context_window=1_000_000,
    )


def executed(executions: Path) -> dict[str, int]:
    """Return how often each tool was executed, in any process."""
    names = executions.read_text().split() if executions.exists() else []
    return {name: names.count(name) for name in (CHARGE, COURIER)}


def answer(messages: list[Message], _tools: list[dict[str, Any]]) -> ModelResponse:
    """The scripted model: its next step depends on the conversation only, so any process can continue."""
    asked = max(index for index, message in enumerate(messages) if message.role == Role.USER)
    prompt = messages[asked].content or ""
    steps_done = sum(message.role == Role.ASSISTANT for message in messages[asked:])
    if prompt == ORDER:
        return (
            tool_call(CHARGE, item="espresso machine", euros=249),
            tool_call(COURIER, day="Friday"),
            text("Paid. Your espresso machine comes on Friday."),
        )[steps_done]
    if prompt == ASK_NAME:
        names = re.findall(r"I am (\w+)\.", _said(messages, Role.USER))
        return text(f"Your name is {names[-1]}." if names else "I do not know your name.")
    if prompt == ASK_ORDER:
        receipt = re.search(r"receipt R-1: ([\w ]+), (\d+) euros", _said(messages, Role.TOOL))
        return text(f"The {receipt[1]}, for {receipt[2]} euros." if receipt else "Nothing yet.")
    if prompt == TEA:
        return text("Ceylon tea it is, nothing charged.")
    name = re.search(r"I am (\w+)\.", prompt)
    return text(f"Hello {name[1]}." if name else "How can I help?")


def _said(messages: list[Message], role: Role) -> str:
    return "\n".join(message.content or "" for message in messages if message.role == role)
