"""Checks callers' arguments before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ..errors import InvalidInput
from .exact_json import check_json_object
from .matching import index_keys

T = TypeVar("T")

THREAD_ID_LIMIT = 512
CHECKPOINT_ID_LIMIT = 128
TENANT_LIMIT = 128
METADATA_LIMIT_BYTES = 65_536

#: The greatest age in days, for methods that remove what is older.
AGE_LIMIT_DAYS = 365_000


def check_thread_id(value: object) -> str:
    """Check a thread id: text of 1 to 512 characters without NUL."""
    return _check_id(value, "Thread id", THREAD_ID_LIMIT)


def check_session_id(value: object) -> str:
    """Check a session id: text of 1 to 512 characters without NUL."""
    return _check_id(value, "Session id", THREAD_ID_LIMIT)


def check_variable(value: object) -> str:
    """Check the key of a variable: text of 1 to 512 characters without NUL."""
    return _check_id(value, "A variable's key", THREAD_ID_LIMIT)


def check_checkpoint_id(value: object) -> str:
    """Check a checkpoint id: text of 1 to 128 characters without NUL."""
    return _check_id(value, "Checkpoint id", CHECKPOINT_ID_LIMIT)


def check_tenant(value: object) -> str:
    """Check a tenant: text of 1 to 128 characters without NUL."""
    return _check_id(value, "Tenant", TENANT_LIMIT)


def check_limit(value: object, what: str = "limit", least: int = 0, most: int = 2**31) -> int:
    """Check a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from {least} to {most}, not {value!r:.50}.")
    return value


def check_days(value: object, what: str = "older_than_days") -> float:
    """Check an age in days, from 0 to 365,000."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= AGE_LIMIT_DAYS:
        raise InvalidInput(f"{what} must be a number from 0 to {AGE_LIMIT_DAYS}, not {value!r:.50}.")
    return value


def check_type(value: object, kind: type[T], what: str) -> T:
    """Check that a value is of a type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} must be a {kind.__name__}, not {type(value).__name__}.")
    return value


def check_each(values: object, kind: type[T], what: str) -> list[T]:
    """Check that values are a list, or another iterable, of values of one type."""
    found, each = _listed(values, what, f"{kind.__name__} values"), f"Each of the {what}"
    return [check_type(value, kind, each) for value in found]


def check_pairs(values: object, what: str) -> list[tuple[Any, Any]]:
    """Check that values are a list, or another iterable, of pairs."""
    pairs = _listed(values, what, "pairs")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidInput(f"The {what} must be pairs, such as ('a', 1).")
    return pairs


def _listed(values: object, what: str, of: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"The {what} must be a list of {of}, not {type(values).__name__}.")
    return list(values)


def check_text(value: object, what: str) -> str:
    """Check that a text can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    _check_encodable(value, what)
    return value


def encode_metadata(metadata: object) -> tuple[str | None, str | None]:
    """Return metadata as the text to store, and the JSON array of its keys for the index.

    Raises:
        InvalidInput: It is not a dict of JSON values, holds NaN or an infinity, or is over 65,536 bytes.
    """
    if metadata is None or metadata == {}:
        return None, None
    check_json_object(metadata, "Metadata")
    assert isinstance(metadata, dict)  # noqa: S101 - for the type checker; check_json_object has raised otherwise
    try:
        text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidInput("Metadata holds NaN or an infinity, which JSON does not know. Use None or text.") from None
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=True)
        size = len(text)
    if size > METADATA_LIMIT_BYTES:
        raise InvalidInput(
            f"Metadata is {size} bytes of JSON; the limit is {METADATA_LIMIT_BYTES}. Keep it in the state."
        )
    return text, json.dumps(index_keys(metadata))


def _check_id(value: object, what: str, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    if not value:
        raise InvalidInput(f"{what} is empty; it must have 1 to {limit} characters.")
    if len(value) > limit:
        raise InvalidInput(
            f"{what} is {len(value)} characters long; the limit is {limit}. Shorten it or hash it before saving."
        )
    if "\0" in value:
        raise InvalidInput(f"{what} holds a NUL character; remove it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        _check_encodable(value, what)
    return value


def _check_encodable(value: str, what: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate, which UTF-8 cannot hold; remove it.") from None
