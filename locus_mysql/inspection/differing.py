"""What changed between two states: message by message, and field by field. Pure functions.

Two lists are compared by what they have in common (see `aligning`). What is left over in between is told as changed
where the two sides resemble each other, else as removed and added. How many items are compared for that is limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .aligning import Keys, Work, pairs
from .conversation import place_of_messages
from .records import Difference, FieldChange, Message, MessageChange, StateView

#: Changes of fields that are told at most.
FIELDS_LIMIT = 1_000

#: How deep fields are looked into; what is deeper is told as a whole.
DEPTH_LIMIT = 50

#: Characters of a message by which it is told whether it is another one or the same one changed.
COMPARED_CHARACTERS = 2_000

#: Of the words, or fields, of two, this share is common if one is the other one changed.
COMMON_SHARE = 0.5

#: Fields of Locus' states that are sets: their order in JSON is chance, and another one in each process.
SETS = ("tool_loop_read_only_tools", "terminal_tools")

_WORDS = re.compile(r"\w+")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


class _Comparing:
    """What comparing two states has found out already, and what it may still take."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.work = Work()
        self.words: dict[int, frozenset[str]] = {}


def difference(before: StateView, after: StateView) -> Difference:
    """What changed from one state of a thread to another one."""
    comparing = _Comparing()
    messages = _message_changes(before.messages, after.messages, comparing)
    fields: list[FieldChange] = []
    cut = False
    one, other = _compared(before.state), _compared(after.state)
    for change in _field_changes(one, other, "", 0, comparing):
        if cut := len(fields) == FIELDS_LIMIT:
            break
        fields.append(change)
    coarse = comparing.work.used_up
    return Difference(before.thread_id, before.checkpoint, after.checkpoint, messages, fields, cut, coarse)


def message_changes(before: Sequence[Message], after: Sequence[Message]) -> list[MessageChange]:
    """What became of each message, in the order of the conversation."""
    return _message_changes(before, after, _Comparing())


def _message_changes(before: Sequence[Message], after: Sequence[Message], comparing: _Comparing) -> list[MessageChange]:
    keys = [comparing.keys.of(message.raw) for message in before]
    other_keys = [comparing.keys.of(message.raw) for message in after]

    def is_changed(place: int, other: int) -> bool:
        return _is_changed(before[place], after[other], comparing.words)

    changes = []
    for place, other in pairs(keys, other_keys, is_changed, comparing.work):
        if place is None:
            changes.append(MessageChange("added", None, None if other is None else after[other]))
        elif other is None:
            changes.append(MessageChange("removed", before[place], None))
        else:
            same = keys[place] == other_keys[other]
            changes.append(MessageChange("same" if same else "changed", before[place], after[other]))
    return changes


def field_changes(before: Any, after: Any) -> Iterator[FieldChange]:
    """What became of each field that is not the same, in the order of the state before, new ones last.

    Args:
        before: A JSON value.
        after: Another.
    """
    return _field_changes(before, after, "", 0, _Comparing())


def _field_changes(before: Any, after: Any, path: str, depth: int, comparing: _Comparing) -> Iterator[FieldChange]:
    """The same of values at a path."""
    if comparing.keys.of(before) == comparing.keys.of(after):
        return
    if depth < DEPTH_LIMIT and isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            place = _under(path, name)
            if name not in after:
                yield FieldChange(place, "removed", before[name], None)
            elif name not in before:
                yield FieldChange(place, "added", None, after[name])
            else:
                yield from _field_changes(before[name], after[name], place, depth + 1, comparing)
    elif depth < DEPTH_LIMIT and isinstance(before, list) and isinstance(after, list):
        yield from _changes_of_list(before, after, path, depth, comparing)
    else:
        yield FieldChange(path, "changed", before, after)


def _changes_of_list(
    before: Sequence[Any], after: Sequence[Any], path: str, depth: int, comparing: _Comparing
) -> Iterator[FieldChange]:
    """Where an item is removed, its place is that in the list before; else it is that in the list after."""

    def is_changed(place: int, other: int) -> bool:
        return _resembles(before[place], after[other], comparing)

    keys, other_keys = list(map(comparing.keys.of, before)), list(map(comparing.keys.of, after))
    for place, other in pairs(keys, other_keys, is_changed, comparing.work):
        if other is None:
            yield FieldChange(f"{path}[{place}]", "removed", None if place is None else before[place], None)
        elif place is None:
            yield FieldChange(f"{path}[{other}]", "added", None, after[other])
        else:
            yield from _field_changes(before[place], after[other], f"{path}[{other}]", depth + 1, comparing)


def _is_changed(before: Message, after: Message, words: dict[int, frozenset[str]]) -> bool:
    """Whether a message is another one changed, rather than one that has nothing to do with it."""
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
    """The id that a framework gave a message."""
    found = message.raw.get("id") if isinstance(message.raw, Mapping) else None
    return found if isinstance(found, str) and found else None


def _resembles(before: Any, after: Any, comparing: _Comparing) -> bool:
    """Whether an item of a list is another one changed: an object with fields in common, or a value of its type."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if not comparing.work.may_compare(len(before) // 8):
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
    """The path of a field of what stands at a path."""
    if _PLAIN_KEY.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


def _compared(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """A state without its conversation, its sets in order."""
    place = place_of_messages(state)
    fields = state if place is None else _without(state, place)
    return {**fields, **{name: sorted(fields[name]) for name in SETS if _is_of_texts(fields.get(name))}}


def _is_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _without(state: Mapping[str, Any], place: Sequence[str]) -> Mapping[str, Any]:
    name, *more = place
    if not more:
        return {key: value for key, value in state.items() if key != name}
    return {key: _without(value, more) if key == name else value for key, value in state.items()}
