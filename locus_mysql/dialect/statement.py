"""SQL as a value: one statement and its parameters, independent of client libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import UnionType
from typing import Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

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
