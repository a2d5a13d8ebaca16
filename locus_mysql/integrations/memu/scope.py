"""The scope of records: the fields of a user model, as columns, filters and parameters."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ...dialect.memu.record_filters import RecordFilter, equals, is_one_of
from ...dialect.memu.tables import CORE, ScopeColumn
from ...dialect.statement import Param
from ...errors import InvalidInput
from .fields import Field, scope_field, text_field, time_field
from .records import LIMITS, RECORDS

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

    def condition(self, role: str, where: object) -> RecordFilter:
        """Compile a filter of ``field`` and ``field__in``; entries whose value is None are ignored.

        Raises:
            InvalidInput: A field or an operator is unknown, or a value has another type than the field.
        """
        if where is None:
            return RecordFilter()
        if not isinstance(where, Mapping):
            raise InvalidInput(f"where must be a dict, not {type(where).__name__}.")
        return RecordFilter.all(
            self._compared(role, key, expected) for key, expected in where.items() if expected is not None
        )

    def _compared(self, role: str, key: object, expected: Any) -> RecordFilter:
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
            return equals(name, field.param(expected, name))
        if isinstance(expected, Mapping) or not isinstance(expected, Iterable):
            raise InvalidInput(f"Filter {str(key)!r} needs a list of values, not {type(expected).__name__}.")
        return is_one_of(name, [None if value is None else field.param(value, name) for value in expected])

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
