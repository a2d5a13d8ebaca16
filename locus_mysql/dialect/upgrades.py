"""Steps from one layout of a family's tables to the next: `Upgrade`, declared beside the family's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .statement import Param

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
