"""Checking what callers pass, before anything is sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ...errors import InvalidInput

#: MySQL reads JSON that is nested 100 deep at most.
DEPTH_LIMIT = 90

#: MySQL reads whole numbers beyond 64 bits as floats, which end at 2 to the power of 1,024.
NUMBER_LIMIT_BITS = 1_023

METADATA_LIMIT_BYTES = 65_536

#: Of an item, only this many characters are searched by word.
SEARCHED_CHARACTERS = 1_000_000

#: The longest time to live, in seconds: a hundred years.
TTL_LIMIT_S = 3_155_760_000


_TEXT = frozenset({str})
_CONTAINERS = frozenset({list, dict})
_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})
_JSON_TYPES = _WITHOUT_TEXT | _TEXT | _CONTAINERS


def encode_value(value: Any, what: str = "The value") -> str:
    """A JSON value as the text to store: what is loaded is equal to it, in the same order.

    Raises:
        InvalidInput: JSON cannot hold it exactly, or MySQL not read it.
    """
    try:
        if _is_json(value):
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            text.encode()
            return text
    except (ValueError, RecursionError):  # a lone surrogate, NaN, or a value that contains itself
        pass
    _check(value, what, 0)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def encode_metadata(metadata: object) -> str | None:
    """Metadata as the text to store.

    Raises:
        InvalidInput: It is no dict of JSON values, or over 65,536 bytes.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"Metadata must be a dict, not {type(metadata).__name__}.")
    if not metadata:
        return None
    text = encode_value(dict(metadata), "Metadata")
    size = len(text.encode())
    if size > METADATA_LIMIT_BYTES:
        raise InvalidInput(
            f"Metadata is {size} bytes of JSON; the limit is {METADATA_LIMIT_BYTES}. Keep it in the value."
        )
    return text


def check_count(value: object, what: str, least: int = 0) -> int:
    """A count from ``least`` to 2**31."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31:
        raise InvalidInput(f"{what} must be a whole number from {least} to {2**31}, not {value!r:.50}.")
    return value


def check_score(value: object, what: str) -> float | None:
    """The least score of a hit; None for any."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidInput(f"{what} must be a number, not {value!r:.50}.")
    return value


def check_text(value: object, what: str) -> str:
    """Any text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate, which UTF-8 cannot hold; remove it.") from None
    return value


def microseconds(ttl_s: object) -> int | None:
    """A time to live in seconds as microseconds; None for none."""
    if ttl_s is None:
        return None
    if isinstance(ttl_s, bool) or not isinstance(ttl_s, int | float) or not 0 < ttl_s <= TTL_LIMIT_S:
        raise InvalidInput(f"ttl_s must be a number of seconds above 0 and up to {TTL_LIMIT_S}, not {ttl_s!r:.50}.")
    return max(1, round(ttl_s * 1_000_000))


def strings_of(value: Any, most: int | None = None) -> list[str]:
    """Every text in a JSON value, in order, keys left out.

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


def searched_text(value: Any) -> str | None:
    """What is searched by word of a value: its texts, up to `SEARCHED_CHARACTERS`; None if it has none."""
    return "\n".join(strings_of(value, SEARCHED_CHARACTERS))[:SEARCHED_CHARACTERS] or None


def _is_json(value: Any) -> bool:
    """Whether a value holds nothing but what `_check` lets pass, but for NaN, infinities and lone surrogates.

    The types of all values in a list or a dict are found at once by built-in functions, in a tenth of the time that it
    takes to look at one after the other. Subclasses, which are rare, are left to `_check`.
    """
    level: list[Any] = [[value]]
    for _ in range(DEPTH_LIMIT + 1):
        below: list[Any] = []
        for container in level:
            parts = container
            if type(container) is dict:
                if not set(map(type, container)) <= _TEXT:
                    return False
                parts = container.values()
            kinds = set(map(type, parts))
            if not kinds <= _JSON_TYPES:
                return False
            if int in kinds:
                numbers = parts if len(kinds) == 1 else [part for part in parts if type(part) is int]
                if max(map(int.bit_length, numbers)) > NUMBER_LIMIT_BITS:
                    return False
            if not kinds.isdisjoint(_CONTAINERS):
                below += [part for part in parts if part and type(part) in _CONTAINERS]
        if not below:
            return True
        level = below
    return False


def _check(value: Any, what: str, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise InvalidInput(f"{what} is nested more than {DEPTH_LIMIT} deep.")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        check_text(value, f"A text in {what[0].lower()}{what[1:]}")
    elif isinstance(value, int):
        if value.bit_length() > NUMBER_LIMIT_BITS:
            raise InvalidInput(f"{what} holds a whole number of more than {NUMBER_LIMIT_BITS} bits; store it as text.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{what} holds NaN or an infinity, which JSON does not know. Use None or text.")
    elif isinstance(value, list):
        for part in value:
            _check(part, what, depth + 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{what} holds a dict with a key that is no text but {type(name).__name__}.")
            check_text(name, f"A key in {what[0].lower()}{what[1:]}")
            _check(part, what, depth + 1)
    else:
        raise InvalidInput(f"{what} holds {type(value).__name__}, which JSON cannot hold exactly.")
