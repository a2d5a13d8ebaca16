"""Filters of callers, compiled to conditions on columns of JSON text: `ItemFilter` and `compile_filter`.

Values compare as JSON: numbers by value whatever their type, texts by code point, and a boolean is not a number. A
missing field counts as null, except for ``$exists``; a filter of the fields below one matches only objects.

MySQL's JSON holds numbers beyond 64 bits as floats. The server selects all items that may match a filter with such
numbers, and the process then checks the JSON text exactly (`ItemFilter.admits`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....errors import InvalidInput

#: MySQL refuses JSON that is nested more than 100 deep; a filter must leave room for its values.
DEPTH_LIMIT = 50

#: A value in a filter may be nested as deep as a stored value.
VALUE_DEPTH_LIMIT = 90

#: MySQL refuses integers that are larger than any float.
NUMBER_LIMIT_BITS = 1_023

#: The maximum number of comparisons of one filter; each value of an ``$in`` is one. The server makes them for each
#: item.
COMPARISONS_LIMIT = 1_000

#: The maximum number of characters of a filter's paths and values together; a path counts for each value that it is
#: compared with.
CHARACTERS_LIMIT = 262_144

#: From this number on, MySQL compares integers as floats.
WIDE = 2**63

_ORDERINGS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = ("$eq", "$ne", *_ORDERINGS, "$in", "$exists")

_NUMBERS = "('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')"


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """A compiled filter of items.

    Args:
        sql: Conditions that begin with AND; empty to select all items.
        params: The parameters of the SQL by name.
        checks: Filters that the SQL checks only roughly, each with whether it applies to the metadata; see `admits`.
    """

    sql: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[tuple[bool, Mapping[str, Any]], ...] = ()

    def admits(self, value: str, metadata: str | None) -> bool:
        """Check whether an item that the SQL selects passes the checks. One that is not JSON does; reading it fails."""
        try:
            return all(fulfils(json.loads((metadata or "{}") if of else value), filter) for of, filter in self.checks)
        except ValueError:
            return True


def compile_filter(filter: Mapping[str, Any] | None, column: str) -> ItemFilter:
    """Compile a filter on a column of JSON text.

    Args:
        filter: Field names, each with a value that the field must equal, with operators (``{"$gte": 3}``), or with a
            filter of the fields below it.
        column: The column, with its table's alias.

    Raises:
        InvalidInput: An operator is unknown, or JSON cannot hold a value.
    """
    if not filter:
        return ItemFilter()
    condition = _narrowing(filter, column)
    if not is_wide(filter):
        return condition
    others = _narrowing(without_wide(filter), column)
    return ItemFilter(others.sql or "\n   AND TRUE", others.params, (("metadata" in column, filter),))


def _narrowing(filter: Mapping[str, Any], column: str) -> ItemFilter:
    conditions = _Conditions(column)
    conditions.add(filter, "$", 0)
    return ItemFilter("".join(f"\n   AND {part}" for part in conditions.parts), conditions.params)


def only_valid_json(condition: ItemFilter) -> ItemFilter:
    """Restrict a filter to items whose value and metadata are JSON; for others, the server would fail."""
    if not condition.sql:
        return condition
    inner = condition.sql.strip().removeprefix("AND ")
    valid = "JSON_VALID(i.value) AND JSON_VALID(COALESCE(i.metadata, '{}'))"
    return ItemFilter(f"\n   AND IF({valid}, {inner}, FALSE)", condition.params, condition.checks)


class _Conditions:
    """Collects the conditions of a filter, and counts comparisons and characters.

    Args:
        column: The column.
    """

    def __init__(self, column: str) -> None:
        self.parts: list[str] = []
        self.params: dict[str, str] = {}
        self._column = column
        self._prefix = "metadata" if "metadata" in column else "value"
        self._comparisons = 0
        self._characters = 0

    def add(self, filter: Mapping[str, Any], path: str, depth: int) -> None:
        """Add the conditions of a filter on the fields below a path."""
        if not isinstance(filter, Mapping):
            raise InvalidInput(f"A filter must be a dict, not {type(filter).__name__}.")
        if depth > DEPTH_LIMIT:
            raise InvalidInput(f"The filter is nested more than {DEPTH_LIMIT} deep.")
        for name, expected in filter.items():
            if not isinstance(name, str):
                raise InvalidInput(f"A field of a filter must be named by text, not {type(name).__name__}.")
            if name.startswith("$"):
                raise InvalidInput(
                    f"Filter operator {name!r:.100} stands where a field must. Write {{'field': {{{name!r:.100}: …}}}}."
                )
            below = f"{path}.{self._quoted(name)}"
            if not isinstance(expected, Mapping):
                self.parts.append(self._equal(below, expected))
            elif any(isinstance(key, str) and key.startswith("$") for key in expected):
                for operator, operand in expected.items():
                    self.parts.append(self._operation(below, operator, operand))
            else:
                if all(map(_admits_null, expected.values())):  # any other condition implies that it is an object
                    path_type = (
                        f"JSON_TYPE(JSON_EXTRACT({self._column}, {self._compare(below)[0]})) COLLATE utf8mb4_bin"
                    )
                    self.parts.append(f"COALESCE({path_type} = 'OBJECT', FALSE)")
                self.add(expected, below, depth + 1)

    def _operation(self, path: str, operator: Any, operand: Any) -> str:
        if operator == "$eq":
            return self._equal(path, operand)
        if operator == "$ne":
            return f"NOT {self._equal(path, operand)}"
        if operator in _ORDERINGS:
            return self._ordered(path, operator, operand)
        if operator == "$in":
            if isinstance(operand, str | bytes | Mapping) or not isinstance(operand, Sequence | set | frozenset):
                raise InvalidInput("The filter operator '$in' needs a list of values.")
            if len(operand) > COMPARISONS_LIMIT:
                raise _too_many(f"An '$in' of a filter has {len(operand)} values")
            if not operand:
                self._compare()
                return "FALSE"
            return self._in(path, list(operand))
        if operator == "$exists":
            if not isinstance(operand, bool):
                raise InvalidInput("The filter operator '$exists' needs True or False.")
            return f"JSON_CONTAINS_PATH({self._column}, 'one', {self._compare(path)[0]}) = {int(operand)}"
        raise InvalidInput(f"Unknown filter operator {operator!r:.100}. Known: {', '.join(OPERATORS)}.")

    def _equal(self, path: str, expected: Any) -> str:
        if expected is None:
            (at,) = self._compare(path)
            return f"COALESCE(JSON_TYPE(JSON_EXTRACT({self._column}, {at})) COLLATE utf8mb4_bin = 'NULL', TRUE)"
        at, value = self._compare(path, self._json(expected))
        return f"COALESCE(JSON_EXTRACT({self._column}, {at}) = CAST({value} AS JSON), FALSE)"

    def _in(self, path: str, expected: list[Any]) -> str:
        """Compare with several values. Each JSON_EXTRACT parses the whole text, so there is one for all values."""
        values = [self._json(value) for value in expected if value is not None]
        parts = [] if len(values) == len(expected) else [self._equal(path, None)]
        if values:
            for value in values:
                self._count(path, value)
            at, among = self._named(path, f"[{','.join(values)}]")
            parts.append(f"COALESCE(JSON_EXTRACT({self._column}, {at}) MEMBER OF(CAST({among} AS JSON)), FALSE)")
        return f"({' OR '.join(parts)})"

    def _ordered(self, path: str, operator: str, expected: Any) -> str:
        if isinstance(expected, bool) or not isinstance(expected, int | float | str):
            raise InvalidInput(
                f"The filter operator {operator!r} compares numbers or texts, not {type(expected).__name__}."
            )
        types = "('STRING')" if isinstance(expected, str) else _NUMBERS
        at, bound = self._compare(path, self._json(expected))
        return (
            f"(COALESCE(JSON_TYPE(JSON_EXTRACT({self._column}, {at})) COLLATE utf8mb4_bin IN {types}, FALSE)"
            f" AND JSON_EXTRACT({self._column}, {at}) {_ORDERINGS[operator]} CAST({bound} AS JSON))"
        )

    def _compare(self, *params: str) -> list[str]:
        """Count one comparison, and add its parameters; return their names, as in SQL."""
        self._count(*params)
        return self._named(*params)

    def _named(self, *params: str) -> list[str]:
        names = [f"{self._prefix}_{len(self.params) + number}" for number in range(len(params))]
        self.params |= zip(names, params, strict=True)
        return [f":{name}" for name in names]

    def _count(self, *params: str) -> None:
        """Count one comparison, and the characters of its parameters."""
        self._comparisons += 1
        if self._comparisons > COMPARISONS_LIMIT:
            raise _too_many("A filter makes too many comparisons")
        self._characters += sum(map(len, params))
        if self._characters > CHARACTERS_LIMIT:
            raise _too_long()

    def _quoted(self, name: str) -> str:
        """Return a field's name as part of a JSON path."""
        return self._json(name)

    def _json(self, value: Any) -> str:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            text.encode()
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("A value of the filter cannot be held exactly by JSON.") from None
        if len(text) > CHARACTERS_LIMIT:
            raise _too_long()
        _check_limits(value, 0)
        return text


def _admits_null(expected: Any) -> bool:
    """Return whether a missing field may fulfil what a filter wants of it."""
    if not isinstance(expected, Mapping):
        return expected is None
    return bool(expected) and all(
        operator == "$ne"
        or (operator == "$exists" and not operand)
        or (operator == "$eq" and operand is None)
        or (operator == "$in" and isinstance(operand, Sequence | set | frozenset) and None in operand)
        for operator, operand in expected.items()
    )


def _too_many(what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}; the limit is {COMPARISONS_LIMIT} values to compare with in all. Search several times, each with a "
        "part of the values."
    )


def _too_long() -> InvalidInput:
    return InvalidInput(
        f"The names and values of a filter are longer than {CHARACTERS_LIMIT} characters together, a name counted once "
        "for each value that is compared under it. Search several times, each with a part of the values."
    )


def _check_limits(value: Any, depth: int) -> None:
    if depth > VALUE_DEPTH_LIMIT:
        raise InvalidInput(f"A value of the filter is nested more than {VALUE_DEPTH_LIMIT} deep.")
    if isinstance(value, int) and value.bit_length() > NUMBER_LIMIT_BITS:
        raise InvalidInput(f"A whole number of the filter has more than {NUMBER_LIMIT_BITS} bits.")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _check_limits(part, depth + 1)


def is_wide(value: Any) -> bool:
    """Check whether a part of a filter contains a number beyond 64 bits."""
    if isinstance(value, Mapping):
        return any(map(is_wide, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(is_wide, value))
    return isinstance(value, int | float) and abs(value) >= WIDE


def without_wide(filter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter without the conditions that name such numbers; it matches at least what the given one matches."""
    others: dict[str, Any] = {}
    for name, expected in filter.items():
        if not is_wide(expected):
            others[name] = expected
        elif isinstance(expected, Mapping):
            operators = {operator: operand for operator, operand in expected.items() if not is_wide(operand)}
            if left := operators if _has_operators(expected) else without_wide(expected):
                others[name] = left
    return others


def fulfils(value: Any, filter: Mapping[str, Any]) -> bool:
    """Check whether a JSON value matches a filter."""
    for name, expected in filter.items():
        exists = isinstance(value, dict) and name in value
        field = value[name] if exists else None
        if not isinstance(expected, Mapping):
            holds = _same(field, expected)
        elif _has_operators(expected):
            holds = all(_holds(field, exists, operator, operand) for operator, operand in expected.items())
        else:
            holds = isinstance(field, dict) and fulfils(field, expected)
        if not holds:
            return False
    return True


def _has_operators(expected: Mapping[str, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in expected)


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
