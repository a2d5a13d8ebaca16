"""Checks callers' arguments before anything is sent."""

from __future__ import annotations

from ...errors import InvalidInput
from ...runtime.arguments import check_text

#: Ids of checkpoints and tasks, in characters. Namespaces may be of any length.
ID_LIMIT = 512


def check_id(value: object, what: str) -> str:
    """Check an id: text of 1 to 512 characters."""
    text = check_text(value, what)
    if not 1 <= len(text) <= ID_LIMIT:
        raise InvalidInput(f"{what} has {len(text)} characters; it must have 1 to {ID_LIMIT}.")
    return text
