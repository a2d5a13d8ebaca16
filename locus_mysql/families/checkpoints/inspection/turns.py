"""Turns of a thread for charts and timelines, from the first bytes of its rows. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....dialect.checkpoints.inspection import BeginningRow
from ....errors import CorruptCheckpoint
from ....records.log_digests import EMPTY, Mark
from ....runtime.server_times import aware
from ...inspection.conversation import messages_of, path_of_messages
from ...inspection.records import Turn
from ...inspection.turn_notes import changes_of, note_of
from ..coding.payload import outline
from ..records import decode_state_text
from .previews import partial_state

#: Bytes of a state's small fields that are read for a chart.
HEAD_BYTES = 16_384

#: The fields of states with the numbers that a chart shows, in the order of preference.
CONFIDENCE = ("confidence",)
TOKENS = ("total_tokens_used", "total_tokens", "tokens")
ITERATIONS = ("iteration", "iterations", "step")
CHARTED = frozenset((*CONFIDENCE, *TOKENS, *ITERATIONS))


def turns_of(rows: Iterable[BeginningRow]) -> list[Turn]:
    """Return the turns of checkpoints that are given oldest first."""
    turns: dict[int | None, Turn] = {}
    states: dict[int | None, Mapping[str, Any]] = {}
    for row in rows:
        parent, base = turns.get(row.parent_seq), turns.get(row.base_seq)
        fields = _fields(row)
        turn = _turn(row, None if base is None else base.lists, fields, whole=row.base_seq == row.seq)
        parent_id = None if parent is None else parent.checkpoint_id
        note = _note(row, turn, parent, fields, states.get(row.parent_seq))
        turns[row.seq] = replace(turn, parent_id=parent_id, begins=row.parent_seq is None, note=note)
        states[row.seq] = fields
    return list(turns.values())


def _note(
    row: BeginningRow, turn: Turn, parent: Turn | None, fields: Mapping[str, Any], before: Mapping[str, Any] | None
) -> str:
    """Return what a checkpoint changed, as far as the beginning of its row shows it."""
    if not fields or (parent is None and row.parent_seq is not None):
        return ""
    state = partial_state(row.beginning) or {}
    path = path_of_messages(state)
    count = turn.lists[path[0]].item_count if path and path[0] in turn.lists else 0
    known = parent.lists.get(path[0], EMPTY).item_count if path and parent is not None else 0
    last = messages_of(state)[-1:] if count > known else ()
    return note_of(max(0, count - known), last[0] if last else None, changes_of(before, fields, CHARTED))


def _turn(row: BeginningRow, base: Mapping[str, Mark] | None, fields: Mapping[str, Any], *, whole: bool) -> Turn:
    """Return the turn of a checkpoint.

    Args:
        row: The checkpoint.
        base: The marks of the lists of the row it builds on.
        fields: The small fields of its state.
        whole: Whether it builds on no other row.
    """
    lists: dict[str, Mark] = {}
    try:
        header = outline(row.beginning)
        known = {**(dict.fromkeys(header.lists, EMPTY) if whole else base or {}), **header.marks}
        lists = {name: known[name] for name in header.lists if name in known}
    except CorruptCheckpoint:
        pass
    tokens, iterations = _number(fields, TOKENS), _number(fields, ITERATIONS)
    return Turn(
        checkpoint_id=row.checkpoint_id,
        created_at=aware(row.created_at),
        confidence=_number(fields, CONFIDENCE),
        tokens=None if tokens is None else int(tokens),
        iterations=None if iterations is None else int(iterations),
        lists=lists,
    )


def _fields(row: BeginningRow) -> Mapping[str, Any]:
    """Return a state without the items of its lists; empty if the row's beginning does not contain it."""
    try:
        head = outline(row.beginning).head
        return {} if head is None else decode_state_text(head, "")
    except CorruptCheckpoint:
        return {}


def _number(fields: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """Return the first of these fields that is a number."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and -1e18 < value < 1e18:
            return value
    return None
