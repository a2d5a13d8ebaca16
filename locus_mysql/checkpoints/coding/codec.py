"""States as text: a dict of JSON values, encoded field by field, and back.

A state is split into its *head*, the JSON text of the whole with the inside of every top-level list cut out, and its
*logs*, the texts so cut. ``{"a":1,"messages":[{…},{…}]}`` is the head ``{"a":1,"messages":[]}`` with one log
``{…},{…}`` that belongs at the cut. Putting the logs back at the cuts gives the text, so what is loaded is what was
saved, in the same order.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ...errors import CorruptCheckpoint, InvalidInput

#: Levels of nesting that every encoder and decoder used here can take.
NESTING_LIMIT = 200

_JSON_OBJECT = TypeAdapter(dict[str, JsonValue])

#: The longest number that Python reads: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
DIGITS_LIMIT = 4300

_LONG_RUN = re.compile(rb"[0-9]{%d}" % (DIGITS_LIMIT + 1))

#: JSON's escapes cannot tell these two characters from the one they encode together.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class EncodedList(NamedTuple):
    """A list that was encoded elsewhere: its items' JSON text without the brackets."""

    text: bytes
    item_count: int


_NO_ITEMS = EncodedList(b"", 0)

#: Stands for a list while the head is encoded. Random, so no state can hold it.
_PLACEHOLDER = secrets.token_hex(16)


class Log(NamedTuple):
    """One top-level list: its items' JSON text without the brackets."""

    name: str
    cut: int
    text: bytes
    item_count: int


@dataclass(frozen=True, slots=True)
class EncodedState:
    """A state as text, ready to be compared with the one before it."""

    head: bytes
    logs: tuple[Log, ...]

    @property
    def size_bytes(self) -> int:
        """Length of the whole text."""
        return len(self.head) + sum(len(log.text) for log in self.logs)

    def text(self) -> bytes:
        """The whole text."""
        pieces = []
        done = 0
        for log in self.logs:
            pieces += [self.head[done : log.cut], log.text]
            done = log.cut
        return b"".join([*pieces, self.head[done:]])


def check_json_object(value: object, what: str) -> None:
    """Refuse what JSON cannot hold exactly: other types, tuples, keys that are not text, deep nesting.

    Raises:
        InvalidInput: Says where the value stands and what it is, never the value itself.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a dict, not {type(value).__name__}.")
    try:
        _JSON_OBJECT.validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        if problem["type"] == "recursion_loop" or len(problem["loc"]) > 2 * NESTING_LIMIT:
            raise InvalidInput(f"{what} contains itself or is nested deeper than {NESTING_LIMIT} levels.") from None
        place = ".".join(str(part) for part in problem["loc"] if part not in {"dict[str,...]", "list[...]", "[key]"})
        raise InvalidInput(
            f"{what} holds something at {place[:200]!r} that JSON cannot hold exactly. Use dicts with text keys, "
            "lists, text, numbers, booleans and None."
        ) from None


def encode(state: Mapping[str, Any]) -> EncodedState:
    """The text of a state.

    Args:
        state: A dict of JSON values, or of `EncodedList` at the top level.

    Raises:
        InvalidInput: A value has no JSON form, or is nested too deeply.
    """
    fields: dict[str, Any] = {}
    lists: list[tuple[str, EncodedList]] = []
    for name, value in state.items():
        if type(value) is list:
            value = EncodedList(encode_json(value)[1:-1], len(value)) if value else _NO_ITEMS
        if isinstance(value, EncodedList):
            lists.append((name, value))
            value = _PLACEHOLDER
        fields[name] = value
    pieces = encode_json(fields).split(b'"%b"' % _PLACEHOLDER.encode())
    logs = []
    cut = 1
    for (name, items), piece in zip(lists, pieces, strict=False):
        cut += len(piece)
        logs.append(Log(name, cut, items.text, items.item_count))
        cut += len(b"[]")
    return EncodedState(b"[]".join(pieces), tuple(logs))


def encode_json(value: Any) -> bytes:
    """Compact JSON text; ``NaN`` and infinities as JavaScript spells them.

    Lone surrogates have no UTF-8 form: text that holds one is written with ASCII escapes.
    """
    try:
        text = to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return _encode_escaped(value)
    except ValueError:
        raise InvalidInput(f"The state contains itself or is nested deeper than {NESTING_LIMIT} levels.") from None
    if _may_hold_long_number(text):
        try:
            decode_json(text)
        except CorruptCheckpoint:
            raise InvalidInput(
                f"The state holds a number of more than {DIGITS_LIMIT} digits. Keep it as text."
            ) from None
    return text


def _encode_escaped(value: Any) -> bytes:
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        escaped = json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()
        decode_json(escaped)
    except (TypeError, ValueError, RecursionError, CorruptCheckpoint):
        raise InvalidInput(
            f"The state holds a value that JSON cannot hold, or is nested deeper than {NESTING_LIMIT} levels."
        ) from None
    if _SPLIT_PAIR.search(text):
        raise InvalidInput("The state holds two halves of a surrogate pair as two characters; join or remove them.")
    return escaped


def _may_hold_long_number(text: bytes) -> bool:
    """Whether there is a run of digits too long for a number. Such a run covers a place that is looked at."""
    for place in range(DIGITS_LIMIT, len(text), DIGITS_LIMIT):
        if text[place : place + 1].isdigit():
            around = text[place - DIGITS_LIMIT : place + DIGITS_LIMIT + 1]
            if _LONG_RUN.search(around):
                return True
    return False


def decode_json(text: bytes | bytearray) -> Any:
    """The value of a text made by `encode_json`.

    Raises:
        CorruptCheckpoint: The text is not JSON.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        pass  # lone surrogates and more than 200 levels are beyond the fast decoder
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise CorruptCheckpoint("A stored checkpoint is not readable JSON.") from None
