"""JSON containment and equality, as MySQL defines them."""

from __future__ import annotations

from typing import Any


def contains(target: Any, candidate: Any) -> bool:
    """Whether a JSON value contains another, as ``JSON_CONTAINS(target, candidate)`` tells it.

    A scalar contains an equal one; an array contains an array if it contains each of its elements, and anything else if
    one of its elements does; an object contains an object if it has each of its keys with a value that contains it.
    https://dev.mysql.com/doc/refman/9.0/en/json-search-functions.html#function_json-contains
    """
    # Loops, not generators: what is stored may be nested 200 levels deep, and each level must take one frame only.
    if isinstance(target, list):
        for wanted in candidate if isinstance(candidate, list) else (candidate,):
            for element in target:
                if contains(element, wanted):
                    break
            else:
                return False
        return True
    if isinstance(target, dict):
        if not isinstance(candidate, dict):
            return False
        for key, wanted in candidate.items():  # noqa: SIM110 - see above
            if key not in target or not contains(target[key], wanted):
                return False
        return True
    return same_json(target, candidate)


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    return bool(canonical(one) == canonical(other))


def canonical(value: Any) -> Any:
    """A form that compares equal exactly for equal JSON values: booleans apart from numbers, 1.0 as 1."""
    if isinstance(value, bool):
        return ["\0bool", int(value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return ["\0list", *map(canonical, value)]
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    return value
