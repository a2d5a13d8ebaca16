"""Infinities and NaN in filters, which LangGraph's other stores compare with and JSON cannot hold: `finite`."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from ...dialect.memories.filters import OPERATORS

#: A condition that no value fulfils.
_NOTHING: Mapping[str, Any] = {"$in": []}

#: A condition that exactly all numbers fulfil.
_ANY_NUMBER: Mapping[str, Any] = {"$gte": -sys.float_info.max}

_BELOW, _ABOVE = ("$lt", "$lte"), ("$gt", "$gte")


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
