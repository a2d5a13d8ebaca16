"""Filters as conditions on a column of JSON text: `Condition`.

Values compare as JSON: numbers by value whatever their type, texts by code point, and a boolean is no number. What is
not there counts as null, but for ``$exists``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidInput
from ..statement import Param
from .wide_numbers import fulfils, is_wide, widened

#: MySQL refuses JSON nested more deeply than 100; a filter is left some room.
DEPTH_LIMIT = 50

#: A value of a filter may be as deep as what is stored.
VALUE_DEPTH_LIMIT = 90

#: MySQL refuses whole numbers beyond what a float can hold.
NUMBER_LIMIT_BITS = 1_023

_ORDERINGS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = ("$eq", "$ne", *_ORDERINGS, "$in", "$exists")

_NUMBERS = "('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that stands behind others.

    Args:
        sql: Begins with AND; empty if there is none.
        params: Its parameters.
        checks: Filters that the server can only narrow, each with whether it is of the metadata; see `admits`.
    """

    sql: str = ""
    params: tuple[Param, ...] = ()
    checks: tuple[tuple[bool, Mapping[str, Any]], ...] = ()

    def admits(self, value: str, metadata: str | None) -> bool:
        """Whether an item of the server's fulfils the checks as well; one that is no JSON is left to its reader."""
        try:
            return all(fulfils(json.loads((metadata or "{}") if of else value), filter) for of, filter in self.checks)
        except ValueError:
            return True


def condition_of(filter: Mapping[str, Any] | None, column: str) -> Condition:
    """The condition that a column of JSON text fulfils a filter.

    Args:
        filter: Field names, each with a value that the field must equal, with operators (``{"$gte": 3}``), or with a
            filter of the fields below it.
        column: The column, with its table's alias.

    Raises:
        InvalidInput: An operator is unknown, or a value is none that JSON can hold.
    """
    if not filter:
        return Condition()
    condition = _narrowing(filter, column)
    if not is_wide(filter):
        return condition
    wider = _narrowing(widened(filter), column)
    return Condition(wider.sql or "\n   AND TRUE", wider.params, (("metadata" in column, filter),))


def _narrowing(filter: Mapping[str, Any], column: str) -> Condition:
    parts: list[str] = []
    params: list[Param] = []
    _conditions(filter, column, "$", parts, params, 0)
    return Condition("".join(f"\n   AND {part}" for part in parts), tuple(params))


def of_json(condition: Condition) -> Condition:
    """The same, of items whose value and metadata are JSON; the server fails where it is asked of others."""
    if not condition.sql:
        return condition
    inner = condition.sql.strip().removeprefix("AND ")
    valid = "JSON_VALID(i.value) AND JSON_VALID(COALESCE(i.metadata, '{}'))"
    return Condition(f"\n   AND IF({valid}, {inner}, FALSE)", condition.params)


def _conditions(
    filter: Mapping[str, Any], column: str, path: str, parts: list[str], params: list[Param], depth: int
) -> None:
    if not isinstance(filter, Mapping):
        raise InvalidInput(f"A filter must be a dict, not {type(filter).__name__}.")
    if depth > DEPTH_LIMIT:
        raise InvalidInput(f"The filter is nested more than {DEPTH_LIMIT} deep.")
    for name, wanted in filter.items():
        if not isinstance(name, str):
            raise InvalidInput(f"A field of a filter must be named by text, not {type(name).__name__}.")
        if name.startswith("$"):
            raise InvalidInput(
                f"Filter operator {name!r} stands where a field must. Write {{'field': {{{name!r}: …}}}}."
            )
        below = f"{path}.{_quoted(name)}"
        if not isinstance(wanted, Mapping):
            parts.append(_equal(column, below, wanted, params))
        elif any(isinstance(key, str) and key.startswith("$") for key in wanted):
            for operator, operand in wanted.items():
                parts.append(_operation(column, below, operator, operand, params))
        elif not wanted:
            params.append(below)
            parts.append(f"COALESCE(JSON_TYPE(JSON_EXTRACT({column}, %s)) COLLATE utf8mb4_bin = 'OBJECT', FALSE)")
        else:
            _conditions(wanted, column, below, parts, params, depth + 1)


def _operation(column: str, path: str, operator: Any, operand: Any, params: list[Param]) -> str:
    if operator == "$eq":
        return _equal(column, path, operand, params)
    if operator == "$ne":
        return f"NOT {_equal(column, path, operand, params)}"
    if operator in _ORDERINGS:
        return _ordered(column, path, operator, operand, params)
    if operator == "$in":
        if isinstance(operand, str | bytes | Mapping) or not isinstance(operand, Sequence | set | frozenset):
            raise InvalidInput("The filter operator '$in' needs a list of values.")
        if not operand:
            return "FALSE"
        return "(" + " OR ".join(_equal(column, path, value, params) for value in operand) + ")"
    if operator == "$exists":
        if not isinstance(operand, bool):
            raise InvalidInput("The filter operator '$exists' needs True or False.")
        params.append(path)
        return f"JSON_CONTAINS_PATH({column}, 'one', %s) = {int(operand)}"
    raise InvalidInput(f"Unknown filter operator {operator!r}. Known: {', '.join(OPERATORS)}.")


def _equal(column: str, path: str, wanted: Any, params: list[Param]) -> str:
    params.append(path)
    if wanted is None:
        return f"COALESCE(JSON_TYPE(JSON_EXTRACT({column}, %s)) COLLATE utf8mb4_bin = 'NULL', TRUE)"
    params.append(_json(wanted))
    return f"COALESCE(JSON_EXTRACT({column}, %s) = CAST(%s AS JSON), FALSE)"


def _ordered(column: str, path: str, operator: str, wanted: Any, params: list[Param]) -> str:
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        raise InvalidInput(f"The filter operator {operator!r} compares numbers or texts, not {type(wanted).__name__}.")
    types = "('STRING')" if isinstance(wanted, str) else _NUMBERS
    params += [path, path, _json(wanted)]
    return (
        f"(COALESCE(JSON_TYPE(JSON_EXTRACT({column}, %s)) COLLATE utf8mb4_bin IN {types}, FALSE)"
        f" AND JSON_EXTRACT({column}, %s) {_ORDERINGS[operator]} CAST(%s AS JSON))"
    )


def _quoted(name: str) -> str:
    """A field's name as part of a JSON path."""
    return _json(name)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("A value of the filter is none that JSON can hold exactly.") from None
    _check_limits(value, 0)
    return text


def _check_limits(value: Any, depth: int) -> None:
    if depth > VALUE_DEPTH_LIMIT:
        raise InvalidInput(f"A value of the filter is nested more than {VALUE_DEPTH_LIMIT} deep.")
    if isinstance(value, int) and value.bit_length() > NUMBER_LIMIT_BITS:
        raise InvalidInput(f"A whole number of the filter has more than {NUMBER_LIMIT_BITS} bits.")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _check_limits(part, depth + 1)
