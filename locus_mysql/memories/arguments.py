"""Checking what callers pass, before anything is sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput

#: MySQL reads JSON that is nested 100 deep at most.
DEPTH_LIMIT = 90

#: MySQL reads whole numbers beyond 64 bits as floats, which end at 2 to the power of 1,024.
NUMBER_LIMIT_BITS = 1_023

METADATA_LIMIT_BYTES = 65_536

#: Of an item, only this many characters are searched by word.
SEARCHED_CHARACTERS = 1_000_000

#: The longest time to live, in seconds: a hundred years.
TTL_LIMIT_S = 3_155_760_000


def encode_value(value: Any, what: str = "The value") -> str:
    """A JSON value as the text to store: what is loaded is equal to it, in the same order.

    Raises:
        InvalidInput: JSON cannot hold it exactly, or MySQL not read it.
    """
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


def strings_of(value: Any) -> list[str]:
    """Every text in a JSON value, in order, keys left out."""
    found: list[str] = []
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, Mapping):
            pending.extend(reversed(list(part.values())))
        elif isinstance(part, list):
            pending.extend(reversed(part))
    return [text for text in found if text]


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
