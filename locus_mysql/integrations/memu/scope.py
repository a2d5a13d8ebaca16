"""The scope of records: the fields of a user model, as columns, filters and parameters.

On the command line, a user model is written ``user_id,level:int``: each field with its type, unless it is text.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from ...dialect.statement import Param
from ...errors import InvalidInput, UsageError
from ...runtime.arguments import check_text
from .records import RECORDS
from .statements import Condition, Filter
from .tables import CORE, LIMITS, ScopeColumn

#: MySQL allows 64 indexes per table, and each field has one. A name has 64 characters, some of which its index needs.
FIELDS_LIMIT = 32
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,57}")

_TIMES = ("created_at", "updated_at", "happened_at")
_NEVER_COMPARED = ("embedding", "extra")


class Scope:
    """The fields of a user model.

    Args:
        user_model: A pydantic model.

    Raises:
        TypeError: A field has a name or a type that no column can have, or the name of a core field.
    """

    def __init__(self, user_model: type[BaseModel]) -> None:
        if not (isinstance(user_model, type) and issubclass(user_model, BaseModel)):
            raise TypeError(f"The user model must be a pydantic model class, not {user_model!r:.80}.")
        self.user_model = user_model
        fields = user_model.model_fields
        if len(fields) > FIELDS_LIMIT:
            raise TypeError(f"The user model has {len(fields)} fields; the limit is {FIELDS_LIMIT}.")
        self._check_names(list(fields))
        self.fields = {name: scope_field(name, field.annotation) for name, field in fields.items()}
        self._of_role = {role: {**_core_fields(role), **self.fields} for role in CORE}

    @property
    def columns(self) -> tuple[ScopeColumn, ...]:
        """The columns of the fields."""
        return tuple(ScopeColumn(field.name, field.type) for field in self.fields.values())

    def params(self, user_data: object) -> dict[str, Param]:
        """Return the values of a record's scope columns.

        Raises:
            InvalidInput: The user model does not allow the data, or lacks one of its fields.
        """
        if not isinstance(user_data, Mapping):
            raise InvalidInput(f"user_data must be a dict, not {type(user_data).__name__}.")
        unknown = sorted(str(name) for name in user_data if name not in self.fields)
        if unknown:
            raise InvalidInput(f"user_data has fields that {self.user_model.__name__} has not: {', '.join(unknown)}.")
        try:
            model = self.user_model(**user_data)
        except ValidationError as error:
            wrong = sorted({".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False)})
            raise InvalidInput(f"user_data is no {self.user_model.__name__}: {', '.join(wrong)}.") from None
        return {name: field.to_store(getattr(model, name)) for name, field in self.fields.items()}

    def key(self, tenant: str, params: Mapping[str, Param]) -> bytes:
        """Return the key of a scope: a digest of the tenant and of all fields that have a value."""
        given = sorted((name, value) for name, value in params.items() if value is not None)
        return hashlib.sha256(json.dumps([tenant, given]).encode()).digest()[:16]

    def conditions(self, role: str, where: object) -> Filter:
        """Return the conditions of a filter of ``field`` and ``field__in``; entries whose value is None are ignored.

        Raises:
            InvalidInput: A field or an operator is unknown, or a value has another type than the field.
        """
        if where is None:
            return ()
        if not isinstance(where, Mapping):
            raise InvalidInput(f"where must be a dict, not {type(where).__name__}.")
        return tuple(self._compared(role, key, expected) for key, expected in where.items() if expected is not None)

    def _compared(self, role: str, key: object, expected: Any) -> Condition:
        fields, kind = self._of_role[role], RECORDS[role].__name__
        name, operator = str(key), ""
        if name not in fields and name.endswith("__in"):
            name, operator = name.removesuffix("__in"), "in"
        elif name not in fields:
            name, _, operator = name.partition("__")
        field = fields.get(name)
        if field is None:
            raise InvalidInput(f"Unknown filter field {name!r} for {kind}. Known: {', '.join(fields)}.")
        if operator not in {"", "in"}:
            raise InvalidInput(f"Unknown operator {operator!r} in filter {str(key)!r}; there is '{name}__in' only.")
        if not operator or isinstance(expected, str):
            return Condition(name, (field.param(expected, name),))
        if isinstance(expected, Mapping) or not isinstance(expected, Iterable):
            raise InvalidInput(f"Filter {str(key)!r} needs a list of values, not {type(expected).__name__}.")
        return Condition(name, tuple(None if value is None else field.param(value, name) for value in expected))

    @staticmethod
    def _check_names(names: list[str]) -> None:
        for name in names:
            if not _NAME.fullmatch(name) or name.casefold().startswith("locus_"):
                raise TypeError(
                    f"Scope field {name!r} cannot be a column: a name has at most 58 letters, digits and '_', and "
                    "begins with a letter, but not with 'locus_'."
                )
            taken = sorted(kind.__name__ for kind in RECORDS.values() if name.casefold() in kind.model_fields)
            if taken:
                raise TypeError(
                    f"Scope fields conflict with core model fields: {name!r} is one of {', '.join(taken)}. Rename it."
                )
        if len({name.casefold() for name in names}) < len(names):
            raise TypeError("Two scope fields differ in case only, which columns cannot.")


def _core_fields(role: str) -> dict[str, Field]:
    """Return the core fields of a kind of record that filters can compare."""
    return {
        name: time_field(name) if name in _TIMES else text_field(name, LIMITS.get(name))
        for name in CORE[role]
        if name not in _NEVER_COMPARED
    }


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


#: The types of fields, by their names on the command line.
KINDS: Mapping[str, Any] = {"str": str, "int": int, "bool": bool, "uuid": UUID, "datetime": datetime}


def kinds_of(scope: Sequence[str]) -> dict[str, str]:
    """Return the fields, each with its type.

    Raises:
        UsageError: There is no such kind.
    """
    kinds: dict[str, str] = {}
    for field in scope:
        name, colon, kind = field.partition(":")
        kind = kind if colon else "str"
        if kind not in KINDS:
            raise UsageError(f"--scope has {field[:80]!r}; after a name and ':', write one of {', '.join(KINDS)}.")
        kinds[name] = kind
    return kinds


def model_of(kinds: Mapping[str, str]) -> type[BaseModel]:
    """The user model with these fields, each of which may be missing."""
    fields: dict[str, Any] = {name: (KINDS[kind] | None, None) for name, kind in kinds.items()}
    model: type[BaseModel] = create_model("UserModel", **fields)
    return model


def named(name: str, kind: str) -> str:
    """Return a field as written on the command line."""
    return name if kind == "str" else f"{name}:{kind}"


def value_of(name: str, kind: str, given: Any) -> Any:
    """Return the value of a field, of JSON, of a row or of the command line.

    Raises:
        InvalidInput: It is none of its kind.
    """
    try:
        value = None if given is None else TypeAdapter(KINDS[kind]).validate_python(given)
    except ValidationError:
        raise InvalidInput(f"{name} is no {kind}.") from None
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
