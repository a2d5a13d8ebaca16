"""Conditions on the columns of records: `Condition`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..statement import Param


@dataclass(frozen=True, slots=True)
class Condition:
    """What stands behind the condition on the tenant.

    Args:
        sql: Begins with AND; empty if there is none.
        params: Its parameters.
    """

    sql: str = ""
    params: tuple[Param, ...] = ()

    @classmethod
    def all(cls, conditions: Iterable[Condition]) -> Condition:
        """Several at once."""
        several = tuple(conditions)
        return cls(
            "".join(condition.sql for condition in several),
            tuple(param for condition in several for param in condition.params),
        )


def equals(column: str, value: Param) -> Condition:
    """A column of the alias ``r`` has this value."""
    return Condition("\n   AND r.`" + column + "` = %s", (value,))


def is_one_of(column: str, values: Sequence[Param]) -> Condition:
    """A column of the alias ``r`` has one of these values; None stands for having none."""
    given = tuple(value for value in values if value is not None)
    parts = []
    if given:
        parts.append("r.`" + column + "` IN (" + ", ".join(["%s"] * len(given)) + ")")
    if len(given) < len(values):
        parts.append("r.`" + column + "` IS NULL")
    return Condition("\n   AND (" + (" OR ".join(parts) or "FALSE") + ")", given)
