"""JSON containment, as MySQL defines it."""

from __future__ import annotations

from typing import Any

from ..database.arguments import same_json


def contains(target: Any, candidate: Any) -> bool:
    """Whether a JSON value contains another, as ``JSON_CONTAINS(target, candidate)`` tells it.

    A scalar contains an equal one; an array contains an array if it contains each of its elements, and anything else if
    one of its elements does; an object contains an object if it has each of its keys with a value that contains it.
    https://dev.mysql.com/doc/refman/9.0/en/json-search-functions.html#function_json-contains
    """
    if isinstance(target, list):
        if isinstance(candidate, list):
            return all(any(contains(element, wanted) for element in target) for wanted in candidate)
        return any(contains(element, candidate) for element in target)
    if isinstance(target, dict):
        return isinstance(candidate, dict) and all(
            key in target and contains(target[key], wanted) for key, wanted in candidate.items()
        )
    return same_json(target, candidate)
