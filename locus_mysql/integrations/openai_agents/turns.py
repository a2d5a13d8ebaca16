"""Turns of a conversation, and what its items are, as the SDK's own session with branches counts them. No I/O."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...families.transcripts.records import Item

#: Types of items that have no name of a tool: the tool is the type.
NAMELESS = {
    "computer_call", "file_search_call", "web_search_call", "code_interpreter_call", "shell_call", "apply_patch_call",
}  # fmt: skip

#: Types of items that count as a use of a tool.
CALLS = NAMELESS | {
    "tool_call", "function_call", "tool_search_call", "custom_tool_call", "mcp_call", "mcp_approval_request",
}  # fmt: skip

PREVIEW_CHARACTERS = 100


class ItemWithTurn(NamedTuple):
    """An item of a branch, with its turn: the number of messages of the user up to it."""

    turn: int
    item: Item

    @property
    def is_user(self) -> bool:
        """Whether it is a message of the user, with which a turn begins."""
        return is_user(self.item.content)


def with_turns(items: Sequence[Item]) -> Iterator[ItemWithTurn]:
    """Yield all items of a branch with their turns."""
    turn = 0
    for item in items:
        turn += is_user(item.content)
        yield ItemWithTurn(turn, item)


def is_user(content: Any) -> bool:
    """Return whether an item is a message of the user."""
    return isinstance(content, dict) and content.get("role") == "user"


def type_of(content: Any) -> str:
    """Return what an item is: ``user``, ``assistant``, its type, or ``other``."""
    if isinstance(content, dict):
        if content.get("role") in {"user", "assistant"}:
            return str(content["role"])
        if content.get("type"):
            return str(content["type"])
    return "other"


def tool_of(content: Any) -> str | None:
    """Return the tool of a call or of its output; None for other items."""
    if not isinstance(content, dict):
        return None
    kind, name = content.get("type"), content.get("name")
    if kind in {"mcp_call", "mcp_approval_request"} and "server_label" in content:
        return ".".join(str(part) for part in (content["server_label"], name) if part) or None
    if kind in {"tool_search_call", "tool_search_output"}:
        return "tool_search"
    if kind in NAMELESS:
        return str(kind)
    if name is None:
        return None
    namespace = content.get("namespace")
    # The SDK gives a tool outside of any namespace its own name as one.
    return f"{namespace}.{name}" if name and namespace and str(namespace) != str(name) else str(name)


def turns_in(items: Sequence[Item], search_term: str | None = None) -> list[dict[str, Any]]:
    """Return the messages of the user, as the SDK describes them.

    Args:
        items: All items of a branch.
        search_term: Only those that contain this text, whose ASCII letters match in either case.
    """
    wanted = None if search_term is None else re.compile(re.escape(search_term), re.IGNORECASE | re.ASCII)
    found = []
    for turn, item in (one for one in with_turns(items) if one.is_user):
        content = item.content.get("content", "")
        if wanted is not None and not any(wanted.search(text) for text in _texts(content)):
            continue
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        if wanted is None and len(text) > PREVIEW_CHARACTERS:
            text = f"{text[:PREVIEW_CHARACTERS]}..."
        found.append(
            {
                "turn": turn,
                "content": text,
                "full_content": content,
                "timestamp": item.created_at.strftime("%Y-%m-%d %H:%M:%S"),
                "can_branch": True,
            }
        )
    return found


def by_turns(items: Sequence[Item]) -> dict[int, list[dict[str, str | None]]]:
    """Return the type and tool of each item, by turn."""
    turns: dict[int, list[dict[str, str | None]]] = {}
    for turn, item in with_turns(items):
        turns.setdefault(turn, []).append({"type": type_of(item.content), "tool_name": tool_of(item.content)})
    return turns


def tools_in(items: Sequence[Item]) -> list[tuple[str, int, int]]:
    """Return each tool with the number of its calls in a turn, and the turn."""
    counts, outputs = Counter[tuple[int, str | None]](), Counter[tuple[int, str | None]]()
    searched = set[int]()
    for turn, item in with_turns(items):
        kind = type_of(item.content)
        if kind in CALLS:
            counts[turn, tool_of(item.content)] += 1
            searched |= {turn} if kind == "tool_search_call" else set()
        elif kind == "tool_search_output":
            outputs[turn, tool_of(item.content)] += 1
    for (turn, tool), number in outputs.items():
        if turn not in searched:  # an output counts where its call is missing
            counts[turn, tool] += number
    ordered = sorted(counts.items(), key=lambda one: (one[0][0], one[0][1] or ""))
    return [(tool or "", number, turn) for (turn, tool), number in ordered]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
