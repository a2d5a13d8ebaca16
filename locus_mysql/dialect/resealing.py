"""Encrypted columns of any table (`SealedColumn`), and the statements that replace their bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from .sql import SQL, Texts
from .statement import Statement

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
    """A column with sealed bytes (`Sealing.seal`), and where a row has what they are bound to.

    Args:
        table: The table's unquoted name.
        key: The columns of its primary key.
        owner: The columns that name the owner of the row.
        row: The columns that identify the row.
        column: The encrypted column.
        name: The name under which its bytes are bound to it.
        seal: The column with the seal of a row in clear text, whose bytes the server reads, so that they are stored
            without it; NULL in an encrypted row. See `Sealing.seal_text`.
        kind: The format of such bytes.
        base: The expression of what identifies the row that it builds on; empty if rows do not build on each other.
        cleared: Other columns, which hold clear text of rows from before encryption.
        is_text: Whether the column is text: encrypted bytes are stored in base64.
        emptied: Another table, with clear text from before encryption only, whose rows are removed first.
        owner_table: The table with the columns of the owner, if the row itself has not got them.
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
    identity: Callable[[Mapping[str, Any]], tuple[str | bytes | int | None, ...]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that are read, the encrypted one last, and ``base`` before it."""
        owner = self.owner if self.owner_table is None else self.owner_table.link
        seal = (self.seal,) if self.seal else ()
        named = dict.fromkeys((*self.key, "tenant", *owner, *self.row, *seal))
        base = ("base",) if self.base else ()
        return (*(name for name in named if name != self.column), *base, self.column)


class Resealing(Texts):
    """The pieces of the statements below for one encrypted column.

    Args:
        column: The column.
    """

    def __init__(self, column: SealedColumn) -> None:
        owner = column.owner_table
        clear = (*column.cleared, *([column.seal] if column.seal else []))
        assignments = (f"{column.column} = :content", *(f"{name} = NULL" for name in clear))
        super().__init__(
            {
                "table": f"`{column.table}`",
                "key": ", ".join(column.key),
                "column": column.column,
                "columns": ", ".join(f"{column.base} AS base" if name == "base" else name for name in column.columns),
                "this": _equal("{}", column.key, "key"),
                "clear": " OR ".join(f"{name} IS NOT NULL" for name in clear) or "FALSE",
                "HEADER": str(HEADER_CHARACTERS if column.is_text else HEADER_BYTES),
                "emptied": f"`{column.emptied}`",
                "owner": ", ".join(column.owner),
                "owner_table": f"`{owner.table}`" if owner else "",
                "owner_key": ", ".join(owner.key) if owner else "",
                "link": ", ".join(owner.link) if owner else "",
                "assignments": ", ".join(assignments),
                "same": f" AND {column.seal} <=> :old_seal" if column.seal else "",
                "this_row": _equal("t.{}", column.key, "key"),
                "this_owner": _equal("o.{}", owner.key, "owner") if owner else "",
                "same_link": " AND ".join(f"t.{name} = o.{name}" for name in owner.link) if owner else "",
                "size": owner.size if owner else "",
            }
        )
        self.column = column


# The next rows along the primary key, with the beginning of the encrypted column.
PAGE = SQL("""
SELECT {key}, LEFT({column}, {HEADER}), {clear}
  FROM {table}
 WHERE {after}
 ORDER BY {key}
 LIMIT :limit
""")

# The next owners along their primary key, as no index begins with the link.
OWNER_PAGE = SQL("""
SELECT {owner_key}, {link}, {owner}
  FROM {owner_table}
 WHERE {after}
 ORDER BY {owner_key}
 LIMIT :limit
""")

# The next rows of some owners, by ranges of the primary key.
OWNED_PAGE = SQL("""
SELECT {key}, LEFT({column}, {HEADER}), {clear}
  FROM {table}
 WHERE ({link}) IN (:links)
   AND ({after})
 ORDER BY {key}
 LIMIT :limit
""")

#: Some rows by their keys, with the columns of `SealedColumn.columns`.
ROWS = SQL("SELECT {columns} FROM {table} WHERE ({key}) IN (:keys)")

#: Some owners: the columns of the link, and those of the owner. It scans the owners' table.
OWNERS = SQL("SELECT {link}, {owner} FROM {owner_table} WHERE ({link}) IN (:links)")

#: Counts and removes rows of a table that has clear text only.
COUNT_EMPTIED = SQL("SELECT COUNT(*) FROM {emptied}")
EMPTY = SQL("DELETE FROM {emptied} LIMIT :limit")

# Replace the bytes of a row if they are still those that were read, and remove its other clear text.
REPLACE = SQL("UPDATE {table} SET {assignments} WHERE {this} AND SHA2({column}, 256) = :digest{same}")

# Correct the size of the owner of a row that `REPLACE` is about to replace. The owner is locked first, as in writes.
RESIZE = SQL("""
UPDATE {owner_table} o
  JOIN {table} t ON {same_link}
   SET o.{size} = o.{size} - LENGTH(t.{column}) + :length
 WHERE {this_owner} AND {this_row} AND SHA2(t.{column}, 256) = :digest
""")


def page(sql: Resealing, after: RowKey, limit: int) -> Statement:
    """Return the query for the next rows: their keys, the beginnings of their bytes, and whether they have clear text.

    Args:
        sql: The column's.
        after: The key of the last row; empty for the first page.
        limit: The maximum number.
    """
    pieces = {"after": _beyond(sql.column.key, after)}
    return PAGE(sql, pieces=pieces, limit=limit, **_named("key", after))


def owner_page(sql: Resealing, owner_table: OwnerTable, after: RowKey, limit: int) -> Statement:
    """Return the query for the next owners: their keys, the columns of the link, and those of the owner."""
    pieces = {"after": _beyond(owner_table.key, after)}
    return OWNER_PAGE(sql, pieces=pieces, limit=limit, **_named("key", after))


def owned_page(sql: Resealing, links: Sequence[RowKey], after: RowKey, limit: int) -> Statement:
    """Return the query for the next rows of some owners, as `page` does.

    Args:
        sql: The column's.
        links: The values of the link of each owner.
        after: The key of the last row; empty for the first page.
        limit: The maximum number.
    """
    pieces = {"after": _beyond(sql.column.key, after)}
    return OWNED_PAGE(sql, pieces=pieces, links=list(links), limit=limit, **_named("key", after))


def replace(sql: Resealing, row: Mapping[str, Any], content: bytes | str, digest: str) -> tuple[Statement, ...]:
    """Return the statements that replace the bytes of a row, and remove its other clear text; the last one does it.

    Args:
        sql: The column's.
        row: The columns of the row by name, and those of its owner's key.
        content: The new value.
        digest: The SHA-256 of the bytes that are replaced, in hexadecimal.
    """
    column = sql.column
    key = _named("key", [row[name] for name in column.key])
    replacement = REPLACE(sql, content=content, digest=digest, old_seal=row.get(column.seal), **key)
    owner = column.owner_table
    if owner is None or not owner.size:
        return (replacement,)
    of_owner = _named("owner", [row[name] for name in owner.key])
    return RESIZE(sql, length=len(content), digest=digest, **key, **of_owner), replacement


def _named(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the values of a key as parameters, which are numbered, since columns may have any name."""
    return {f"{name}{number}": value for number, value in enumerate(values)}


def _equal(column: str, key: Sequence[str], name: str) -> str:
    """Return the condition for the row with a key, whose parameters are those of `_named`."""
    return " AND ".join(f"{column.format(one)} = :{name}{number}" for number, one in enumerate(key))


def _beyond(key: Sequence[str], after: RowKey) -> str:
    """Return the condition for rows after a key, whose parameters are those of `_named`; TRUE if there is no key.

    The conditions are nested, because MySQL uses no range of an index for ``(a, b) > (%s, %s)``.
    """
    if not after:
        return "TRUE"
    last = len(key) - 1
    condition = f"{key[last]} > :key{last}"
    for number in range(last - 1, -1, -1):
        name = key[number]
        condition = f"{name} > :key{number} OR ({name} = :key{number} AND ({condition}))"
    return condition


class StoredRow(NamedTuple):
    """Sealed bytes."""

    stored: bytes


def encrypted(column: str) -> str:
    """Return the condition for sealed bytes that are encrypted."""
    return f"LEFT({column}, 1) = x'FE'"


def shifted(column: str) -> str:
    """Return the expression of bytes that are sealed for another owner; its parameter ``:shift`` is `Sealing.shift`.

    Bytes too short for a seal are those of no content, or damaged, and are copied as they are. Encrypted ones, which
    only a program with keys can copy, are error 3141. OceanBase's operator ^ takes bytes for numbers, as MySQL 5.7
    does, so the checksum becomes a number.

    Args:
        column: The expression of the bytes: a format byte, a checksum of four bytes, and the content.
    """
    checksum = f"CAST(CONV(HEX(SUBSTRING({column}, 2, 4)), 16, 10) AS UNSIGNED) ^ :shift"
    content = f"SUBSTRING({column}, 5 + JSON_LENGTH(IF({encrypted(column)}, '', '1')))"
    moved = f"CONCAT(LEFT({column}, 1), UNHEX(LPAD(HEX({checksum}), 8, '0')), {content})"
    return f"IF(LENGTH({column}) < 5, {column}, {moved})"
