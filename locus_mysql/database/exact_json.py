"""JSON that comes back as it went: values that it can hold exactly, as text, and back."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..errors import CorruptCheckpoint, InvalidInput

#: How many levels of nesting all the encoders and decoders used here can take.
NESTING_LIMIT = 200

_JSON_OBJECT = TypeAdapter(dict[str, JsonValue])

#: The longest number that Python reads: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
DIGITS_LIMIT = 4300

_LONG_RUN = re.compile(rb"[0-9]{%d}" % (DIGITS_LIMIT + 1))

#: Two characters that JSON's escapes cannot tell from the one character that they would stand for together.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


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
