"""Values of Pydantic AI's types as JSON values, for the integrations of the framework and of its harness. No I/O."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from ..errors import CorruptCheckpoint, InvalidInput
from ..runtime.exact_json import decode_json, encode_json

T = TypeVar("T")


def to_json(adapter: TypeAdapter[T], value: T, what: str) -> Any:
    """Return a value as JSON value.

    Args:
        adapter: The adapter of its type.
        value: The value.
        what: Its name in the error, such as ``A message``.

    Raises:
        InvalidInput: JSON cannot hold it.
    """
    try:
        return decode_json(adapter.dump_json(value))
    except (PydanticSerializationError, RecursionError, CorruptCheckpoint) as error:
        kind = type(error).__name__
        raise InvalidInput(f"{what} holds a value that JSON cannot hold ({kind}). Nothing was stored.") from None


def from_json(adapter: TypeAdapter[T], value: Any, what: str) -> T:
    """Return the value of a JSON value.

    Args:
        adapter: The adapter of its type.
        value: The JSON value.
        what: Its name in the error, such as ``A message``.

    Raises:
        CorruptCheckpoint: This version of the framework cannot read it.
    """
    try:
        return adapter.validate_json(encode_json(value))
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(map(str, problem["loc"]))
        raise CorruptCheckpoint(
            f"{what} cannot be read by this version of Pydantic AI: {problem['type']} at {path[:200]!r}. "
            "If a later version wrote it, upgrade."
        ) from None
