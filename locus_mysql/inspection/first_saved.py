"""When the messages of a conversation were first saved, told by the checkpoints that hold them already. Pure.

Few libraries write into a message when it was said. But a checkpoint was saved at a known time, and tells how many
messages it has and the digest of their text: a state that begins with that text has these messages from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ..errors import InvalidInput
from ..families.checkpoints.coding.codec import Log
from ..families.checkpoints.coding.digests import EMPTY, HashedLog, Mark
from ..runtime.exact_json import encode_json
from .conversation import place_of_messages
from .records import StateView, Turn


def mark_of(items: list[Any]) -> Mark:
    """What a list is told by, as delta coding does; that of an empty one if it holds what JSON cannot."""
    hashed = _hashed(items)
    return EMPTY if hashed is None else hashed.mark


def first_saved(view: StateView, turns: Iterable[Turn]) -> dict[int, datetime]:
    """The times at which messages of a state were first saved, by their places, as far as checkpoints tell.

    A checkpoint tells of the messages that it added to those of the one that it goes on from. If it does not have
    those, its conversation was rewritten, and nobody knows what in it is new.

    Args:
        view: The state.
        turns: Checkpoints of its thread, oldest first.
    """
    place = place_of_messages(view.state)
    said = None
    if place is not None and len(place) == 1:
        stored = view.stored.get(place[0])
        if stored is not None:
            said = HashedLog(Log("", 0, *stored))
        elif isinstance(view.state[place[0]], list):
            said = _hashed(view.state[place[0]])
    if place is None or said is None:
        return {}
    times: dict[int, datetime] = {}
    counts: dict[str, int] = {}
    turns = list(turns)
    hash_prefixes(said, [turn.lists[place[0]] for turn in turns if place[0] in turn.lists])
    for turn in turns:
        mark = turn.lists.get(place[0])
        if mark is None or turn.created_at > view.checkpoint.created_at or not said.begins_with(mark):
            continue
        counts[turn.checkpoint_id] = mark.item_count
        before = 0 if turn.begins else counts.get(turn.parent_id or "")
        if before is not None:
            for message in range(before, mark.item_count):
                times.setdefault(message, turn.created_at)
    return times


def hash_prefixes(said: HashedLog, marks: Iterable[Mark]) -> None:
    """Make the digests of a text that are compared with marks, shortest first: so each byte is hashed once."""
    for mark in sorted(marks):
        said.begins_with(mark)


def _hashed(items: list[Any]) -> HashedLog | None:
    try:
        return HashedLog(Log("", 0, encode_json(items)[1:-1], len(items)))
    except InvalidInput:
        return None
