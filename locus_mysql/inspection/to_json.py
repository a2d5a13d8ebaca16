"""Stored values as JSON values to look at, whoever encoded them. No I/O, and nothing stored is ever constructed."""

from __future__ import annotations

import json
import math
from typing import Any

import pydantic_core

from ..errors import CorruptCheckpoint
from ..families.graphs.values import Encoded
from ..runtime.exact_json import decode_json
from .msgpack import Unreadable, read_msgpack, told_bytes

#: What stands for a value whose checksum is wrong.
DAMAGED = "<damaged: its checksum is wrong>"


def to_json(encoded: Encoded) -> Any:
    """A value of a graph's checkpoint as JSON; what is not JSON stands as text that tells its type and size.

    Pickles are never read, nor what somebody encrypted; of damaged bytes it is said that they are.
    """
    kind, data = encoded
    if kind == "null":
        return None
    try:
        if kind == "json":
            return finite(decode_json(data))
        if kind == "msgpack":
            return read_msgpack(data)
    except (CorruptCheckpoint, Unreadable, RecursionError):
        return told_bytes(f"damaged {kind}", len(data))
    return told_bytes(kind[:60], len(data))


def metadata_of(text: object) -> tuple[dict[str, Any], str | None]:
    """Metadata of a row, and what is wrong with it: then it is empty."""
    if text is None:
        return {}, None
    try:
        found = finite(json.loads(str(text)))
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, None
    return {}, "The metadata is no JSON object; somebody changed it by hand. Save it again, with its metadata."


def finite(value: Any) -> Any:
    """A value of `json` with what JSON does not know, NaN and infinities, as text."""
    try:
        text = pydantic_core.to_json(value, inf_nan_mode="constants")
    except ValueError:  # a lone surrogate, or very deep
        return _finite(value)
    return _finite(value) if b"NaN" in text or b"Infinity" in text else value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return value
