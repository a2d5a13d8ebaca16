"""JSON that comes back as it went: values that it can hold exactly, as text, and back."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..errors import CorruptCheckpoint, InvalidInput

#: Types whose every value JSON can hold.
_SCALARS = frozenset({bool, int, float, str})

#: How many levels of nesting all the encoders and decoders used here can take.
NESTING_LIMIT = 200

#: MySQL reads JSON that is nested this deep at most: https://dev.mysql.com/doc/refman/9.0/en/json.html
SERVER_DEPTH_LIMIT = 100

#: MySQL reads whole numbers beyond 64 bits as floats, which end at 2 to the power of 1,024.
SERVER_NUMBER_BITS = 1_023

_JSON_OBJECT = TypeAdapter(dict[str, JsonValue])
_JSON = TypeAdapter(JsonValue)

#: The longest number that Python reads: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
DIGITS_LIMIT = 4300

_DIGITS = b"0123456789"

#: Two characters that JSON's escapes cannot tell from the one character that they would stand for together.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def check_json_object(value: object, what: str) -> None:
    """Refuse what JSON cannot hold exactly: other types, tuples, keys that are not text, deep nesting.

    Raises:
        InvalidInput: Says where the value stands and what it is, never the value itself.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a dict, not {type(value).__name__}.")
    _check(_JSON_OBJECT, value, what, tagged=False)


def check_json(value: object, what: str) -> None:
    """The same of any value that JSON can hold.

    Raises:
        InvalidInput: As there.
    """
    if value is None or type(value) in _SCALARS:
        return
    _check(_JSON, value, what, tagged=True)


def _check(of: TypeAdapter[Any], value: object, what: str, *, tagged: bool) -> None:
    try:
        of.validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        if problem["type"] == "recursion_loop" or len(problem["loc"]) > 2 * NESTING_LIMIT:
            raise InvalidInput(f"{what} contains itself or is nested deeper than {NESTING_LIMIT} levels.") from None
        place = _place(problem["loc"], tagged=tagged)
        holds = f"{what} holds something at {place[:200]!r}" if place else f"{what} is {type(value).__name__},"
        raise InvalidInput(
            f"{holds} that JSON cannot hold exactly. Use dicts with text keys, lists, text, numbers, booleans and None."
        ) from None


def _place(location: tuple[str | int, ...], *, tagged: bool) -> str:
    """Where a value stands, without the names of types that pydantic puts before keys.

    Args:
        location: As pydantic tells it.
        tagged: Whether it begins with the name of a type.
    """
    parts = []
    for part in location:
        if tagged and part in {"dict", "list"}:
            tagged = False
        elif part != "[key]":
            parts.append(str(part))
            tagged = True
    return ".".join(parts)


def encode_json(value: Any) -> bytes:
    """Compact JSON text, with ``NaN`` and infinities spelled as in JavaScript.

    A lone surrogate has no form in UTF-8, so a text that holds one is written with ASCII escapes.
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
    """Whether there may be too many digits for a number. So long a run covers one of the places that are looked at."""
    for place in range(DIGITS_LIMIT, len(text), DIGITS_LIMIT):
        if text[place : place + 1].isdigit():
            before, behind = text[place - DIGITS_LIMIT : place], text[place : place + DIGITS_LIMIT + 1]
            run = len(before) - len(before.rstrip(_DIGITS)) + len(behind) - len(behind.lstrip(_DIGITS))
            if run > DIGITS_LIMIT:
                return True
    return False


def queryable_json(value: dict[str, Any]) -> str | None:
    """A JSON object as text that MySQL can be asked about, or None.

    MySQL's functions fail, for all rows of a query, where one row holds NaN, an infinity, a lone surrogate, a number
    beyond a float's range, or more than 100 levels.

    Args:
        value: A dict that `check_json_object` accepts.
    """
    if not _within_server_limits(value):
        return None
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        return None
    return text


def _within_server_limits(value: Any) -> bool:
    """Whether MySQL can read a value's levels and whole numbers."""
    pending = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        if isinstance(part, int):
            if part.bit_length() > SERVER_NUMBER_BITS:
                return False
        elif isinstance(part, dict | list):
            if depth > SERVER_DEPTH_LIMIT:
                return False
            pending += [(inner, depth + 1) for inner in (part.values() if isinstance(part, dict) else part)]
    return True


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
