"""SQL as a value: one statement and its parameters; and templates of statements: `fill`, `place_parameters`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from types import UnionType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

#: Whether the answer to a statement that begins with this word is a set of rows, which may be empty. A statement that
#: begins with WITH must be a read; a write can have its WITH in a subquery.
_BRINGS_ROWS = {
    **dict.fromkeys(("SELECT", "WITH", "SHOW", "EXPLAIN"), True),
    **dict.fromkeys(("INSERT", "REPLACE", "UPDATE", "DELETE", "START", "COMMIT", "ROLLBACK", "SET", "DO"), False),
    **dict.fromkeys(("CREATE", "ALTER", "DROP", "TRUNCATE"), False),
}

#: The types of a statement's parameters. Times and JSON are passed as text.
Param: TypeAlias = str | bytes | int | None

#: The named tuple that a query declares for its rows.
R = TypeVar("R", bound=tuple[Any, ...])


@dataclass(slots=True, unsafe_hash=True)
class Statement:
    """One SQL statement with ``%s`` where each parameter belongs.

    Not changed once it is made; enforcing that would take most of the time to make it.

    Args:
        sql: A single statement without a closing semicolon. ``%s`` marks a parameter; no other ``%`` may appear.
        params: One value for each ``%s``, in order.
        named: The parameters by name, if the statement was declared with names: `variants` orders them anew.
    """

    sql: str
    params: tuple[Param, ...] = ()
    named: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def brings_rows(self) -> bool | None:
        """Return whether its answer is a set of rows, which may be empty; None if its first word is unknown.

        A driver uses this to notice an answer that cannot belong to this statement.
        """
        return brings_rows(self.sql[:64])


@dataclass(slots=True, unsafe_hash=True)
class Query(Statement, Generic[R]):
    """A statement that declares the rows it returns.

    Args:
        row: A `NamedTuple` with one field per column. Its annotations are the types that a column's values may have;
            the engine checks each row against them.
    """

    row: type[R] = field(kw_only=True)


def column_types(row: type[Any]) -> tuple[tuple[type, ...], ...]:
    """Return for each column that a query declares the types that its values may have."""
    hints = get_type_hints(row)
    return tuple(_alternatives(hints[name]) for name in row._fields)


def _alternatives(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return (object,)
    return get_args(hint) if get_origin(hint) in {UnionType, Union} else (hint,)


@lru_cache(maxsize=1024)
def brings_rows(beginning: str) -> bool | None:
    """Return `Statement.brings_rows` for a statement's first 64 characters."""
    words = beginning.lstrip("( \n").split(None, 1)  # a UNION may begin with a parenthesis
    return _BRINGS_ROWS.get(words[0].upper()) if words else None


#: A placeholder in a template.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")

#: The maximum number of texts that a cache of texts keeps, and the maximum length of a cached text. A full cache is
#: cleared: lists of values of many lengths produce many different texts.
TEXTS_LIMIT, TEXT_LIMIT_CHARACTERS = 1_024, 16_384


def fill(template: str, pieces: Mapping[str, str]) -> str:
    """Return a template with each placeholder ``{name}`` replaced by the piece of that name.

    A piece may contain placeholders too. Its trailing whitespace is dropped.

    Args:
        template: A constant.
        pieces: Texts by name. None may come from a user: a placeholder in it would be replaced as well.
    """
    return _PLACEHOLDER.sub(lambda found: fill(pieces[found[1]].rstrip(), pieces), template)


class Text(str):
    """The text of a statement, with its template and pieces, from which `variants` makes another engine's text.

    Args:
        text: The text.
        template: The template.
        shared: The pieces that a family's statements share.
        pieces: The other pieces.
        shapes: The parameters that are lists, if the template names its parameters; see `sql`.
    """

    __slots__ = ("pieces", "shapes", "shared", "template")

    template: str
    shared: Mapping[str, str]
    pieces: Mapping[str, str]
    shapes: tuple[Any, ...] | None

    def __new__(
        cls,
        text: str,
        template: str,
        shared: Mapping[str, str],
        pieces: Mapping[str, str],
        shapes: tuple[Any, ...] | None = None,
    ) -> Text:
        """See the class."""
        made = super().__new__(cls, text)
        made.template, made.shared, made.pieces, made.shapes = template, shared, pieces, shapes
        return made


_GROUP = re.compile(r"\[(\w+): ((?:[^\[\]]|\[\w*\])*)\]")
#: Indentation, which need not be sent.
_INDENT = re.compile(r"\n +")

_NAME = re.compile(r"(?<![\w:]):([a-z]\w*)")

#: The names of parameters in order; the fields of a group of rows under its name.
ParameterNames: TypeAlias = tuple["str | tuple[str, tuple[str, ...]]", ...]


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


def place_parameters(text: str, shapes: Sequence[Shape]) -> tuple[str, ParameterNames]:
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


def params_of(plan: ParameterNames, values: Mapping[str, Any]) -> tuple[Param, ...]:
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


def like(glob: str) -> str:
    """Return the LIKE pattern of a glob in which only ``*`` and ``?`` have a meaning."""
    escaped = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")
