"""Statements that read encrypted columns of any table, and replace their bytes: `ResealingStatements`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .statement import Param, Statement
from .template import Statements, placeholders

#: The first bytes of a value, which hold the id of its key: the format, the length of the id, and the id.
HEADER_BYTES = 34

#: The values of a row's key.
RowKey: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column whose bytes a family encrypts, and where a row has what they are bound to.

    Args:
        table: The table's unquoted name.
        key: The columns of its primary key.
        owner: The columns that name the owner of the row.
        row: The columns that identify the row.
        column: The encrypted column.
        name: The name under which its bytes are bound to it.
        cleared: Other columns, which hold clear text of rows from before encryption.
    """

    table: str
    key: tuple[str, ...]
    owner: tuple[str, ...]
    row: tuple[str, ...]
    column: str
    name: str
    cleared: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name the tenant, the owner and the row."""
        return ("tenant", *self.owner, *self.row)


# The next rows along the primary key, with the beginning of the encrypted column.
PAGE = """
SELECT {key}, LEFT({column}, {HEADER_BYTES}), {clear}
  FROM {table}
 WHERE {after}
 ORDER BY {key}
 LIMIT %s
"""

# Some rows by their keys, with what their bytes are bound to.
ROWS = "SELECT {key}, {columns}, {column} FROM {table} WHERE ({key}) IN ({rows})"

# Replace the bytes of a row if they are still those that were read.
REPLACE = "UPDATE {table} SET {assignments} WHERE {this} AND SHA2({column}, 256) = %s"


class ResealingStatements(Statements):
    """Statements about one encrypted column.

    Args:
        column: The column.
    """

    def __init__(self, column: SealedColumn) -> None:
        super().__init__(
            {
                "table": f"`{column.table}`",
                "key": ", ".join(column.key),
                "column": column.column,
                "columns": ", ".join(column.columns),
                "this": " AND ".join(f"{name} = %s" for name in column.key),
                "clear": " OR ".join(f"{name} IS NOT NULL" for name in column.cleared) or "FALSE",
                "HEADER_BYTES": str(HEADER_BYTES),
            }
        )
        self._column = column

    def page(self, after: RowKey, limit: int) -> Statement:
        """Return the next rows: their keys, the beginnings of their bytes, and whether they have other clear text.

        Args:
            after: The key of the last row; empty for the first page.
            limit: The maximum number.
        """
        if not after:
            return Statement(self._text(PAGE, after="TRUE"), (limit,))
        # As nested conditions, because MySQL uses no range of an index for (a, b) > (%s, %s).
        condition, params = f"{self._column.key[-1]} > %s", [after[-1]]
        for name, value in zip(self._column.key[-2::-1], after[-2::-1], strict=True):
            condition = f"{name} > %s OR ({name} = %s AND ({condition}))"
            params = [value, value, *params]
        return Statement(self._text(PAGE, after=condition), (*params, limit))

    def rows(self, keys: Sequence[RowKey]) -> Statement:
        """Return rows by their keys: the key, the columns of `SealedColumn.columns`, and the bytes."""
        one = f"({placeholders(len(self._column.key))})"
        return Statement(
            self._text(ROWS, rows=placeholders(len(keys), one)), tuple(value for key in keys for value in key)
        )

    def replace(self, key: RowKey, content: bytes, digest: str) -> Statement:
        """Replace the bytes of a row, and remove its other clear text.

        Args:
            key: The key of the row.
            content: The new bytes.
            digest: The SHA-256 of the bytes that are replaced, in hexadecimal.
        """
        names = [f"{self._column.column} = %s", *(f"{name} = NULL" for name in self._column.cleared)]
        params: tuple[Param, ...] = (content, *key, digest)
        return Statement(self._text(REPLACE, assignments=", ".join(names)), params)
