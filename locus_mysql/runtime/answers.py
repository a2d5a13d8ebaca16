"""Rows of an answer: as named tuples of certain types (`typed_row`), and decoded with one error (`decodes_rows`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from types import UnionType
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_type_hints

from ..drivers.interface import Row
from ..errors import CorruptCheckpoint, LocusMySQLError

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])


def typed_row(kind: type[R], row: Row) -> R:
    """A row of an answer as a named tuple.

    Args:
        kind: The named tuple; its annotations are the types that the columns may have.
        row: The row.

    Raises:
        CorruptCheckpoint: It has another number of columns, or a NULL or another type where none is expected. Then the
            answer is to another statement, or something between the server and this process changes answers.
    """
    types = _types(kind)
    if len(row) == len(types):
        for value, expected in zip(row, types, strict=True):
            if not isinstance(value, expected):
                break
        else:
            made: R = cast(Any, kind)(*row)
            return made
    raise _unfitting(len(types), row)


def decodes_rows(decode: Callable[P, T]) -> Callable[P, T]:
    """Make of a function that decodes rows one that raises a clear error for rows of another shape.

    Only for functions that do nothing else: of any other, an error may have another cause.

    Args:
        decode: Is given rows, and raises what Python raises for too few columns, or NULL where there is none.

    Raises:
        CorruptCheckpoint: The rows are not those of the statement.
    """

    @wraps(decode)
    def decoded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return decode(*args, **kwargs)
        except LocusMySQLError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise CorruptCheckpoint(
                "The server's answer does not fit the question: columns are missing or NULL, or of another type. Look "
                "for a proxy that changes or mixes up answers, and for rows changed by hand."
            ) from error

    return decoded


def check_columns(rows: Sequence[Row], columns: int) -> None:
    """Check that rows have a number of columns.

    Raises:
        CorruptCheckpoint: One has another number.
    """
    for row in rows:
        if len(row) != columns:
            raise _unfitting(columns, row)


def _unfitting(columns: int, row: Row) -> CorruptCheckpoint:
    found = ", ".join(type(value).__name__ for value in row)
    return CorruptCheckpoint(
        f"The server's answer does not fit the question: {columns} columns of certain types were expected, and these "
        f"came: {found:.300}. Look for a proxy that changes or mixes up answers."
    )


@lru_cache(maxsize=256)
def _types(kind: type[Any]) -> tuple[tuple[type, ...], ...]:
    """For each field, the types of its values."""
    hints = get_type_hints(kind)
    return tuple(
        get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],) for name in kind._fields
    )
