"""Prints a conversation: messages with their roles, and tool calls with arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...families.inspection.conversation import shown_with_calls
from ...families.inspection.records import Message, PendingWrite, ToolCall
from .command import Clock
from .screen import Screen, Segment, json_text

STYLES: Mapping[str, str] = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "bold yellow",
    "developer": "bold yellow",
    "tool": "bold magenta",
}

#: The maximum number of characters shown of a message, and of the arguments or the result of a call. ``--full`` shows
#: all.
TEXT_LIMIT, TOOL_LIMIT = 4_000, 600

#: The maximum number of characters of a value in one line.
VALUE_LIMIT = 300


def show_messages(screen: Screen, messages: Sequence[Message], clock: Clock, *, full: bool) -> None:
    """Show messages, with the results of tools beside their calls."""
    with_calls = shown_with_calls(messages)
    for index, message in enumerate(messages):
        if index not in with_calls:
            show_message(screen, message, clock, full=full)


def show_message(screen: Screen, message: Message, clock: Clock, *, full: bool, mark: Segment | None = None) -> None:
    """Show one message."""
    marked = () if mark is None else (mark, " ")
    style = (mark.style if mark else "") or STYLES.get(message.role, "bold")
    when = () if message.at is None else (Segment(f"  {clock.time_text(message.at)}", "dim"),)
    screen.line(*marked, Segment(message.role or "unknown", style), *when)
    if message.text:
        screen.block(message.text, limit=None if full else TEXT_LIMIT)
    elif not message.tool_calls:
        screen.block(json_text(message.raw), "dim", limit=None if full else TOOL_LIMIT)
    for call in message.tool_calls:
        _show_call(screen, call, full=full)
    screen.line("")


def show_writes(screen: Screen, writes: Sequence[PendingWrite], *, full: bool) -> None:
    """Show the pending writes of a graph's tasks."""
    screen.line(Segment("pending writes, not yet part of a checkpoint", "bold"))
    for write in writes:
        screen.line("  ", Segment(write.channel, "bold"), Segment(f"  task {write.task_id}", "dim"))
        screen.block(json_text(write.value), indent=4, limit=None if full else TOOL_LIMIT)
    screen.line("")


def one_line(value: Any, *, limit: int | None = VALUE_LIMIT) -> str:
    """Return a JSON value in one line, truncated if it is long."""
    text = value if isinstance(value, str) else json_text(value)
    text = " ".join(text.split())
    return text if limit is None or len(text) <= limit else f"{text[:limit]}…"


def _show_call(screen: Screen, call: ToolCall, *, full: bool) -> None:
    limit = None if full else TOOL_LIMIT
    arrow, back = ("→", "←") if screen.unicode else ("->", "<-")
    known = () if call.call_id is None else (Segment(f"  {call.call_id}", "dim"),)
    screen.line("  ", Segment(f"{arrow} {call.name}", "magenta"), *known)
    if call.arguments is not None and call.arguments != {}:
        screen.block(json_text(call.arguments), indent=4, limit=limit)
    if call.error is not None:
        screen.block(f"{back} failed: {call.error}", "red", indent=4, limit=limit)
    if call.result is not None:
        screen.block(f"{back} {call.result}", "dim", indent=4, limit=limit)
