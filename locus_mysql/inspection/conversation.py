"""Messages in states: recognising conversations, whoever saved them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .records import Message


def messages_of(state: Mapping[str, Any]) -> Sequence[Message]:
    """The conversation in a state, oldest first; empty if none can be recognised."""
    found = state.get("messages")
    if not isinstance(found, list):
        return ()
    return [
        Message(str(one.get("role", "")), one["content"] if isinstance(one.get("content"), str) else "", None, (), one)
        for one in found
        if isinstance(one, dict)
    ]
