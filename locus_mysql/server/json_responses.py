"""Responses in JSON."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


def answer(value: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON: dicts, lists, dataclasses, models; times as ISO 8601 text.

    ``NaN`` and infinities, which a stored state may hold, are written as in JavaScript.
    """
    return answer_text(to_json(value, inf_nan_mode="constants"), status)


def answer_text(text: bytes, status: int = 200) -> Response:
    """Return a response with a text that is JSON already."""
    return Response(text, status, media_type="application/json")
