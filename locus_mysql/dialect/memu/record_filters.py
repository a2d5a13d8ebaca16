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


def page_after(where: RecordFilter, order: Sequence[str], after: Sequence[Param] | None, limit: int) -> RecordFilter:
    """A page of the records that a filter selects. Relies on the primary key, or on an index of the ordered columns.

    Args:
        where: The filter.
        order: The columns by which the records are ordered, none of which is NULL.
        after: The values of these columns in the last record of the page before; None for the first page.
        limit: The maximum number of records in the page.
    """
    cases: list[str] = []
    params = [*where.params]
    for place, column in enumerate(order if after is not None else ()):
        equal = "".join(f"r.`{earlier}` = %s AND " for earlier in order[:place])
        cases.append(f"({equal}r.`{column}` > %s)")
        params += (after or ())[: place + 1]
    beyond = f"\n   AND ({' OR '.join(cases)})" if cases else ""
    columns = ", ".join(f"r.`{column}`" for column in order)
    return RecordFilter(f"{where.sql}{beyond}\n ORDER BY {columns}\n LIMIT %s", (*params, limit))
