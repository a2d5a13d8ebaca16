"""Rows of an answer with names and types: `typed_row`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from ..drivers.interface import Row
from ..errors import CorruptCheckpoint

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
