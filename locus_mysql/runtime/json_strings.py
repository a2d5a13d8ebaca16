"""The texts in a JSON value: `strings_of`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})


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
