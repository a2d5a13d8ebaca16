"""Converts decoded values and metadata to valid JSON. No I/O."""

from __future__ import annotations

import json
import math
from typing import Any

import pydantic_core

#: Shown in place of a value whose checksum is wrong.
DAMAGED = "<damaged: its checksum is wrong>"


def metadata_of(text: object) -> tuple[dict[str, Any], str | None]:
    """Return the metadata of a row, and a message if it is damaged; it is empty then."""
    if text is None:
        return {}, None
    try:
        found = finite(json.loads(str(text)))
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, None
    return {}, "The metadata is no JSON object; it was changed by hand. Save it again, with its metadata."


def finite(value: Any) -> Any:
    """Return a value of `json` with NaN and infinities, which JSON does not have, as text."""
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
