"""Columns and indexes of tables: those that CREATE TABLE declares, those that a server has, and their `Differences`.

And tables in partitions, for engines that spread partitions over servers: `partitioned`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .schema import Schema
from .statement import Query, Statement, fill, placeholders
from .variants import FamilyRefused, Variant

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


class Differences(NamedTuple):
    """Sentences about the tables of a family.

    Args:
        wrong: What has to be corrected.
        extra: Columns and indexes that others added, and that do no harm.
    """

    wrong: tuple[str, ...]
    extra: tuple[str, ...]


def compare(schema: Schema, found: Mapping[str, Structure], variant: Variant | None) -> Differences:
    """Compare tables with what a family declares. Missing tables are left out.

    Args:
        schema: The family's tables.
        found: The existing tables by their names in small letters; see `structure.existing`.
        variant: The dialect of the engine; None for MySQL.
    """
    wrong: list[str] = []
    extra: list[str] = []
    for name, statement in zip(schema.names, schema.create(), strict=True):
        existing = found.get(name.lower())
        if existing is None:
            continue
        wanted = declared((statement if variant is None else variant.statement(statement)).sql)
        for index in schema.optional_indexes:
            if index not in existing.indexes:
                wanted.indexes.pop(index, None)
        if variant is not None:
            _leave_out_inner_columns(wanted.indexes, existing.indexes)
        wrong += [
            *_wrong_columns(name, wanted.columns, existing.columns),
            *_wrong_indexes(name, wanted.indexes, existing.indexes),
        ]
        if not schema.columns:  # else users choose some of the columns
            extra += _extra(name, wanted, existing)
    return Differences(tuple(wrong), tuple(extra))


def _leave_out_inner_columns(wanted: dict[str, Index], existing: dict[str, Index]) -> None:
    """Compare no parts of full-text and functional indexes: OceanBase shows hidden columns of its own for them."""
    for name, index in wanted.items():
        if name in existing and (index.fulltext or any(" " in part for part in index.parts)):
            existing[name] = existing[name]._replace(parts=index.parts)


def _wrong_columns(table: str, wanted: Mapping[str, Column], existing: Mapping[str, Column]) -> Iterator[str]:
    for name, column in wanted.items():
        have = existing.get(name)
        if have is None:
            yield f"Table {table!r} has no column {name!r} ({column.type})."
        else:
            for is_, should_be in _column_facts(have, column):
                yield f"Column {name!r} of table {table!r} {is_}; it should be {should_be}."
    for name, column in existing.items():
        if name not in wanted and column.required:
            yield (
                f"Column {name!r} of table {table!r} is not locus-mysql's, and has no default value, so no row can be "
                "added; it should allow NULL or have one."
            )


def _column_facts(have: Column, column: Column) -> Iterator[tuple[str, str]]:
    """Yield what a column is and what it should be."""
    if have.type != column.type:
        yield f"has type {have.type}", column.type
    elif have.collation != column.collation:
        yield f"has collation {have.collation}", f"{column.collation}"
    if have.nullable != column.nullable:
        yield ("may be NULL", "NOT NULL") if have.nullable else ("may not be NULL", "NULL")
    if have.generated != column.generated:
        is_ = f"is generated as ({have.generated})" if have.generated else "is not generated"
        yield is_, f"generated as ({column.generated})" if column.generated else "an ordinary column"


def _wrong_indexes(table: str, wanted: Mapping[str, Index], existing: Mapping[str, Index]) -> Iterator[str]:
    for name, index in wanted.items():
        have = existing.get(name)
        shown = name.upper() if name == "primary" else name
        if have is None:
            yield f"Table {table!r} has no index {shown!r}, {index}."
        elif have._replace(visible=True) != index:
            yield f"Index {shown!r} of table {table!r} is {have}; it should be {index}."
        elif not have.visible:
            yield f"Index {shown!r} of table {table!r} is invisible; it should be visible."


def _extra(table: str, wanted: Structure, existing: Structure) -> Iterator[str]:
    for name, column in existing.columns.items():
        if name not in wanted.columns and not column.required:
            yield f"Table {table!r} also has a column {name!r}, which locus-mysql does not use."
    for name, index in existing.indexes.items():
        if name not in wanted.indexes:
            harm = " It refuses rows that are equal in these columns." if index.unique else ""
            yield f"Table {table!r} also has an index {name!r}, {index}, which locus-mysql does not need.{harm}"


#: The maximum number of partitions of a table in OceanBase.
MAX_PARTITIONS = 8192

#: Possible partitioning keys: the columns that identify a thread, a session, a namespace or a conversation. Every
#: statement about one of these has a condition on all of its columns, and so reads one partition. A ledger is
#: partitioned by its tokens.
KEYS = (
    ("tenant", "thread_id"),
    ("tenant", "session_id"),
    ("tenant", "sid"),
    ("tenant", "path"),
    ("tenant", "kind", "collection", "name"),
    ("owner",),
    ("tenant", "token"),
)

_UNIQUE_KEY = re.compile(r"(?:PRIMARY KEY|UNIQUE KEY \w+) \(([^()]*)\)")


class CannotPartition(Exception):
    """A table's keys do not all have the columns of one of `KEYS`."""


def partitioned(schema: Schema, variant: Variant, partitions: int | None) -> tuple[Statement, ...]:
    """Return the statements that create a family's tables on an engine, in partitions if a number is given.

    Args:
        schema: The tables.
        variant: The engine's variant of the dialect.
        partitions: The number of partitions of each table, 2 to `MAX_PARTITIONS`; None for tables without.

    Raises:
        FamilyRefused: The engine does not support the family.
        CannotPartition: The primary key and the unique keys of a table have no columns in common that fit.
    """
    if schema.family not in variant.families:
        raise FamilyRefused(variant.name, schema.family)
    statements = [variant.statement(statement) for statement in schema.create()]
    if partitions is None:
        return tuple(statements)
    keys = [", ".join(_partition_key(one.sql, name)) for name, one in zip(schema.names, statements, strict=True)]
    return tuple(
        Statement(f"{statement.sql}\n  PARTITION BY KEY ({key}) PARTITIONS {partitions}")
        for key, statement in zip(keys, statements, strict=True)
    )


def _partition_key(text: str, table: str) -> Sequence[str]:
    """Return the columns that a table is partitioned by. Each unique key must include them."""
    unique = [{column.strip() for column in columns.split(",")} for columns in _UNIQUE_KEY.findall(text)]
    for key in KEYS:
        if unique and all(columns.issuperset(key) for columns in unique):
            return key
    raise CannotPartition(
        f"Table `{table}` cannot be partitioned: not all of its unique keys have a thread, a session or a namespace. "
        "Create the tables of this family without --partitions."
    )
