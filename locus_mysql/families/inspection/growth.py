"""The growth of families without threads. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialect.inspection import CreatedRow

#: Items whose times of creation are counted by day. Families without threads have no index by time.
EXAMINED = 50_000


@dataclass(frozen=True, slots=True)
class Growth:
    """The items of a family without threads that were created on each of the last 30 days and still exist.

    Attributes:
        noun: The noun for an item, in the plural.
        days: The days, as ``2026-11-22``, with the number of items, oldest first; days without items are left out.
        examined: The number of items that were counted, if there are more; None if all were counted.
    """

    noun: str
    days: Sequence[tuple[str, int]]
    examined: int | None = None


def growth_of(noun: str, rows: Sequence[CreatedRow], limit: int) -> Growth:
    """Return the growth in the rows of a statement.

    Args:
        noun: The noun for an item, in the plural.
        rows: Its rows.
        limit: The number of items that it examined at most.
    """
    days = sorted((row.day, int(row.items)) for row in rows if row.day is not None)
    examined = sum(int(row.items) for row in rows if row.day is None)
    return Growth(noun, days, examined if examined >= limit else None)
