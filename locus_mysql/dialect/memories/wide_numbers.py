"""Filters with numbers beyond 64 bits, which MySQL's JSON holds as floats: `widened` and `fulfils`.

The server selects all items that may match such a filter, and the process then checks the JSON text exactly. Filters
without such numbers need no check, as MySQL compares them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: From this number on, MySQL compares integers as floats.
WIDE = 2**63

#: The relative distance around a number within which the server selects numbers.
_MARGIN = 1e-9

_ORDERINGS = ("$gt", "$gte", "$lt", "$lte")


def is_wide(value: Any) -> bool:
    """Check whether a part of a filter contains a number beyond 64 bits."""
    if isinstance(value, Mapping):
        return any(map(is_wide, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(is_wide, value))
    return isinstance(value, int | float) and abs(value) >= WIDE


def widened(filter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter without such numbers that matches at least what the given filter matches."""
    wider: dict[str, Any] = {}
    for name, wanted in filter.items():
        if not is_wide(wanted):
            wider[name] = wanted
        elif not isinstance(wanted, Mapping):
            wider[name] = _around("$eq", wanted)
        elif _has_operators(wanted):
            wider[name] = {operator: operand for operator, operand in wanted.items() if not is_wide(operand)}
            for operator, operand in wanted.items():
                if is_wide(operand):
                    for bound, number in _around(operator, operand).items():
                        wider[name].setdefault(bound, number)
        else:
            wider[name] = widened(wanted)
        if not wider[name] and wanted:
            del wider[name]
    return wider


def fulfils(value: Any, filter: Mapping[str, Any]) -> bool:
    """Check whether a JSON value matches a filter."""
    for name, wanted in filter.items():
        exists = isinstance(value, dict) and name in value
        field = value[name] if exists else None
        if not isinstance(wanted, Mapping):
            holds = _same(field, wanted)
        elif _has_operators(wanted):
            holds = all(_holds(field, exists, operator, operand) for operator, operand in wanted.items())
        else:
            holds = isinstance(field, dict) and fulfils(field, wanted)
        if not holds:
            return False
    return True


def _has_operators(wanted: Mapping[str, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in wanted)


def _around(operator: str, operand: Any) -> dict[str, float]:
    """Return bounds of all numbers that an operator may match; none if it also matches other values."""
    if operator not in ("$eq", *_ORDERINGS) or not isinstance(operand, int | float):
        return {}
    number = float(operand)
    low, high = number - abs(number) * _MARGIN, number + abs(number) * _MARGIN
    bounds = {}
    if operator not in ("$lt", "$lte") and math.isfinite(low):
        bounds["$gte"] = low
    if operator not in ("$gt", "$gte") and math.isfinite(high):
        bounds["$lte"] = high
    return bounds


def _holds(field: Any, exists: bool, operator: str, operand: Any) -> bool:
    if operator == "$exists":
        return exists is operand
    if operator == "$eq":
        return _same(field, operand)
    if operator == "$ne":
        return not _same(field, operand)
    if operator == "$in":
        return any(_same(field, one) for one in operand)
    if isinstance(field, bool) or not isinstance(field, str if isinstance(operand, str) else int | float):
        return False
    if operator in ("$gt", "$gte"):
        return bool(field > operand or (operator == "$gte" and field == operand))
    return bool(field < operand or (operator == "$lte" and field == operand))


def _same(one: Any, other: Any) -> bool:
    """Check whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other)
