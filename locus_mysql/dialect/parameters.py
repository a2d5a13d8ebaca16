"""The parameters of a statement by their names: where they stand in its text, and their values in that order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from .statement import Param

_GROUP = re.compile(r"\[(\w+): ((?:[^\[\]]|\[\w*\])*)\]")
#: Indentation, which need not be sent.
_INDENT = re.compile(r"\n +")

_NAME = re.compile(r"(?<![\w:]):([a-z]\w*)")

#: The names of parameters in order; the fields of a group of rows under its name.
Plan: TypeAlias = tuple["str | tuple[str, tuple[str, ...]]", ...]


class Shape(NamedTuple):
    """What a text depends on, besides its template and pieces.

    Args:
        name: The name of a parameter that is a list.
        elements: Their number.
        width: The length of each if they are tuples, else 0.
    """

    name: str
    elements: int
    width: int


def place_parameters(text: str, shapes: Sequence[Shape]) -> tuple[str, Plan]:
    """Return a text with ``%s`` in the place of each parameter's name and without indentation, and the names."""
    text = _INDENT.sub("\n", text)
    lists = {shape.name: shape for shape in shapes}
    plan: list[str | tuple[str, tuple[str, ...]]] = []

    def place(name: re.Match[str]) -> str:
        plan.append(name[1])
        shape = lists.get(name[1])
        if shape is None:
            return "%s"
        one = f"({', '.join(['%s'] * shape.width)})" if shape.width else "%s"
        return ", ".join([one] * shape.elements)

    done, end = [], 0
    for group in _GROUP.finditer(text):
        done.append(_NAME.sub(place, text[end : group.start()]))
        plan.append((group[1], tuple(_NAME.findall(group[2]))))
        done.append(", ".join([_NAME.sub("%s", group[2])] * lists[group[1]].elements))
        end = group.end()
    return "".join((*done, _NAME.sub(place, text[end:]))), tuple(plan)


def params_of(plan: Plan, values: Mapping[str, Any]) -> tuple[Param, ...]:
    """Return the parameters of a statement in their order.

    Raises:
        KeyError: A parameter has no value.
    """
    params: list[Param] = []
    for name in plan:
        if isinstance(name, tuple):
            params += _row_params(values[name[0]], name[1], values)
        elif type(value := values[name]) is not list:
            params.append(value)
        elif isinstance(value[0], tuple):
            params += [one for element in value for one in element]
        else:
            params += value
    return tuple(params)


def _row_params(rows: list[Any], names: tuple[str, ...], values: Mapping[str, Any]) -> list[Param]:
    fields: tuple[str, ...] = type(rows[0])._fields
    if len(names) > 1 and set(names) <= set(fields):
        columns = itemgetter(*map(fields.index, names))
        return [value for row in rows for value in columns(row)]
    return [getattr(row, name) if name in fields else values[name] for row in rows for name in names]


def shape_of(name: str, value: list[Any]) -> Shape:
    """Return what a text depends on of a parameter that is a list."""
    if not value:
        raise ValueError(f"The parameter {name!r} of a statement is an empty list.")
    first = value[0]
    return Shape(name, len(value), len(first) if isinstance(first, tuple) else 0)
