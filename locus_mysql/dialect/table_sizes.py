"""A statement that reads the sizes of tables as the server estimates them; it reads none of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .statement import Query
from .template import fill, placeholders

SIZES = """
SELECT t.TABLE_NAME, CAST(COALESCE(t.TABLE_ROWS, 0) AS SIGNED),
       CAST(COALESCE(t.DATA_LENGTH, 0) + COALESCE(t.INDEX_LENGTH, 0) AS SIGNED)
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({names})
"""


class TableSize(NamedTuple):
    """The estimated size of a table."""

    table: str
    rows: int
    size_bytes: int


def table_sizes(names: Sequence[str]) -> Query[TableSize]:
    """The sizes of those of these tables that exist; at least one name."""
    return Query(fill(SIZES, {"names": placeholders(len(names))}).strip(), tuple(names), row=TableSize)
