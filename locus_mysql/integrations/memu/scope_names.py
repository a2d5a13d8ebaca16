"""A user model as written on the command line: ``user_id,level:int``, each field with its type unless it is text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, create_model

from ...errors import InvalidInput, UsageError

#: The types of fields, by their names on the command line.
KINDS: Mapping[str, Any] = {"str": str, "int": int, "bool": bool, "uuid": UUID, "datetime": datetime}

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


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
    """The value of a field, of JSON, of a row or of the command line.

    Raises:
        InvalidInput: It is none of its kind.
    """
    try:
        match kind, given:
            case _, None:
                return None
            case "int", str():
                return int(given)
            case "bool", int() | str():
                return _TRUTH[str(given).lower()]
            case "uuid", str():
                return UUID(given)
            case "datetime", str() | datetime():
                time = datetime.fromisoformat(given) if isinstance(given, str) else given
                return time.replace(tzinfo=UTC) if time.tzinfo is None else time
    except (ValueError, KeyError):
        raise InvalidInput(f"{name} is no {kind}.") from None
    return given
