"""Cursors: where a page ended, as an opaque text that goes into a URL as it is."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ..errors import InvalidInput

#: What places in an order are told by.
Key: TypeAlias = str | int | bool | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

#: The numbers that a server compares without a complaint.
_NUMBERS = range(-(2**53), 2**53)


def to_cursor(*place: Key) -> str:
    """The cursor of a place in an order, told by the values of its keys."""
    values = [(key - _EPOCH) // _MICROSECOND if isinstance(key, datetime) else key for key in place]
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def from_cursor(cursor: str, *types: type) -> list[Any]:
    """The place that a cursor stands for.

    Args:
        cursor: As a page gave it.
        types: What its keys are, of those of `Key`.

    Raises:
        InvalidInput: No page of this kind gave it.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        if not isinstance(values, list):
            raise ValueError
        return [_key(value, kind) for value, kind in zip(values, types, strict=True)]
    except (ValueError, TypeError, RecursionError, OverflowError, AttributeError):
        raise InvalidInput("The cursor is none that a page of this list ended with. Begin at the first page.") from None


def _key(value: Any, kind: type) -> Any:
    sort = type(value)
    if sort is not (int if kind is datetime else kind) or (sort is int and value not in _NUMBERS):
        raise ValueError
    if kind is datetime:
        moment = _EPOCH + timedelta(microseconds=int(value))
        if moment.year < 1000:  # the server knows no earlier ones
            raise ValueError
        return moment
    if isinstance(value, str):
        value.encode()
    return value
