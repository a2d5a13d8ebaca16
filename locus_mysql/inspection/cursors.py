"""Cursors: where a page ended, as an opaque text that goes into a URL as it is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput


def to_cursor(*place: str | int) -> str:
    """The cursor of a place in an order, told by the values of its keys."""
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def from_cursor(cursor: str, *types: type) -> Sequence[Any]:
    """The place that a cursor stands for.

    Args:
        cursor: As a page gave it.
        types: What its keys are.

    Raises:
        InvalidInput: No page of this kind gave it.
    """
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        sound = isinstance(place, list) and list(map(type, place)) == list(types)
        "".join(part for part in place if isinstance(part, str)).encode()
    except (ValueError, TypeError, RecursionError, binascii.Error, AttributeError):
        sound = False
    if not sound:
        raise InvalidInput("The cursor is none that a page of this list ended with. Begin at the first page.")
    return list(place)
