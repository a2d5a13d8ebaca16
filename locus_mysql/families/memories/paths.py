"""Paths to texts in a JSON value, such as ``facts[*].text``."""

from __future__ import annotations

import json
import re
from typing import Any

from ...errors import InvalidInput

_STEP = re.compile(r"([^.\[\]]+)|\[(\*|[0-9]+)\]")

#: The whole value.
WHOLE = "$"


def check_path(path: object) -> str:
    """Check a path: names joined by dots, each optionally followed by ``[*]`` or ``[3]``.

    Raises:
        InvalidInput: The path cannot be parsed.
    """
    if not isinstance(path, str):
        raise InvalidInput(f"A path must be text, not {type(path).__name__}.")
    if path != WHOLE and not re.fullmatch(r"[^.\[\]]+(\.[^.\[\]]+|\[(\*|[0-9]+)\])*", path):
        raise InvalidInput(f"Path {path!r} cannot be read. Write names joined by dots, as in 'a.b[*].c', or '$'.")
    return path


def texts_at(value: Any, path: str) -> list[str]:
    """Return the texts at a path; other values as JSON."""
    found = [value]
    for name, index in _STEP.findall(path) if path != WHOLE else ():
        if name:
            found = [part[name] for part in found if isinstance(part, dict) and name in part]
        elif index == "*":
            found = [item for part in found if isinstance(part, list) for item in part]
        else:
            found = [part[int(index)] for part in found if isinstance(part, list) and int(index) < len(part)]
    texts = [
        part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in found if part is not None
    ]
    return [text for text in texts if text]
