"""Values of LangGraph's stores that JSON cannot hold: `as_json` converts them, and `finite` those in filters."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from datetime import date, time
from typing import Any
from uuid import UUID

from ...dialect.memories.filters import OPERATORS
from ...errors import InvalidInput

#: A condition that no value fulfils.
_NOTHING: Mapping[str, Any] = {"$in": []}

#: A condition that exactly all numbers fulfil.
_ANY_NUMBER: Mapping[str, Any] = {"$gte": -sys.float_info.max}

_BELOW, _ABOVE = ("$lt", "$lte"), ("$gt", "$gte")


def as_json(value: Any) -> Any:
    """Return a value with lists for tuples and text for times, dates and UUIDs, as LangGraph's store in SQLite has it.

    Raises:
        InvalidInput: It contains itself, or is nested too deeply.
    """
    try:
        return _as_json(value)
    except RecursionError:
        raise InvalidInput("A value contains itself or is nested too deeply. Nothing was done.") from None


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def finite(filter: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return an equivalent filter without infinities and NaN: stored numbers are all finite."""
    if not isinstance(filter, Mapping):
        return filter
    replaced: dict[str, Any] = {}
    for name, wanted in filter.items():
        if not isinstance(wanted, Mapping):
            replaced[name] = _NOTHING if _is_special(wanted) else wanted
        elif not any(isinstance(key, str) and key.startswith("$") for key in wanted):
            replaced[name] = finite(wanted)
        elif operators := _finite_operators(wanted):
            replaced[name] = operators
    return replaced


def _finite_operators(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Do the same for the operators on one field; return an empty dict if every value fulfils them."""
    replaced: dict[str, Any] = {}
    ordered = False
    for operator, operand in wanted.items():
        if operator == "$in" and isinstance(operand, list | tuple):
            replaced[operator] = [value for value in operand if not _is_special(value)]
        elif not _is_special(operand) or operator not in OPERATORS:
            replaced[operator] = operand
        elif (operator in _BELOW and operand == math.inf) or (operator in _ABOVE and operand == -math.inf):
            ordered = True
        elif operator != "$ne":
            return _NOTHING
    if ordered and not replaced.keys() & {*_BELOW, *_ABOVE}:
        replaced.update(_ANY_NUMBER)
    return replaced


def _is_special(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
