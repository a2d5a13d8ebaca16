"""Statements that read encrypted columns of any table, and replace their bytes: `ResealingStatements`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .statement import Param, Statement
from .template import Statements, placeholders

#: The first bytes of a value, which hold the id of its key: the format, the length of the id, and the id.
HEADER_BYTES = 34

#: The characters of base64 that hold these bytes.
HEADER_CHARACTERS = 48

#: The values of a row's key.
RowKey: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnerTable:
    """Another table, whose rows have the columns of `SealedColumn.owner`.

    Args:
        table: Its unquoted name.
        key: The columns of its primary key.
        link: The columns that are equal in both rows: the first ones of the other table's primary key.
        size: Its column with the sum of the lengths of the encrypted column; empty if it has none.
    """

    table: str
    key: tuple[str, ...]
    link: tuple[str, ...]
    size: str = ""


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
        seal: The column with the seal of a row in clear text, whose bytes the server reads, so that they are stored
            without it; NULL in an encrypted row. See `to_columns` of `runtime/sealing.py`.
        kind: The format of such bytes.
        base: The expression of what identifies the row that it builds on; empty if rows do not build on each other.
        cleared: Other columns, which hold clear text of rows from before encryption.
        is_text: Whether the column is text: encrypted bytes are stored in base64.
        emptied: Another table, with clear text from before encryption only, whose rows are removed first.
        owner_table: The table with the columns of the owner, if the row itself has not got them.
        others: Further columns that the functions below need.
        identity: Returns what identifies an encrypted row, from its columns by name; None if that is the values of
            ``row``, as it is for a row that is not encrypted.
    """

    table: str
    key: tuple[str, ...]
    owner: tuple[str, ...]
    row: tuple[str, ...]
    column: str
    name: str
    seal: str = ""
    kind: bytes = b""
    base: str = ""
    cleared: tuple[str, ...] = ()
    is_text: bool = False
    emptied: str | None = None
    owner_table: OwnerTable | None = None
    others: tuple[str, ...] = ()
    identity: Callable[[Mapping[str, Any]], tuple[str | bytes | int | None, ...]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that are read, the encrypted one last, and ``base`` before it."""
        owner = self.owner if self.owner_table is None else self.owner_table.link
        seal = (self.seal,) if self.seal else ()
        named = dict.fromkeys((*self.key, "tenant", *owner, *self.row, *self.others, *seal))
        base = ("base",) if self.base else ()
        return (*(name for name in named if name != self.column), *base, self.column)


# The next rows along the primary key, with the beginning of the encrypted column.
PAGE = """
SELECT {key}, LEFT({column}, {HEADER}), {clear}
  FROM {table}
 WHERE {after}
 ORDER BY {key}
 LIMIT %s
"""

# The next owners along their primary key, as no index begins with the link.
OWNER_PAGE = """
SELECT {owner_key}, {link}, {owner}
  FROM {owner_table}
 WHERE {after}
 ORDER BY {owner_key}
 LIMIT %s
"""

# The next rows of some owners, by ranges of the primary key.
OWNED_PAGE = """
SELECT {key}, LEFT({column}, {HEADER}), {clear}
  FROM {table}
 WHERE ({link}) IN ({rows})
   AND ({after})
 ORDER BY {key}
 LIMIT %s
"""

# Some rows by their keys, with what their bytes are bound to.
ROWS = "SELECT {columns} FROM {table} WHERE ({key}) IN ({rows})"

# The owners of some rows; it scans the owners' table.
OWNERS = "SELECT {link}, {owner} FROM {owner_table} WHERE ({link}) IN ({rows})"

# Count and remove rows of a table that has clear text only.
COUNT_EMPTIED = "SELECT COUNT(*) FROM {emptied}"
EMPTY = "DELETE FROM {emptied} LIMIT %s"

# Replace the bytes of a row if they are still those that were read.
REPLACE = "UPDATE {table} SET {assignments} WHERE {this} AND SHA2({column}, 256) = %s{same}"

# Correct the size of the owner of a row that `REPLACE` is about to replace. The owner is locked first, as in writes.
RESIZE = """
UPDATE {owner_table} o
  JOIN {table} t ON {same_link}
   SET o.{size} = o.{size} - LENGTH(t.{column}) + %s
 WHERE {this_owner} AND {this_row} AND SHA2(t.{column}, 256) = %s
"""


class ResealingStatements(Statements):
    """Statements about one encrypted column.

    Args:
        column: The column.
    """

    def __init__(self, column: SealedColumn) -> None:
        owner = column.owner_table
        clear = (*column.cleared, *([column.seal] if column.seal else []))
        same = f" AND {column.seal} <=> %s" if column.seal else ""
        super().__init__(
            {
                "table": f"`{column.table}`",
                "key": ", ".join(column.key),
                "column": column.column,
                "columns": ", ".join(f"{column.base} AS base" if name == "base" else name for name in column.columns),
                "this": " AND ".join(f"{name} = %s" for name in column.key),
                "clear": " OR ".join(f"{name} IS NOT NULL" for name in clear) or "FALSE",
                "HEADER": str(HEADER_CHARACTERS if column.is_text else HEADER_BYTES),
                "emptied": f"`{column.emptied}`",
                "owner": ", ".join(column.owner),
                "owner_table": f"`{owner.table}`" if owner else "",
                "owner_key": ", ".join(owner.key) if owner else "",
                "link": ", ".join(owner.link) if owner else "",
                "same": same,
                "this_row": " AND ".join(f"t.{name} = %s" for name in column.key),
                "this_owner": " AND ".join(f"o.{name} = %s" for name in owner.key) if owner else "",
                "same_link": " AND ".join(f"t.{name} = o.{name}" for name in owner.link) if owner else "",
                "size": owner.size if owner else "",
            }
        )
        self._column = column
        self._clear = clear

    def page(self, after: RowKey, limit: int) -> Statement:
        """Return the next rows: their keys, the beginnings of their bytes, and whether they have other clear text.

        Args:
            after: The key of the last row; empty for the first page.
            limit: The maximum number.
        """
        condition, params = _beyond(self._column.key, after)
        return Statement(self._text(PAGE, after=condition), (*params, limit))

    def owner_page(self, after: RowKey, limit: int) -> Statement:
        """Return the next rows of the owners' table: their keys, the columns of the link, and those of the owner."""
        assert self._column.owner_table is not None  # noqa: S101 - for the type checker
        condition, params = _beyond(self._column.owner_table.key, after)
        return Statement(self._text(OWNER_PAGE, after=condition), (*params, limit))

    def owned_page(self, links: Sequence[RowKey], after: RowKey, limit: int) -> Statement:
        """Return the next rows of some owners, as `page` does.

        Args:
            links: The values of the link of each owner.
            after: The key of the last row; empty for the first page.
            limit: The maximum number.
        """
        condition, params = _beyond(self._column.key, after)
        text = self._text(
            OWNED_PAGE, rows=placeholders(len(links), f"({placeholders(len(links[0]))})"), after=condition
        )
        return Statement(text, (*(value for link in links for value in link), *params, limit))

    def rows(self, keys: Sequence[RowKey]) -> Statement:
        """Return rows by their keys, with the columns of `SealedColumn.columns`."""
        one = f"({placeholders(len(self._column.key))})"
        return Statement(
            self._text(ROWS, rows=placeholders(len(keys), one)), tuple(value for key in keys for value in key)
        )

    def owners(self, links: Sequence[RowKey]) -> Statement:
        """Return rows of the owners' table: the columns of the link, and those of the owner."""
        one = f"({placeholders(len(links[0]))})"
        text = self._text(OWNERS, rows=placeholders(len(links), one))
        return Statement(text, tuple(value for link in links for value in link))

    def count_emptied(self) -> Statement:
        """Return the number of rows of the table that has clear text only."""
        return Statement(self._text(COUNT_EMPTIED))

    def empty(self, limit: int) -> Statement:
        """Remove some rows of that table."""
        return Statement(self._text(EMPTY), (limit,))

    def replace(self, row: Mapping[str, Any], content: bytes | str, digest: str) -> tuple[Statement, ...]:
        """Replace the bytes of a row, and remove its other clear text; the last statement does it.

        Args:
            row: The columns of the row by name, and those of its owner's key.
            content: The new value.
            digest: The SHA-256 of the bytes that are replaced, in hexadecimal.
        """
        names = [
            f"{self._column.column} = %s",
            *(f"{name} = NULL" for name in self._clear),
        ]
        key = tuple(row[name] for name in self._column.key)
        params: tuple[Param, ...] = (content, *key, digest)
        if self._column.seal:
            params = (*params, row[self._column.seal])
        replacement = Statement(self._text(REPLACE, assignments=", ".join(names)), params)
        owner = self._column.owner_table
        if owner is None or not owner.size:
            return (replacement,)
        of_owner = tuple(row[name] for name in owner.key)
        return Statement(self._text(RESIZE), (len(content), *of_owner, *key, digest)), replacement


def _beyond(key: Sequence[str], after: RowKey) -> tuple[str, tuple[Param, ...]]:
    """Return the condition for rows after a key, and its parameters; TRUE if there is no key.

    The conditions are nested, because MySQL uses no range of an index for ``(a, b) > (%s, %s)``.
    """
    if not after:
        return "TRUE", ()
    condition, params = f"{key[-1]} > %s", [after[-1]]
    for name, value in zip(key[-2::-1], after[-2::-1], strict=True):
        condition = f"{name} > %s OR ({name} = %s AND ({condition}))"
        params = [value, value, *params]
    return condition, tuple(params)
