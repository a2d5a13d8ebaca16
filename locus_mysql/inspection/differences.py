"""Compares two states, message by message and field by field, and two texts word by word. Pure functions.

Lists are compared by their common items (see `alignment`). Of the other items, similar ones are reported as changed,
the others as removed and added. The number of comparisons has a limit. Of states of very many values, only the upper
levels are compared, and long lists and objects as a whole. Conversations of very many messages are compared as fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, Literal, NamedTuple, TypeAlias

from ..families.inspection.conversation import count_messages, messages_of, path_of_messages
from ..families.inspection.records import Difference, FieldChange, Message, MessageChange, StateView
from .alignment import ComparisonBudget, Keys, common, pairs

#: Most changes of fields that are reported.
FIELDS_LIMIT = 1_000

#: Greatest depth of compared fields. Deeper values are compared as a whole.
DEPTH_LIMIT = 50

#: Most values of two states, arrays and objects included, that are compared in full; and beyond it, the greatest depth,
#: and the most items of lists and objects together, that are compared one by one.
VALUES_LIMIT, COARSE_DEPTH, COARSE_ITEMS = 400_000, 3, 40_000

#: Most messages of two states that are compared one by one. More are compared like every other list: to recognise a
#: message takes ten times as long as to read it.
MESSAGES_LIMIT = 100_000

#: First characters of a message that decide whether it is a changed version of another one.
COMPARED_CHARACTERS = 2_000

#: Fraction of the words, or of the fields, that two items must share for one to be a changed version of the other.
COMMON_SHARE = 0.5

#: Fields of Locus' states that are sets: their order in JSON is arbitrary and differs between processes.
SETS = ("tool_loop_read_only_tools", "terminal_tools")

_WORDS = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d][\w-]*")

#: Characters of texts that are compared; longer ones are shown whole.
LONGEST = 20_000

#: Characters of unchanged text shown on each side of a change, and the length from which the rest is folded.
AROUND, FOLDED_FROM = 80, 240

#: A line, and a word, a run of blanks or a sign.
_LINES = re.compile(r"[^\n]*\n|[^\n]+")

_TOKENS = re.compile(r"\w+|[^\S\n]+|[^\w]")

PieceKind: TypeAlias = Literal["same", "removed", "added", "folded"]


class _Comparing:
    """Intermediate results and the remaining budget of a comparison of two values."""

    def __init__(self, before: Any, after: Any) -> None:
        self._items_left = COARSE_ITEMS
        self._is_large = _has_more_values((before, after), VALUES_LIMIT)
        self.keys = Keys(whole=self._is_large)
        self.budget = ComparisonBudget()
        self.words: dict[int, frozenset[str]] = {}

    def may_divide(self, before: Sized, after: Sized, depth: int) -> bool:
        """Return whether the items of two lists or objects may be compared one by one."""
        if depth >= DEPTH_LIMIT:
            return False
        if not self._is_large:
            return True
        size = len(before) + len(after)
        may = depth < COARSE_DEPTH and size <= self._items_left
        self._items_left -= size if may else 0
        self.budget.used_up = self.budget.used_up or not may
        return may


def difference(before: StateView, after: StateView) -> Difference:
    """Return the changes from one state of a thread to another one. The messages of the views are not used."""
    comparing = _Comparing(before.state, after.state)
    too_many = count_messages(before.state) + count_messages(after.state) > MESSAGES_LIMIT
    messages = [] if too_many else _message_changes(messages_of(before.state), messages_of(after.state), comparing)
    fields: list[FieldChange] = []
    cut = False
    one, other = (_compared(view.state, with_messages=too_many) for view in (before, after))
    for change in _field_changes(one, other, "", 0, comparing):
        if cut := len(fields) == FIELDS_LIMIT:
            break
        fields.append(change)
    coarse = comparing.budget.used_up
    return Difference(before.thread_id, before.checkpoint, after.checkpoint, messages, fields, cut, coarse)


def _message_changes(before: Sequence[Message], after: Sequence[Message], comparing: _Comparing) -> list[MessageChange]:
    keys = [comparing.keys.of(message.raw) for message in before]
    other_keys = [comparing.keys.of(message.raw) for message in after]

    def is_changed(index: int, other: int) -> bool:
        return _is_changed(before[index], after[other], comparing.words)

    changes = []
    for index, other in pairs(keys, other_keys, is_changed, comparing.budget):
        if index is None:
            changes.append(MessageChange("added", None, None if other is None else after[other]))
        elif other is None:
            changes.append(MessageChange("removed", before[index], None))
        else:
            same = keys[index] == other_keys[other]
            changes.append(MessageChange("same" if same else "changed", before[index], after[other]))
    return changes


def _field_changes(before: Any, after: Any, path: str, depth: int, comparing: _Comparing) -> Iterator[FieldChange]:
    """Compare the values at a path."""
    if comparing.keys.of(before) == comparing.keys.of(after):
        return
    both_objects = isinstance(before, Mapping) and isinstance(after, Mapping)
    both_lists = isinstance(before, list) and isinstance(after, list)
    if not (both_objects or both_lists) or not comparing.may_divide(before, after, depth):
        yield FieldChange(path, "changed", before, after)
    elif both_objects:
        for name in [*before, *(name for name in after if name not in before)]:
            field_path = _under(path, name)
            if name not in after:
                yield FieldChange(field_path, "removed", before[name], None)
            elif name not in before:
                yield FieldChange(field_path, "added", None, after[name])
            else:
                yield from _field_changes(before[name], after[name], field_path, depth + 1, comparing)
    else:
        yield from _changes_of_list(before, after, path, depth, comparing)


def _changes_of_list(
    before: Sequence[Any], after: Sequence[Any], path: str, depth: int, comparing: _Comparing
) -> Iterator[FieldChange]:
    """Return the path of an item: of a removed one with its position in the earlier list, else in the later one."""

    def is_changed(index: int, other: int) -> bool:
        return _resembles(before[index], after[other], comparing)

    keys, other_keys = list(map(comparing.keys.of, before)), list(map(comparing.keys.of, after))
    for index, other in pairs(keys, other_keys, is_changed, comparing.budget):
        if other is None:
            yield FieldChange(f"{path}[{index}]", "removed", None if index is None else before[index], None)
        elif index is None:
            yield FieldChange(f"{path}[{other}]", "added", None, after[other])
        else:
            yield from _field_changes(before[index], after[other], f"{path}[{other}]", depth + 1, comparing)


def _has_more_values(values: Sequence[Any], limit: int) -> bool:
    """Return whether values hold more than this number of values together, in time proportional to the limit."""
    waiting, count = list(values), 0
    while waiting and count <= limit:
        value = waiting.pop()
        if isinstance(value, Mapping | list) and (count := count + len(value)) <= limit:
            waiting += value.values() if isinstance(value, Mapping) else value
    return count > limit


def _is_changed(before: Message, after: Message, words: dict[int, frozenset[str]]) -> bool:
    """Return whether a message is a changed version of another one."""
    if before.role != after.role:
        return False
    one, other = _id_of(before), _id_of(after)
    if one is not None and other is not None:
        return one == other
    one_text, other_text = before.text[:COMPARED_CHARACTERS], after.text[:COMPARED_CHARACTERS]
    if one_text == other_text or (one_text and other_text.startswith(one_text)):
        return True
    for message in (before, after):
        if id(message) not in words:
            words[id(message)] = frozenset(_WORDS.findall(message.text[:COMPARED_CHARACTERS].casefold()))
    return _share(words[id(before)], words[id(after)]) >= COMMON_SHARE


def _id_of(message: Message) -> str | None:
    """Return the id that a framework gave a message."""
    found = message.raw.get("id") if isinstance(message.raw, Mapping) else None
    return found if isinstance(found, str) and found else None


def _resembles(before: Any, after: Any, comparing: _Comparing) -> bool:
    """Return whether an item is a changed version of another one: an object with common fields, or of the same type."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if not comparing.budget.may_compare(len(before) // 8):
            return False
        keys = comparing.keys
        same = sum(name in after and keys.of(before[name]) == keys.of(after[name]) for name in before)
        return same >= COMMON_SHARE * max(len(before), len(after))
    return isinstance(before, list) == isinstance(after, list) and isinstance(before, Mapping) == isinstance(
        after, Mapping
    )


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    whole = len(one | other)
    return len(one & other) / whole if whole else 0.0


def _under(path: str, name: str) -> str:
    """Return the path of a field below a path."""
    if _IDENTIFIER.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


def _compared(state: Mapping[str, Any], *, with_messages: bool) -> Mapping[str, Any]:
    """Return a state with sorted sets, with or without its conversation."""
    messages_path = None if with_messages else path_of_messages(state)
    fields = state if messages_path is None else _without(state, messages_path)
    return {**fields, **{name: sorted(fields[name]) for name in SETS if _is_of_texts(fields.get(name))}}


def _is_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _without(state: Mapping[str, Any], messages_path: Sequence[str]) -> Mapping[str, Any]:
    name, *more = messages_path
    if not more:
        return {key: value for key, value in state.items() if key != name}
    return {key: _without(value, more) if key == name else value for key, value in state.items()}


class Piece(NamedTuple):
    """A part of two texts.

    Args:
        kind: Whether both have it, or only the first or the second one; ``folded`` is unchanged and left out.
        text: The text.
    """

    kind: PieceKind
    text: str


def text_changes(before: str, after: str) -> Sequence[Piece] | None:
    """Return the changes from one text to another; None if they are too long or have nothing in common."""
    if max(len(before), len(after)) > LONGEST:
        return None
    budget = ComparisonBudget()
    pieces = []
    for piece in _changes(_LINES.findall(before), _LINES.findall(after), budget):
        kind, old, new = piece
        if kind == "same" or not old or not new:
            pieces += [Piece("same", old)] if kind == "same" else _replaced(old, new)
        else:  # changed lines are compared word by word
            for inner, was, now in _changes(_TOKENS.findall(old), _TOKENS.findall(new), budget):
                pieces += [Piece("same", was)] if inner == "same" else _replaced(was, now)
    pieces = _joined(pieces)
    same = sum(len(piece.text) for piece in pieces if piece.kind == "same")
    if 4 * same < min(len(before), len(after)):
        return None
    return [made for at, piece in enumerate(pieces) for made in _folded(piece, at == 0, at == len(pieces) - 1)]


def _changes(
    before: Sequence[str], after: Sequence[str], budget: ComparisonBudget
) -> list[tuple[Literal["same", "changed"], str, str]]:
    """Return the common and the different runs of two lists of texts, joined."""
    runs: list[tuple[Literal["same", "changed"], str, str]] = []
    index = other = 0
    same: list[str] = []
    for at, counterpart in [*common(before, after, budget), (len(before), len(after))]:
        if at > index or counterpart > other or at == len(before):
            if same:
                runs.append(("same", "".join(same), ""))
                same = []
            old, new = "".join(before[index:at]), "".join(after[other:counterpart])
            if old or new:
                runs.append(("changed", old, new))
        if at < len(before):
            same.append(before[at])
        index, other = at + 1, counterpart + 1
    return runs


def _replaced(old: str, new: str) -> list[Piece]:
    return [Piece(kind, text) for kind, text in (("removed", old), ("added", new)) if text]  # type: ignore[arg-type]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join unchanged pieces that follow each other."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.kind == joined[-1].kind == "same":
            joined[-1] = Piece("same", joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def _folded(piece: Piece, first: bool, last: bool) -> list[Piece]:
    """Return a piece; of a long unchanged one only its ends next to changes."""
    if piece.kind != "same" or len(piece.text) < FOLDED_FROM:
        return [piece]
    begin, end = 0 if first else AROUND, len(piece.text) - (0 if last else AROUND)
    ends = Piece("same", piece.text[:begin]), Piece("same", piece.text[end:])
    return [one for one in (ends[0], Piece("folded", piece.text[begin:end]), ends[1]) if one.text]
