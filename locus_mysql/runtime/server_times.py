"""Times as the server stores them: `aware` and `as_sql_time`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast


def aware(value: object) -> datetime:
    """Return a time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def as_sql_time(value: datetime) -> str:
    """Return a time as the text of a DATETIME(6) in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
