"""What checkpoints show of a thread: what each changed, in a few words, and when messages were saved. Pure functions.

Few libraries store a time in a message. But a checkpoint has the time when it was saved, its number of messages and the
digest of their text: if a state begins with that text, these messages were saved at that time or earlier.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import InvalidInput
from ...records.log_digests import HashedLog, Log, Mark
from ...runtime.exact_json import encode_json
from ...wording import counted
from .conversation import path_of_messages
from .records import Message, StateView, Turn

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


def first_saved(view: StateView, turns: Iterable[Turn]) -> dict[int, datetime]:
    """Return when messages of a state were first saved, by their positions, as far as the checkpoints show it.

    A checkpoint dates the messages that it added to those of its parent. If it does not begin with those, its
    conversation was rewritten, and its new messages are unknown.

    Args:
        view: The state.
        turns: Checkpoints of its thread, oldest first.
    """
    path = path_of_messages(view.state)
    log = None
    if path is not None and len(path) == 1:
        stored = view.stored.get(path[0])
        if stored is not None:
            log = HashedLog(Log("", 0, *stored))
        elif isinstance(view.state[path[0]], list):
            log = _hashed(view.state[path[0]])
    if path is None or log is None:
        return {}
    times: dict[int, datetime] = {}
    counts: dict[str, int] = {}
    turns = list(turns)
    hash_prefixes(log, [turn.lists[path[0]] for turn in turns if path[0] in turn.lists])
    for turn in turns:
        mark = turn.lists.get(path[0])
        if mark is None or turn.created_at > view.checkpoint.created_at or not log.begins_with(mark):
            continue
        counts[turn.checkpoint_id] = mark.item_count
        before = 0 if turn.begins else counts.get(turn.parent_id or "")
        if before is not None:
            for message in range(before, mark.item_count):
                times.setdefault(message, turn.created_at)
    return times


def hash_prefixes(log: HashedLog, marks: Iterable[Mark]) -> None:
    """Compute the digests of a text that are compared with marks, shortest first, so that each byte is hashed once."""
    for mark in sorted(marks):
        log.begins_with(mark)


def _hashed(items: list[Any]) -> HashedLog | None:
    try:
        return HashedLog(Log("", 0, encode_json(items)[1:-1], len(items)))
    except InvalidInput:
        return None
