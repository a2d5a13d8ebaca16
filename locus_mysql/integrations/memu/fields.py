"""The columns of records: their types, and their values from Python to SQL and back."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ...dialect.statement import Param
from ...errors import InvalidInput
from ...runtime.arguments import check_text

#: The maximum length of a text in a field of a user model, in characters.
SCOPE_TEXT_LIMIT = 255

_INTEGER_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Field:
    """A column of records.

    Args:
        name: The name.
        type: The SQL type.
        param: Converts a value to a parameter, or raises `InvalidInput`. Arguments: the value, and its name in errors.
        read: Converts a stored value to Python.
        limit: The maximum length of a text, in characters.
    """

    name: str
    type: str
    param: Callable[[Any, str], Param]
    read: Callable[[Any], Any]
    limit: int | None = None

    def to_store(self, value: Any) -> Param:
        """Return the parameter of a value to store.

        Raises:
            InvalidInput: The column cannot hold it.
        """
        if value is None:
            return None
        param = self.param(value, self.name)
        if self.limit is not None and isinstance(param, str) and len(param) > self.limit:
            raise InvalidInput(f"{self.name} is {len(param)} characters long; the limit is {self.limit}. Shorten it.")
        return param


def text_field(name: str, limit: int | None = None) -> Field:
    """Return the column of a text, which compares by code point."""
    return Field(name, f"VARCHAR({limit})" if limit else "LONGTEXT", check_text, _same, limit)


def time_field(name: str) -> Field:
    """Return the column of a time, in UTC."""
    return Field(name, "DATETIME(6)", _time, aware)


def scope_field(name: str, annotation: Any) -> Field:
    """Return the column of a field of a user model.

    Raises:
        TypeError: Columns of its type are not supported.
    """
    kind = _without_none(annotation)
    values = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
    if values and all(isinstance(value, str) for value in values):
        kind = str
    if isinstance(kind, type):
        if issubclass(kind, enum.Enum):
            members = [member.value for member in kind]
            if members and all(isinstance(value, str) for value in members):
                return Field(name, _TEXT, _enum_param, kind, SCOPE_TEXT_LIMIT)
        elif issubclass(kind, bool):
            return Field(name, "TINYINT", _boolean, bool)
        elif issubclass(kind, int):
            return Field(name, "BIGINT", _integer, _same)
        elif issubclass(kind, str):
            return text_field(name, SCOPE_TEXT_LIMIT)
        elif issubclass(kind, UUID):
            return Field(name, "CHAR(36)", _uuid, UUID)
        elif issubclass(kind, datetime):
            return time_field(name)
    raise TypeError(
        f"Scope field {name!r} has type {annotation}; a scope is made of str, int, bool, UUID, datetime, enums and "
        "literals of texts, each optionally with None."
    )


def aware(time: datetime | None) -> datetime | None:
    """Return a time that was read with its time zone, which is UTC."""
    return None if time is None else time.replace(tzinfo=UTC)


_TEXT = f"VARCHAR({SCOPE_TEXT_LIMIT})"


def _same(value: Any) -> Any:
    return value


def _without_none(annotation: Any) -> Any:
    """Return the type in ``X | None``."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        others = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        if len(others) == 1:
            return _without_none(others[0])
    if typing.get_origin(annotation) is typing.Annotated:
        return _without_none(typing.get_args(annotation)[0])
    return annotation


def _integer(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise InvalidInput(f"{what} must be a whole number of at most 64 bits, not {type(value).__name__}.")
    return int(value)


def _boolean(value: Any, what: str) -> int:
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be True or False, not {type(value).__name__}.")
    return int(value)


def _enum_param(value: Any, what: str) -> str:
    return check_text(value.value if isinstance(value, enum.Enum) else value, what)


def _uuid(value: Any, what: str) -> str:
    if not isinstance(value, UUID | str):
        raise InvalidInput(f"{what} must be a UUID, not {type(value).__name__}.")
    try:
        return str(UUID(str(value)))
    except ValueError:
        raise InvalidInput(f"{what} must be a UUID.") from None


def _time(value: Any, what: str) -> str:
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime, not {type(value).__name__}.")
    try:
        utc = value if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} is outside the years 1000 to 9999 in UTC, which MySQL cannot hold.") from None
    if utc.year < 1000:
        raise InvalidInput(f"{what} is before the year 1000, which MySQL cannot hold.")
    return f"{utc:%Y-%m-%d %H:%M:%S.%f}"
