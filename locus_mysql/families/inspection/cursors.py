"""Cursors: the position at which a page ended, as an opaque text that URLs take unescaped."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ...errors import InvalidInput

#: The types of the keys that identify a position in an order.
Key: TypeAlias = str | int | bool | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

#: The numbers that a server compares without an error.
_NUMBERS = range(-(2**53), 2**53)


def to_cursor(*keys: Key) -> str:
    """Return the cursor of a position in an order, which the values of its keys identify."""
    values = [(key - _EPOCH) // _MICROSECOND if isinstance(key, datetime) else key for key in keys]
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def from_cursor(cursor: str, *types: type) -> list[Any]:
    """Return the position of a cursor.

    Args:
        cursor: The cursor of a page.
        types: The type of each key, one of `Key`.

    Raises:
        InvalidInput: It is not a cursor of this kind of page.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        if not isinstance(values, list):
            raise ValueError
        return [_key(value, kind) for value, kind in zip(values, types, strict=True)]
    except (ValueError, TypeError, RecursionError, OverflowError, AttributeError):
        raise InvalidInput("The cursor does not come from a page of this list. Begin at the first page.") from None


def _key(value: Any, kind: type) -> Any:
    sort = type(value)
    if sort is not (int if kind is datetime else kind) or (sort is int and value not in _NUMBERS):
        raise ValueError
    if kind is datetime:
        moment = _EPOCH + timedelta(microseconds=int(value))
        if moment.year < 1000:  # earlier ones the server does not support
            raise ValueError
        return moment
    if isinstance(value, str):
        value.encode()
    return value
