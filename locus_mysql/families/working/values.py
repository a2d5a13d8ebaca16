"""Encodes callers' values as JSON, checked before anything is sent, and decodes them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from ...errors import CapacityExceeded, CorruptCheckpoint, InvalidInput
from ...runtime.exact_json import check_json, decode_json, encode_json
from .calls import INT_LEAST, INT_MOST

M = TypeVar("M", bound=BaseModel)

#: Longer canonical forms are replaced by digests of 32 bytes; no other canonical form has that length.
CANONICAL_BYTES = 32


class Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


#: The expectation of `compare_and_set` that a variable does not exist. None is a value.
MISSING: Final = Missing()


def encode(value: object, what: str, limit_bytes: int, session_id: str) -> bytes:
    """A JSON value, or a pydantic model, as JSON.

    Args:
        value: The value.
        what: The name of the value in errors.
        limit_bytes: The maximum number of bytes of the JSON.
        session_id: For errors.

    Raises:
        InvalidInput: JSON cannot hold it exactly.
        CapacityExceeded: The JSON has more bytes.
    """
    text = _encode_model(value, what) if isinstance(value, BaseModel) else _encode_json(value, what)
    if len(text) > limit_bytes:
        raise CapacityExceeded("max_value_bytes", len(text), limit_bytes, session_id)
    if not isinstance(value, BaseModel):
        check_json(value, what)  # after the limit: it takes ten times as long as encoding
    return text


def _encode_json(value: object, what: str) -> bytes:
    try:
        return encode_json(value)
    except InvalidInput as error:
        check_json(value, what)  # its message names the path
        raise InvalidInput(str(error).replace("The state", what)) from None


def _encode_model(model: BaseModel, what: str) -> bytes:
    try:
        text = to_json(model, inf_nan_mode="constants")
    except PydanticSerializationError:  # it holds a lone surrogate, or what JSON cannot hold
        text = encode_json(model.model_dump(mode="json"))
    try:
        again = decode_model(type(model), text)
    except ValidationError:
        again = None
    if again != model:
        raise InvalidInput(
            f"{what} is a {type(model).__name__} that does not come back equal from its JSON. Store what "
            "model_dump(mode='json') gives, or change the model so that it validates what it dumps."
        )
    return text


def canonical_form(text: bytes) -> bytes:
    """Bytes that are equal for equal values, whatever the order of keys in their dicts.

    JSON without a dict is already the same for equal values, as one encoder makes all of it.
    """
    if b"{" in text and len(text) > 2:
        text = json.dumps(decode_json(text), sort_keys=True, separators=(",", ":")).encode()
    return text if len(text) < CANONICAL_BYTES else hashlib.sha256(text).digest()


def decode(text: bytes, what: str, *names: str) -> Any:
    """Decode JSON.

    Args:
        text: The JSON.
        what: The name of the value in errors, as a format.
        names: The arguments of the format.

    Raises:
        CorruptCheckpoint: It is not JSON.
    """
    try:
        return decode_json(text)
    except CorruptCheckpoint:
        called = what.format(*names)
        raise CorruptCheckpoint(
            f"{called} is not readable JSON; it was changed by other means than this package. Set it again."
        ) from None


def decode_model(model: type[M], text: bytes) -> M:
    """Decode JSON as a model."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        if b"\\ud" not in text.lower():
            raise
    return model.model_validate(decode_json(text))  # lone surrogates are beyond pydantic's own reader


def check_step(value: object) -> int:
    """Check the number that is added to a variable: a whole number of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not INT_LEAST <= value <= INT_MOST:
        raise InvalidInput(f"A variable is incremented by a whole number of 64 bits, not {value!r:.50}.")
    return value
