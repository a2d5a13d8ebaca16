"""The tables of one family as a value: `Schema`; what their comments say: `Layout`; steps to a newer one: `Upgrade`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .statement import Param, Query, R, Statement, Text

_COLUMN_EXISTS = """
SELECT 1 AS done FROM information_schema.COLUMNS c
 WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = %s AND c.COLUMN_NAME = %s
"""

_INDEX_EXISTS = """
SELECT DISTINCT 1 AS done FROM information_schema.STATISTICS s
 WHERE s.TABLE_SCHEMA = DATABASE() AND s.TABLE_NAME = %s AND s.INDEX_NAME = %s
"""


class Step(NamedTuple):
    """One statement of an upgrade. It is recognised if it was carried out before, so that it may be repeated.

    Args:
        words: What it does, for an operator.
        sql: The statement.
        done: The query that finds a row if the step was carried out; empty for a `Backfill`.
        params: Its parameters.
        blocks: What waits while the statement runs, such as ``writes``; empty if InnoDB runs it online.
        backfill: How the step walks the table, if it changes rows.
    """

    words: str
    sql: str
    done: str = ""
    params: tuple[str, ...] = ()
    blocks: str = ""
    backfill: Backfill | None = None


class Backfill(NamedTuple):
    """A change of rows, in short transactions of a limited number of rows in the order of the primary key.

    Args:
        table: The table's name.
        key: The columns of the primary key.
        assignments: What is set.
        condition: The rows that are not changed yet. A row that was changed must not fulfil it.
        rows: The number of rows that one transaction looks at.
    """

    table: str
    key: tuple[str, ...]
    assignments: str
    condition: str
    rows: int

    def bound(self, after: int) -> str:
        """Return the query for the key at which the next transaction ends; its parameters are those of `_beyond`."""
        where = f" WHERE {self._beyond('>')}" if after else ""
        key = ", ".join(self.key)
        return f"SELECT {key} FROM `{self.table}`{where} ORDER BY {key} LIMIT 1 OFFSET {self.rows - 1}"  # noqa: S608 - constants

    def update(self, after: int, until: int) -> str:
        """Return the statement that changes the rows between two keys, each of which may be absent."""
        begin = f" AND {self._beyond('>')}" if after else ""
        end = f" AND NOT {self._beyond('>')}" if until else ""
        return f"UPDATE `{self.table}` SET {self.assignments} WHERE ({self.condition}){begin}{end}"  # noqa: S608 - constants

    def _beyond(self, sign: str) -> str:
        """Return the condition for rows after a key. MySQL uses the index for it, and not for ``(a, b) > (x, y)``."""
        alternatives = [
            " AND ".join([*(f"{column} = %s" for column in self.key[:index]), f"{self.key[index]} {sign} %s"])
            for index in range(len(self.key))
        ]
        return f"({' OR '.join(f'({one})' for one in alternatives)})"

    def params(self, key: Sequence[Any]) -> tuple[Param, ...]:
        """Return the parameters of the condition for rows after a key."""
        return tuple(value for index in range(len(key)) for value in key[: index + 1])


class Upgrade(NamedTuple):
    """The steps from the layout before to a layout.

    Args:
        to: The number of the layout.
        usable_from: The oldest layout whose programs can read and write the upgraded tables; ``to`` if none can.
            Programs of these layouts may run during the migration, too.
        steps: The steps, in their order.
    """

    to: int
    usable_from: int
    steps: tuple[Step, ...]


def add_column(table: str, column: str, definition: str, *, fulltext: bool = False) -> Step:
    """Return the step that adds a column at the end of a table.

    Args:
        table: The table's name.
        column: The column's name.
        definition: Its type and the rest; programs of the layout before name it in no INSERT.
        fulltext: Whether the table has a full-text index. Then InnoDB copies the table, and writes wait.
    """
    how = "ALGORITHM=INPLACE, LOCK=SHARED" if fulltext else "ALGORITHM=INSTANT"
    return Step(
        f"add column {column} to {table}",
        f"ALTER TABLE `{table}` ADD COLUMN `{column}` {definition}, {how}",
        _COLUMN_EXISTS.strip(),
        (table, column),
        "writes" if fulltext else "",
    )


def add_index(table: str, index: str, parts: str, *, unique: bool = False, fulltext: bool = False) -> Step:
    """Return the step that adds an index.

    Args:
        table: The table's name.
        index: The index's name.
        parts: Its columns or expressions, without the parentheses around all of them.
        unique: Whether it is unique.
        fulltext: Whether it is a full-text index, which InnoDB makes while writes wait.
    """
    kind = "FULLTEXT KEY" if fulltext else "UNIQUE KEY" if unique else "KEY"
    lock = "SHARED" if fulltext else "NONE"
    return Step(
        f"add index {index} to {table}",
        f"ALTER TABLE `{table}` ADD {kind} `{index}` ({parts}), ALGORITHM=INPLACE, LOCK={lock}",
        _INDEX_EXISTS.strip(),
        (table, index),
        "writes" if fulltext else "",
    )


def backfill(
    table: str, key: tuple[str, ...], *, assignments: str, condition: str, words: str, rows: int = 1_000
) -> Step:
    """Return the step that changes rows in short transactions; see `Backfill`.

    Args:
        table: The table's name.
        key: The columns of the primary key.
        assignments: What is set, as in ``UPDATE … SET``.
        condition: The rows that are not changed yet.
        words: What it does, for an operator.
        rows: The number of rows that one transaction looks at.
    """
    change = Backfill(table, key, assignments, condition, rows)
    limited = f"{change.update(0, 0)} LIMIT {rows}"
    return Step(words, f"-- repeat until it changes no row:\n{limited}", backfill=change)


#: The beginning of the comment of each table.
COMMENT = "locus-mysql: "

_COMMENT = re.compile(r"locus-mysql: ([\w-]+) layout (\d+)(?:, usable from (\d+))?")


class Layout(NamedTuple):
    """What the comment of a table says.

    Args:
        family: The family of the table.
        number: The number of the layout.
        usable_from: The oldest layout whose programs can use the table.
    """

    family: str
    number: int
    usable_from: int

    @property
    def comment(self) -> str:
        """The comment with this content."""
        older = "" if self.usable_from == self.number else f", usable from {self.usable_from}"
        return f"{COMMENT}{self.family} layout {self.number}{older}"


def read_comment(comment: str) -> Layout | None:
    """Return what the comment of a table says; None if this package did not write it."""
    found = _COMMENT.fullmatch(comment)
    if found is None:
        return None
    number = int(found[2])
    return Layout(found[1], number, int(found[3] or number))


# The comment is missing if the name belongs to a view that cannot be used. MAX: see docs/design/writes.md.
DESCRIBE = """
SELECT t.TABLE_NAME, MAX(t.TABLE_COMMENT),
       MAX((SELECT GROUP_CONCAT(DISTINCT s.INDEX_NAME) FROM information_schema.STATISTICS s
             WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME))
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
 GROUP BY t.TABLE_NAME
"""

# The same for several families at once, without the indexes.
DESCRIBE_ALL = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
"""

# Information_schema has no index for comments: not for calls that are made often.
ALL_OWN = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND LEFT(t.TABLE_COMMENT, 11) = 'locus-mysql'
 ORDER BY t.TABLE_NAME
"""

# The sizes as the server estimates them; it reads no rows.
SIZES = """
SELECT t.TABLE_NAME, CAST(COALESCE(t.TABLE_ROWS, 0) AS SIGNED),
       CAST(COALESCE(t.DATA_LENGTH, 0) + COALESCE(t.INDEX_LENGTH, 0) AS SIGNED)
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
"""


class ExistingTable(NamedTuple):
    """An existing table; the names of its indexes are separated by commas."""

    name: str
    comment: str | None
    indexes: str | None


class TableComment(NamedTuple):
    """An existing table and its comment."""

    name: str
    comment: str | None


#: All tables of this package in the database, with any prefix.
DESCRIBE_OWN = Query(ALL_OWN.strip(), row=TableComment)


def about_tables(text: str, names: Sequence[str], row: type[R]) -> Query[R]:
    """Return a query about those of some tables that exist; ``{names}`` in its text stands for their names."""
    return Query(text.strip().replace("{names}", ", ".join(["%s"] * len(names))), tuple(names), row=row)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a family.

    Args:
        name: Its unquoted name.
        definition: The rest of its CREATE TABLE statement after the name, without the comment.
    """

    name: str
    definition: str


@dataclass(frozen=True, slots=True)
class NeededIndex:
    """An index that the configuration needs, and that a table of the right layout may lack.

    Args:
        table: The table's name.
        index: The index's name.
        advice: What to do if it is missing.
        other: The index that a table made with another configuration has instead; empty if there is none.
        other_advice: What to do then.
    """

    table: str
    index: str
    advice: str
    other: str = ""
    other_advice: str = ""


@dataclass(frozen=True, slots=True)
class NeededColumn:
    """A column that tables of the right layout may lack, as users choose some of their columns.

    Args:
        table: The table's name.
        column: The column's name.
        advice: What to do if it is missing.
    """

    table: str
    column: str
    advice: str = "Compare the table with what `python -m locus_mysql schema` prints."


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables that belong together. A `Database` creates, or checks, each schema once.

    Args:
        family: The family's name, such as ``agents``. The comment of each table has it, so that no family reads
            another's tables.
        layout_version: Stored in the comment of each table; raised with each change of the tables.
        tables: The tables, in the order in which they are created.
        needed: Indexes that must exist.
        columns: Columns that must exist, where tables of the same layout may differ.
        options: Arguments of the command that prints the tables, besides the family's name.
        upgrades: The steps from each released layout to the next.
        optional_indexes: Indexes that existing tables may lack, as they follow from columns that users choose.
        encrypts: Whether the family encrypts what it stores, if the configuration has ``encryption``. Otherwise its
            tables are refused then.
    """

    family: str
    layout_version: int
    tables: tuple[Table, ...]
    needed: tuple[NeededIndex, ...] = ()
    columns: tuple[NeededColumn, ...] = ()
    options: str = ""
    optional_indexes: tuple[str, ...] = ()
    encrypts: bool = False
    upgrades: tuple[Upgrade, ...] = ()

    @property
    def command(self) -> str:
        """The command that prints the tables, after ``python -m locus_mysql``."""
        return f"schema --family {self.family}{self.options}"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' unquoted names."""
        return tuple(table.name for table in self.tables)

    @property
    def has_foreign_keys(self) -> bool:
        """Return whether a table has a foreign key, whose creation needs the privilege REFERENCES."""
        return any("REFERENCES" in table.definition for table in self.tables)

    @property
    def comment(self) -> str:
        """The comment of each table."""
        usable_from = self.upgrades[-1].usable_from if self.upgrades else self.layout_version
        return Layout(self.family, self.layout_version, usable_from).comment

    def describe(self) -> Query[ExistingTable]:
        """Return the query for those of the tables that exist."""
        return about_tables(DESCRIBE, self.names, ExistingTable)

    def create(self) -> tuple[Statement, ...]:
        """Return the statements that create missing tables. Many processes may run them at once."""
        return tuple(
            Statement(Text(text, text, {"FAMILY": self.family}, {}))
            for table in self.tables
            for text in (f"CREATE TABLE IF NOT EXISTS `{table.name}` {table.definition}\n  COMMENT='{self.comment}'",)
        )

    def grants(self, database: str, account: str, *, migrates: bool = False) -> tuple[str, ...]:
        """Return the GRANT statements for an account that uses these tables and does not create them.

        Args:
            database: The database they are in.
            account: Quoted, such as ``'agent'@'%'``.
            migrates: Whether the account also upgrades the tables.
        """
        more = ", CREATE, ALTER" if migrates else ""
        return tuple(
            f"GRANT SELECT, INSERT, UPDATE, DELETE{more} ON `{database}`.`{name}` TO {account}" for name in self.names
        )

    def check_privileges(self) -> tuple[Statement, ...]:
        """Return statements that fail unless the account may read, add and delete rows. They carry out nothing."""
        return tuple(
            Statement(text)
            for name in self.names
            for text in (
                f"EXPLAIN SELECT * FROM `{name}` WHERE FALSE",  # noqa: S608 - names are validated
                f"EXPLAIN INSERT INTO `{name}` () VALUES ()",  # noqa: S608 - as above
                f"EXPLAIN DELETE FROM `{name}` WHERE FALSE",  # noqa: S608 - as above
            )
        )

    def drop(self) -> Statement:
        """Return the statement that drops the tables with all their rows."""
        return Statement("DROP TABLE IF EXISTS " + ", ".join(f"`{name}`" for name in reversed(self.names)))


def describe_all(schemas: Sequence[Schema]) -> Query[TableComment]:
    """Return the query for the existing tables of these families."""
    return about_tables(DESCRIBE_ALL, [name for schema in schemas for name in schema.names], TableComment)


class TableSize(NamedTuple):
    """The estimated size of a table."""

    table: str
    rows: int
    size_bytes: int


def table_sizes(names: Sequence[str]) -> Query[TableSize]:
    """The sizes of those of these tables that exist; at least one name."""
    return about_tables(SIZES, names, TableSize)
