"""What a checkpoint changed, in a few words, for a timeline. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...runtime.counting import counted
from .records import Message

#: Characters of a message, of a value and of a whole note; and changes that are named.
MESSAGE_CHARACTERS, VALUE_CHARACTERS, NOTE_CHARACTERS, CHANGES = 90, 24, 200, 3

#: Fields of Locus that change with every save or run, and are not named.
NOT_NAMED = frozenset({"updated_at", "started_at", "run_id", "prompt_tokens_used", "completion_tokens_used"})


def note_of(added: int, last: Message | None, changes: Sequence[str] = ()) -> str:
    """Return the note of a checkpoint.

    Args:
        added: The number of messages that it added.
        last: The last one, if known.
        changes: Its other changes, in words.
    """
    pieces = []
    summary = "" if last is None else _summary_of(last)
    if added > 1 or (added and not summary):
        pieces.append(f"+{counted(added, 'message')}")
    if summary:
        pieces.append(summary)
    pieces += changes[:CHANGES]
    if len(changes) > CHANGES:
        pieces.append(f"{len(changes) - CHANGES} more")
    return " \u00b7 ".join(pieces)[:NOTE_CHARACTERS]


def changes_of(
    before: Mapping[str, Any] | None, after: Mapping[str, Any], left_out: frozenset[str] = frozenset()
) -> list[str]:
    """Return the changed fields of a state without the items of its lists, in words.

    Args:
        before: The fields of its parent; None if they are unknown.
        after: Its fields.
        left_out: Fields that a timeline or a chart shows elsewhere.
    """
    if before is None:
        return []
    named = []
    for name, value in after.items():
        if (
            name in NOT_NAMED
            or name in left_out
            or isinstance(value, list)
            or (name in before and before[name] == value)
        ):
            continue
        named.append(name if isinstance(value, Mapping) else f"{name} {_value(value)}")
    return named + [f"no {name}" for name in before if name not in after]


def _summary_of(message: Message) -> str:
    """Return a message in a few words: its text, or the tools that it calls."""
    text = " ".join(message.text[: 4 * MESSAGE_CHARACTERS].split())
    if len(text) > MESSAGE_CHARACTERS:
        text = text[: MESSAGE_CHARACTERS - 1] + "\u2026"
    if message.tool_calls and not text:
        return f"calls {', '.join(call.name[:VALUE_CHARACTERS] for call in message.tool_calls[:3])}"
    return f"{message.role}: {text}" if text else ""


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text[: 4 * VALUE_CHARACTERS].split())
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "\u2026"
