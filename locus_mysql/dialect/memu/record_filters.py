"""Filters on the columns of memU's records: `RecordFilter`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..statement import Param


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """SQL conditions that select records of a tenant.

    Args:
        sql: Begins with AND; empty to select all records.
        params: The parameters of the SQL.
    """

    sql: str = ""
    params: tuple[Param, ...] = ()

    @classmethod
    def all(cls, filters: Iterable[RecordFilter]) -> RecordFilter:
        """A filter that selects the records that all of these select."""
        several = tuple(filters)
        return cls(
            "".join(one.sql for one in several),
            tuple(param for one in several for param in one.params),
        )


def equals(column: str, value: Param) -> RecordFilter:
    """Select records whose column has this value."""
    return RecordFilter("\n   AND r.`" + column + "` = %s", (value,))


def is_one_of(column: str, values: Sequence[Param]) -> RecordFilter:
    """Select records whose column has one of these values; None stands for NULL."""
    given = tuple(value for value in values if value is not None)
    parts = []
    if given:
        parts.append("r.`" + column + "` IN (" + ", ".join(["%s"] * len(given)) + ")")
    if len(given) < len(values):
        parts.append("r.`" + column + "` IS NULL")
    return RecordFilter("\n   AND (" + (" OR ".join(parts) or "FALSE") + ")", given)


def page_after(where: RecordFilter, id: str | None, limit: int) -> RecordFilter:
    """A page of the records that a filter selects, in the order of their ids. Relies on the primary key.

    Args:
        where: The filter.
        id: The last id of the page before; None for the first page.
        limit: The maximum number of records in the page.
    """
    after = "\n   AND r.id > %s" if id is not None else ""
    params = (*where.params, *(() if id is None else (id,)), limit)
    return RecordFilter(f"{where.sql}{after}\n ORDER BY r.id\n LIMIT %s", params)
