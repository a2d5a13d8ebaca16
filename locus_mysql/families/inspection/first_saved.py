"""When each message of a conversation was first saved, found by the checkpoints that contain it. Pure functions.

Few libraries store a time in a message. But a checkpoint has the time when it was saved, its number of messages and the
digest of their text: if a state begins with that text, these messages were saved at that time or earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ...errors import InvalidInput
from ...records.log_digests import EMPTY, HashedLog, Log, Mark
from ...runtime.exact_json import encode_json
from .conversation import path_of_messages
from .records import StateView, Turn


def mark_of(items: list[Any]) -> Mark:
    """Return the mark of a list, as in delta coding; the mark of an empty list if it has values that JSON lacks."""
    hashed = _hashed(items)
    return EMPTY if hashed is None else hashed.mark


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
