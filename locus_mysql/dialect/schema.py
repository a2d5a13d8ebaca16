"""The tables of one family of stores, as a value: `Schema`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .statement import Statement

#: What the comment of each of our tables begins with.
LAYOUT_COMMENT = "locus-mysql layout "

# The name and the comment of each of the tables that is there, and the names of its indexes.
DESCRIBE = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT,
       (SELECT GROUP_CONCAT(DISTINCT s.INDEX_NAME) FROM information_schema.STATISTICS s
         WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME)
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
"""

# The same of several families at once, without the indexes.
DESCRIBE_ALL = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
"""

DESCRIBE_COLUMNS = """
SELECT c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE
  FROM information_schema.COLUMNS c
 WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME IN ({names})
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a family.

    Args:
        name: Its unquoted name.
        definition: What stands in its CREATE TABLE statement behind the name, without the comment.
    """

    name: str
    definition: str


@dataclass(frozen=True, slots=True)
class NeededIndex:
    """An index without which a table, though of the right layout, cannot be used as configured.

    Args:
        table: The table's name.
        index: The index's name.
        advice: What to do if it is not there.
    """

    table: str
    index: str
    advice: str


@dataclass(frozen=True, slots=True)
class NeededColumn:
    """A column that tables of the right layout may lack, as users choose some of their columns.

    Args:
        table: The table's name.
        column: The column's name.
        advice: What to do if it is not there.
    """

    table: str
    column: str
    advice: str = "Compare the table with what `python -m locus_mysql schema` prints."


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables that belong together. A `Database` makes, or checks, each schema once.

    Args:
        family: What they hold, in one word, such as ``agents``: stands in the comment of each, so that no family reads
            another's tables.
        layout_version: Stands in the comment too; raised when a change of layout needs a migration.
        tables: The tables, in the order in which they are made.
        needed: Indexes that must be there.
        columns: Columns that are looked for, where not all tables of a layout have the same.
        options: What the command that prints the tables needs besides the family's name.
    """

    family: str
    layout_version: int
    tables: tuple[Table, ...]
    needed: tuple[NeededIndex, ...] = ()
    columns: tuple[NeededColumn, ...] = ()
    options: str = ""

    @property
    def command(self) -> str:
        """What prints the tables, behind ``python -m locus_mysql``."""
        return f"schema --family {self.family}{self.options}"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' unquoted names."""
        return tuple(table.name for table in self.tables)

    @property
    def comment(self) -> str:
        """The comment of each table."""
        return f"{LAYOUT_COMMENT}{self.layout_version}, {self.family}"

    def describe(self) -> Statement:
        """The name, the comment and the names of the indexes of each table that is there."""
        names = ", ".join(["%s"] * len(self.tables))
        return Statement(DESCRIBE.replace("{names}", names).strip(), self.names)

    def describe_columns(self) -> Statement:
        """Table, name and type of each column that is there."""
        names = ", ".join(["%s"] * len(self.tables))
        return Statement(DESCRIBE_COLUMNS.replace("{names}", names).strip(), self.names)

    def create(self) -> tuple[Statement, ...]:
        """Make the tables that are missing. Many processes may run this at once."""
        return tuple(
            Statement(f"CREATE TABLE IF NOT EXISTS `{table.name}` {table.definition}\n  COMMENT='{self.comment}'")
            for table in self.tables
        )

    def grants(self, database: str, account: str) -> tuple[str, ...]:
        """The GRANT statements for an account that uses these tables and does not make them.

        Args:
            database: The database they are in.
            account: Quoted, such as ``'agent'@'%'``.
        """
        return tuple(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON `{database}`.`{name}` TO {account}" for name in self.names
        )

    def drop(self) -> Statement:
        """Drop the tables with all that is in them."""
        return Statement("DROP TABLE IF EXISTS " + ", ".join(f"`{name}`" for name in reversed(self.names)))


def describe_all(schemas: Sequence[Schema]) -> Statement:
    """The name and the comment of each table of these families that is there."""
    wanted = tuple(name for schema in schemas for name in schema.names)
    names = ", ".join(["%s"] * len(wanted))
    return Statement(DESCRIBE_ALL.replace("{names}", names).strip(), wanted)
