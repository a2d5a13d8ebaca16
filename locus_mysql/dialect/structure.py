"""Columns and indexes of tables: those that a CREATE TABLE statement declares, and those that a server has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .statement import Query
from .template import fill, placeholders

# DEFAULT and EXTRA show whether an INSERT may leave out a column that this package does not know.
DESCRIBE_COLUMNS = """
SELECT c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE, c.COLLATION_NAME, c.GENERATION_EXPRESSION,
       c.COLUMN_DEFAULT, c.EXTRA
  FROM information_schema.COLUMNS c
 WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME IN ({names})
 ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION
"""

DESCRIBE_INDEXES = """
SELECT s.TABLE_NAME, s.INDEX_NAME, s.NON_UNIQUE, s.COLUMN_NAME, s.SUB_PART, s.EXPRESSION, s.INDEX_TYPE, s.IS_VISIBLE
  FROM information_schema.STATISTICS s
 WHERE s.TABLE_SCHEMA = DATABASE() AND s.TABLE_NAME IN ({names})
 ORDER BY s.TABLE_NAME, s.INDEX_NAME, s.SEQ_IN_INDEX
"""

#: Types whose values have a collation.
_TEXT = re.compile(r"(?:var)?char\b|(?:tiny|medium|long)?text\b")

#: The display width of an integer, which OceanBase shows, and MySQL before 8.0.19; BOOLEAN is TINYINT(1).
_WIDTH = re.compile(r"(?<=int)\(\d+\)")

_TYPE = r"\w+(?:\s*\([^()]*\))?(?:\s+UNSIGNED)?"
_COLUMN = re.compile(rf"`?(\w+)`?\s+({_TYPE})(.*)", re.DOTALL | re.IGNORECASE)
_GENERATED = re.compile(r"\bAS\s+\((.*)\)\s+(STORED|VIRTUAL)", re.DOTALL)
_INDEX = re.compile(r"(PRIMARY|UNIQUE|FULLTEXT)?\s*KEY\s+(?:`?(\w+)`?\s*)?\((.*)\)(?:\s+WITH PARSER \w+)?", re.DOTALL)
_PART = re.compile(r"`?(\w+)`?(?:\((\d+)\))?")
_INTRODUCER = re.compile(r"_utf8mb\d(?=')")


class ColumnRow(NamedTuple):
    """A column of an existing table."""

    table: str
    name: str
    type: str
    nullable: str
    collation: str | None
    expression: str | None
    default: str | None
    extra: str | None


class IndexRow(NamedTuple):
    """A part of an index of an existing table."""

    table: str
    name: str
    non_unique: int
    column: str | None
    length: int | None
    expression: str | None
    kind: str
    visible: str


class Column(NamedTuple):
    """A column.

    Args:
        type: Its type in small letters, without the display width of integers.
        nullable: Whether it may be NULL.
        collation: The collation of text.
        generated: The expression of a generated column, in one form for all versions of the server.
        required: Whether each INSERT must name it.
    """

    type: str
    nullable: bool
    collation: str | None = None
    generated: str = ""
    required: bool = False


class Index(NamedTuple):
    """An index.

    Args:
        parts: Its columns and expressions.
        unique: Whether it is unique.
        fulltext: Whether it is a full-text index.
        visible: Whether the optimizer may use it.
    """

    parts: tuple[str, ...]
    unique: bool = False
    fulltext: bool = False
    visible: bool = True

    def __str__(self) -> str:
        kind = "unique, " if self.unique else "full text, " if self.fulltext else ""
        return f"{kind}on ({', '.join(self.parts)})"


class Structure(NamedTuple):
    """The columns and the indexes of a table by their names in small letters."""

    columns: dict[str, Column]
    indexes: dict[str, Index]


def describe_columns(names: Sequence[str]) -> Query[ColumnRow]:
    """Return the query for the columns of those of the tables that exist."""
    return Query(fill(DESCRIBE_COLUMNS, {"names": placeholders(len(names))}).strip(), tuple(names), row=ColumnRow)


def describe_indexes(names: Sequence[str]) -> Query[IndexRow]:
    """Return the query for the indexes of those of the tables that exist."""
    return Query(fill(DESCRIBE_INDEXES, {"names": placeholders(len(names))}).strip(), tuple(names), row=IndexRow)


def declared(create: str) -> Structure:
    """Return what a CREATE TABLE statement of this package declares.

    Args:
        create: The statement. Foreign keys in it are left out.
    """
    body, options = _parenthesized(create)
    collation = re.search(r"COLLATE=(\w+)", options)
    columns: dict[str, Column] = {}
    indexes: dict[str, Index] = {}
    for item in _items(body):
        if item.startswith("FOREIGN KEY"):
            continue
        if found := _INDEX.fullmatch(item):
            kind, name, parts = found.groups()
            index = Index(tuple(map(_part, _items(parts))), kind in ("PRIMARY", "UNIQUE"), kind == "FULLTEXT")
            indexes[(name or "PRIMARY").lower()] = index
        elif found := _COLUMN.fullmatch(item):
            columns[found[1].lower()] = _column(found[2], found[3], collation[1] if collation else None)
        else:
            raise ValueError(f"This is neither a column nor an index: {item}")
    for name in indexes["primary"].parts if "primary" in indexes else ():
        columns[name] = columns[name]._replace(nullable=False)
    return Structure(columns, indexes)


def existing(columns: Iterable[ColumnRow], indexes: Iterable[IndexRow]) -> dict[str, Structure]:
    """Return the structures of existing tables by their names in small letters."""
    found: dict[str, Structure] = {}
    for column in columns:
        structure = found.setdefault(column.table.lower(), Structure({}, {}))
        structure.columns[column.name.lower()] = _existing_column(column)
    for row in indexes:
        structure = found.setdefault(row.table.lower(), Structure({}, {}))
        name, before = row.name.lower(), structure.indexes.get(row.name.lower())
        index = Index(
            (*(before.parts if before else ()), _existing_part(row)),
            not row.non_unique,
            row.kind.upper() == "FULLTEXT",
            row.visible.upper() != "NO",
        )
        structure.indexes[name] = index
    return found


def _column(type: str, rest: str, collation: str | None) -> Column:
    plain = _plain_type(type)
    generated = _GENERATED.search(rest)
    if not _TEXT.match(plain):
        collation = None
    elif named := re.search(r"\bCOLLATE\s+(\w+)", rest):
        collation = named[1]
    required = "NOT NULL" in rest and not generated and "DEFAULT" not in rest and "AUTO_INCREMENT" not in rest
    return Column(plain, "NOT NULL" not in rest, collation, _plain(generated[1]) if generated else "", required)


def _existing_column(row: ColumnRow) -> Column:
    plain, expression, extra = _plain_type(row.type), row.expression or "", (row.extra or "").lower()
    nullable = row.nullable == "YES"
    left_out = nullable or expression or row.default is not None or "auto_increment" in extra or "default" in extra
    collation = row.collation if _TEXT.match(plain) else None
    return Column(plain, nullable, collation, _plain(expression), not left_out)


def _plain_type(type: str) -> str:
    plain = _WIDTH.sub("", re.sub(r"\s+", " ", type.lower()).replace(" (", "("))
    return "tinyint" if plain == "boolean" else plain


def _part(text: str) -> str:
    if text.startswith("("):
        return _plain(text)
    found = _PART.fullmatch(text)
    if found is None:
        raise ValueError(f"This is no part of an index: {text}")
    return found[1].lower() + (f"({found[2]})" if found[2] else "")


def _existing_part(row: IndexRow) -> str:
    if row.column is None or row.expression:
        return _plain(row.expression or "")
    return row.column.lower() + (f"({row.length})" if row.length else "")


def _plain(expression: str) -> str:
    """Return an expression in one form: servers add quotes, introducers of strings, parentheses and spaces."""
    text = _INTRODUCER.sub("", expression.replace("\\'", "'").replace("`", "").lower())
    text = re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()
    while text.startswith("(") and _parenthesized(text)[1] == "":
        text = text[1:-1]
    return text


def _parenthesized(text: str) -> tuple[str, str]:
    """Return the text within the first parentheses, and the text after them."""
    begin, depth = text.index("("), 0
    for index in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[begin + 1 : index], text[index + 1 :]
    raise ValueError(f"A parenthesis is not closed: {text}")


def _items(body: str) -> Iterator[str]:
    """Return the items of a list, which are separated by commas outside of parentheses."""
    depth, item = 0, ""
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield item.strip()
            item = ""
        else:
            item += character
    yield item.strip()
