"""Rows of the server: `aware` and `as_sql_time` for their times, `readable` and `decodes_rows` for damaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from ..engine.logs import DAMAGE
from ..errors import CorruptCheckpoint, LocusMySQLError


def aware(value: object) -> datetime:
    """Return a time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def as_sql_time(value: datetime) -> str:
    """Return a time as the text of a DATETIME(6) in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def readable(parse: Callable[[R], T], found: Iterable[R]) -> Iterator[T]:
    """Parse rows. Damaged rows are left out and logged, so that all others can be read.

    Args:
        parse: Parses a row; raises `CorruptCheckpoint` if the row is damaged.
        found: The rows.
    """
    for one in found:
        try:
            parsed = parse(one)
        except CorruptCheckpoint as error:
            DAMAGE.warning("A damaged row was left out of an answer; at level DEBUG, this logger names its thread.")
            DAMAGE.debug("Left out of an answer: %s", error)
        else:
            yield parsed


def decodes_rows(decode: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that decodes rows, so that it raises a clear error for rows of another shape.

    Only for functions that do nothing else; in other functions, an error may have another cause.

    Args:
        decode: Receives rows, and raises Python's own errors for too few columns or an unexpected NULL.

    Raises:
        CorruptCheckpoint: The rows are not those of the statement.
    """

    @wraps(decode)
    def decoded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return decode(*args, **kwargs)
        except LocusMySQLError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise CorruptCheckpoint(
                "The server's answer does not fit the question: columns are missing or NULL, or of another type. Look "
                "for a proxy that changes or mixes up answers, and for rows changed by hand."
            ) from error

    return decoded
