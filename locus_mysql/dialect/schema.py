"""The tables of one family of stores, as a value: `Schema`; and what the comments of tables say: `Layout`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .statement import Query, Statement
from .template import Text, fill, placeholders
from .upgrades import Upgrade

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
        text = fill(DESCRIBE, {"names": placeholders(len(self.names))}).strip()
        return Query(text, self.names, row=ExistingTable)

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
    wanted = tuple(name for schema in schemas for name in schema.names)
    names = placeholders(len(wanted))
    return Query(fill(DESCRIBE_ALL, {"names": names}).strip(), wanted, row=TableComment)


class TableSize(NamedTuple):
    """The estimated size of a table."""

    table: str
    rows: int
    size_bytes: int


def table_sizes(names: Sequence[str]) -> Query[TableSize]:
    """The sizes of those of these tables that exist; at least one name."""
    return Query(fill(SIZES, {"names": placeholders(len(names))}).strip(), tuple(names), row=TableSize)
