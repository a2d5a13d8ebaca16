"""Times as the server stores them, and as exports write them: `aware`, `as_sql_time` and `from_text`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from ..errors import InvalidInput


def aware(value: object) -> datetime:
    """Return a time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def as_sql_time(value: datetime) -> str:
    """Return a time as the text of a DATETIME(6) in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def from_text(value: Any, name: str) -> datetime:
    """Return the time in UTC that a line of an export has.

    Args:
        value: The text, in the form of ISO 8601.
        name: The name of the field, for errors.

    Raises:
        InvalidInput: It is no such text, has no zone, or is before the year 1000, which MySQL cannot hold.
    """
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.astimezone(UTC).year < 1000:
            raise ValueError
        return time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a time with its zone, as in '2026-01-31T12:00:00.000000Z'.") from None
