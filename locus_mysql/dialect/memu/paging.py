"""Reading records a page at a time: `behind`."""

from __future__ import annotations

from .conditions import Condition


def behind(condition: Condition, id: str | None, limit: int) -> Condition:
    """The records that fulfil a condition, in the order of their ids, behind one. Relies on the primary key.

    Args:
        condition: What they fulfil.
        id: The last one that was read; None at the beginning.
        limit: At most this many.
    """
    after = "\n   AND r.id > %s" if id is not None else ""
    params = (*condition.params, *(() if id is None else (id,)), limit)
    return Condition(f"{condition.sql}{after}\n ORDER BY r.id\n LIMIT %s", params)
