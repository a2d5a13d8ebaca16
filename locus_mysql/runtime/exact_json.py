"""Lossless JSON: checks values that JSON can represent exactly, encodes and decodes them, and lists their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..errors import CorruptCheckpoint, InvalidInput

#: Types all of whose values JSON can represent.
_SCALARS = frozenset({bool, int, float, str})

#: What `_is_plain` looks at: types, levels of nesting, and values on one level.
_TEXT = frozenset({str})
_PLAIN = frozenset({*_SCALARS, type(None)})
_NESTED = frozenset({*_PLAIN, dict, list})
_PLAIN_LEVELS, _PLAIN_VALUES = 8, 100_000

#: Maximum nesting depth that all encoders and decoders used here support.
NESTING_LIMIT = 200

#: Maximum nesting depth of JSON in MySQL: https://dev.mysql.com/doc/refman/9.0/en/json.html
SERVER_DEPTH_LIMIT = 100

#: MySQL reads whole numbers beyond 64 bits as floats, which end at 2 to the power of 1,024.
SERVER_NUMBER_BITS = 1_023

_JSON = TypeAdapter(JsonValue)

#: The longest number that Python reads: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
DIGITS_LIMIT = 4300

_DIGITS = b"0123456789"

#: Two characters whose JSON escapes are those of the one character that they form together.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})


def check_json_object(value: object, what: str) -> None:
    """Check a dict that JSON must represent exactly: no other types, tuples, keys that are not text, or deep nesting.

    Raises:
        InvalidInput: It has such a value. The message has the path and the type, never the value itself.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a dict, not {type(value).__name__}.")
    if not _is_plain(value):
        _check(value, what)


def check_json(value: object, what: str) -> None:
    """Check any value that JSON must represent exactly.

    Raises:
        InvalidInput: As there.
    """
    if value is None or type(value) in _SCALARS:
        return
    _check(value, what)


def _is_plain(value: dict[Any, Any]) -> bool:
    """Return whether a dict is one that `_check` accepts, in less than its time; False also if that is not certain.

    It looks at one level of the nesting after another, so that most of the work is done by `map`.
    """
    level: list[Any] = [value]
    for _ in range(_PLAIN_LEVELS):
        kinds = set(map(type, level))
        if kinds <= _PLAIN:
            return True
        if not kinds <= _NESTED or len(level) > _PLAIN_VALUES:
            return False
        keys: list[Any] = []
        inner: list[Any] = []
        for part in level:
            if type(part) is dict:
                keys += part
                inner += part.values()
            elif type(part) is list:
                inner += part
        if not set(map(type, keys)) <= _TEXT:
            return False
        level = inner
    return False


def _check(value: object, what: str) -> None:
    try:
        _JSON.validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        if problem["type"] == "recursion_loop" or len(problem["loc"]) > 2 * NESTING_LIMIT:
            raise InvalidInput(f"{what} contains itself or is nested deeper than {NESTING_LIMIT} levels.") from None
        refused = _refused(problem["loc"], value, of_key=problem["type"] == "string_type")
        raise InvalidInput(
            f"{what} {refused}, which JSON cannot hold exactly. Use dicts with text keys, lists, text, numbers, "
            "booleans and None."
        ) from None


def _refused(location: tuple[str | int, ...], value: object, *, of_key: bool) -> str:
    """Return the clause that names the path and the type of a refused value or key.

    Args:
        location: As pydantic reports it; that of a key ends with ``[key]``.
        value: The value that was checked.
        of_key: Whether a key was refused.
    """
    path = _path(location[:-1] if of_key else location)
    for part in path[:-1] if of_key else path:
        value = value[part]  # type: ignore[index]  # pydantic has found a dict or a list there
    if of_key:
        value = next(key for key in cast(dict[object, object], value) if not isinstance(key, str))
    where = ".".join(map(str, path))
    kind = type(value).__name__
    return f"holds a {'key' if of_key else 'value'} of type {kind} at {where[:200]!r}" if path else f"is of type {kind}"


def _path(location: tuple[str | int, ...]) -> list[str | int]:
    """Return the path of a value, without the names of types that pydantic puts before keys."""
    parts: list[str | int] = []
    tagged = True
    for part in location:
        if tagged and part in {"dict", "list"}:
            tagged = False
        else:
            parts.append(part)
            tagged = True
    return parts


def as_json(value: object, what: str) -> Any:
    """Return a value as Python's encoder would return it again: tuples become lists, keys become text.

    Raises:
        InvalidInput: JSON cannot hold it.
    """
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        kind = error if isinstance(error, TypeError) else "it contains itself or is nested too deep"
        raise InvalidInput(f"{what} cannot be stored as JSON: {kind}. Nothing was written.") from None


def encode_json(value: Any) -> bytes:
    """Return compact JSON text, with ``NaN`` and infinities spelled as in JavaScript.

    A lone surrogate has no encoding in UTF-8, so a text that contains one is written with ASCII escapes.
    """
    try:
        text = to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return _encode_escaped(value)
    except ValueError:
        raise InvalidInput(f"The state contains itself or is nested deeper than {NESTING_LIMIT} levels.") from None
    if len(text) > DIGITS_LIMIT and _may_hold_long_number(text):
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
        raise unencodable(value) from None
    if _SPLIT_PAIR.search(text):
        raise InvalidInput("The state holds two halves of a surrogate pair as two characters; join or remove them.")
    return escaped


def canonical_text(value: Any) -> str:
    """Return a JSON value as text that equals another value's only if both are stored alike, apart from key order.

    So 1, 1.0 and true differ, which Python takes for equal, and NaN equals itself.
    """
    return _canonical(value)


#: Made once: `json.dumps` would make an encoder at each call.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def unencodable(state: object) -> InvalidInput:
    """Return the error for a state that has no JSON form. It names the path and the type of the first such value."""
    waiting: list[tuple[tuple[object, ...], object]] = [((), state)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict | list | tuple | BaseModel):
            if id(value) in seen:
                continue
            seen.add(id(value))
            parts = enumerate(value) if isinstance(value, list | tuple) else dict(value).items()
            waiting += reversed([((*path, name), part) for name, part in parts])
        elif not isinstance(value, str) and not _has_json_form(value):
            where = ".".join(map(str, path))
            return InvalidInput(
                f"The state holds a value of type {type(value).__name__} at {where[:200]!r}, which has no JSON form. "
                "Convert it to dicts with text keys, lists, text, numbers, booleans and None."
            )
    return InvalidInput(
        f"The state holds a value that JSON cannot hold, or is nested deeper than {NESTING_LIMIT} levels."
    )


def _has_json_form(value: object) -> bool:
    try:
        to_json(value)
    except ValueError:
        return False
    return True


def _may_hold_long_number(text: bytes) -> bool:
    """Return whether a number may have too many digits. A run that long covers one of the sampled positions."""
    for offset in range(DIGITS_LIMIT, len(text), DIGITS_LIMIT):
        if text[offset : offset + 1].isdigit():
            before, behind = text[offset - DIGITS_LIMIT : offset], text[offset : offset + DIGITS_LIMIT + 1]
            run = len(before) - len(before.rstrip(_DIGITS)) + len(behind) - len(behind.lstrip(_DIGITS))
            if run > DIGITS_LIMIT:
                return True
    return False


def queryable_json(value: dict[str, Any]) -> str | None:
    """Return a JSON object as text that MySQL can search, or None.

    MySQL's functions fail, for all rows of a query, if one row contains NaN, an infinity, a lone surrogate, a number
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
    """Return whether MySQL can read a value's nesting depth and integers."""
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
    """Return the value of a text made by `encode_json`.

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


def strings_of(value: Any, most: int | None = None) -> list[str]:
    """Return every text in a JSON value, in order, without keys.

    Args:
        value: The value.
        most: Enough texts for this many characters; None for all.
    """
    found: list[str] = []
    size = 0
    pending = [iter((value,))]
    while pending and (most is None or size <= most):
        for part in pending[-1]:
            if isinstance(part, str):
                if part:
                    found.append(part)
                    size += len(part) + 1
                    if most is not None and size > most:
                        break
            elif isinstance(part, Mapping):
                pending.append(iter(part.values()))
                break
            elif isinstance(part, list) and not set(map(type, part)) <= _WITHOUT_TEXT:
                pending.append(iter(part))
                break
        else:
            pending.pop()
    return found
