"""Rows of an answer as the named tuples that their query declares: `read_rows`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from ..dialect.statement import column_types
from ..drivers.interface import Row
from ..errors import CorruptCheckpoint

R = TypeVar("R", bound=tuple[Any, ...])

#: The types of a row's values.
_Types: TypeAlias = tuple[type, ...]


def read_rows(row_type: type[R], rows: Sequence[Row]) -> list[R]:
    """Return the rows as named tuples.

    Rows of the same types are checked once per process; after that, the check is one look-up per row.

    Args:
        row_type: The named tuple; its annotations are the types that the columns may have.
        rows: The rows.

    Raises:
        CorruptCheckpoint: A row has another number of columns, or a NULL or another type where none is expected. Then
            the answer belongs to another statement, or a component between the server and this process modifies
            answers.
    """
    accepted = _accepted(row_type)
    for row in rows:
        types = tuple(map(type, row))
        if types not in accepted:
            _check(row_type, types)
            accepted.add(types)
    return [tuple.__new__(row_type, row) for row in rows]


def _check(row_type: type[Any], types: _Types) -> None:
    declared = column_types(row_type)
    if len(types) != len(declared) or not all(map(issubclass, types, declared)):
        found = ", ".join(one.__name__ for one in types)
        wanted = ", ".join("|".join(one.__name__ for one in alternatives) for alternatives in declared)
        raise CorruptCheckpoint(
            f"The server's answer does not fit the question: {len(declared)} columns of certain types were expected "
            f"({row_type.__name__}: {wanted:.300}), and these came: {found:.300}. Look for a proxy that changes or "
            f"mixes up answers; if you wrote the query, compare {row_type.__name__} with its columns."
        )


@lru_cache(maxsize=1024)
def _accepted(row_type: type[Any]) -> set[_Types]:
    """Return the set of the types of rows that `_check` has passed; `read_rows` adds to it."""
    return set()
