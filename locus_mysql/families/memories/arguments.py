"""Checks of arguments, before anything is sent; and namespaces as paths: bytes with the order of the labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InvalidInput
from ...runtime.arguments import check_text
from ...runtime.exact_json import strings_of

#: MySQL reads JSON that is nested at most 100 deep.
DEPTH_LIMIT = 90

#: MySQL reads integers beyond 64 bits as floats, which end at 2 to the power of 1,024.
NUMBER_LIMIT_BITS = 1_023

METADATA_LIMIT_BYTES = 65_536

#: The number of characters of an item that are searched by word.
SEARCHED_CHARACTERS = 1_000_000


_TEXT = frozenset({str})
_CONTAINERS = frozenset({list, dict})
_JSON_TYPES = frozenset({int, float, bool, type(None)}) | _TEXT | _CONTAINERS


def encode_value(value: Any, what: str = "The value") -> str:
    """Return a JSON value as the text to store. The value that is loaded is equal, with its keys in the same order.

    Raises:
        InvalidInput: JSON cannot hold the value exactly, or MySQL cannot read it.
    """
    try:
        if _is_json(value):
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            text.encode()
            return text
    except (ValueError, RecursionError):  # a lone surrogate, NaN, or a value that contains itself
        pass
    _check(value, what)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def encode_metadata(metadata: object) -> str | None:
    """Return metadata as the text to store.

    Raises:
        InvalidInput: The metadata is not a dict of JSON values, or is larger than 65,536 bytes.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"Metadata must be a dict, not {type(metadata).__name__}.")
    if not metadata:
        return None
    text = encode_value(dict(metadata), "Metadata")
    size = len(text.encode())
    if size > METADATA_LIMIT_BYTES:
        raise InvalidInput(
            f"Metadata is {size} bytes of JSON; the limit is {METADATA_LIMIT_BYTES}. Keep it in the value."
        )
    return text


def check_score(value: object, what: str) -> float | None:
    """Check the least score of a hit; None for any."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidInput(f"{what} must be a number, not {value!r:.50}.")
    return value


def searched_text(value: Any) -> str | None:
    """Return the text of a value that is searched by word: at most `SEARCHED_CHARACTERS`; None if it has no text."""
    return "\n".join(strings_of(value, SEARCHED_CHARACTERS))[:SEARCHED_CHARACTERS] or None


def _is_json(value: Any) -> bool:
    """Check quickly whether `_check` would accept a value, except for NaN, infinities and lone surrogates.

    Built-in functions collect the types of all values in a list or a dict at once, which takes a tenth of the time of a
    loop. A value that contains instances of subclasses, which is rare, is checked by `_check`.
    """
    level: list[Any] = [[value]]
    for _ in range(DEPTH_LIMIT + 1):
        below: list[Any] = []
        for container in level:
            parts = container
            if type(container) is dict:
                if not set(map(type, container)) <= _TEXT:
                    return False
                parts = container.values()
            kinds = set(map(type, parts))
            if not kinds <= _JSON_TYPES:
                return False
            if int in kinds:
                numbers = parts if len(kinds) == 1 else [part for part in parts if type(part) is int]
                if max(map(int.bit_length, numbers)) > NUMBER_LIMIT_BITS:
                    return False
            if not kinds.isdisjoint(_CONTAINERS):
                below += [part for part in parts if part and type(part) in _CONTAINERS]
        if not below:
            return True
        level = below
    return False


def _check(value: Any, what: str, path: tuple[object, ...] = ()) -> None:
    if len(path) > DEPTH_LIMIT:
        raise InvalidInput(f"{what} is nested more than {DEPTH_LIMIT} deep.")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        check_text(value, f"A text in {what[0].lower()}{what[1:]}")
    elif isinstance(value, int):
        if value.bit_length() > NUMBER_LIMIT_BITS:
            raise InvalidInput(
                f"{_holds(what, path)} a whole number of more than {NUMBER_LIMIT_BITS} bits; store it as text."
            )
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{_holds(what, path)} NaN or an infinity, which JSON does not have. Use None or text.")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check(part, what, (*path, index))
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise InvalidInput(
                    f"{_holds(what, path)} a dict with a key of type {type(name).__name__}; keys must be text."
                )
            check_text(name, f"A key in {what[0].lower()}{what[1:]}")
            _check(part, what, (*path, name))
    else:
        raise InvalidInput(
            f"{_holds(what, path)} a value of type {type(value).__name__}, which JSON cannot hold exactly."
        )


def _holds(what: str, path: tuple[object, ...]) -> str:
    return f"{what} holds, at {'.'.join(map(str, path))[:200]!r}," if path else f"{what} holds"


#: The maximum number of bytes of the labels of a namespace together, as UTF-8, with one more for each label.
NAMESPACE_LIMIT_BYTES = 1_000

#: The maximum number of bytes of a key, as UTF-8.
KEY_LIMIT_BYTES = 1_000

#: Matches any label when namespaces are listed.
ANY_LABEL = "*"


def path_of(namespace: object, *, empty: bool = False, what: str = "Namespace") -> bytes:
    """Return the path of a namespace: its labels as UTF-8, each followed by a NUL.

    UTF-8 keeps the order of code points, and no label contains a NUL. So paths sort like tuples of labels, and a path
    begins with another one exactly if its labels begin with the other's.

    Args:
        namespace: A tuple or list of labels, which are texts.
        empty: Whether the labels may be empty, as a prefix that stands for all namespaces.
        what: The name of the argument in errors.

    Raises:
        InvalidInput: The namespace is not a sequence of texts, a label is empty or contains NUL, or it is too long.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InvalidInput(f"{what} must be a tuple of texts, not {type(namespace).__name__}.")
    if not namespace and not empty:
        raise InvalidInput(f"{what} is empty; it must have one label or more.")
    path = b"".join(_encoded(label, f"A label of the {what.lower()}") + b"\0" for label in namespace)
    if len(path) > NAMESPACE_LIMIT_BYTES:
        raise InvalidInput(
            f"{what} takes {len(path)} bytes, with one for each label; the limit is {NAMESPACE_LIMIT_BYTES}. Shorten "
            "its labels."
        )
    return path


def labels_of(path: bytes) -> tuple[str, ...]:
    """Return the labels of a path."""
    return tuple(label.decode() for label in path.split(b"\0")[:-1])


def encoded_key(key: object) -> bytes:
    """Return a key as bytes.

    Raises:
        InvalidInput: The key is not text, is empty, contains NUL, or is too long.
    """
    encoded = _encoded(key, "Key")
    if len(encoded) > KEY_LIMIT_BYTES:
        raise InvalidInput(
            f"Key takes {len(encoded)} bytes of UTF-8; the limit is {KEY_LIMIT_BYTES}. Shorten or hash it."
        )
    return encoded


def literal_start(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels before the first wildcard."""
    return tuple(labels[: labels.index(ANY_LABEL)] if ANY_LABEL in labels else labels)


def begins_with(namespace: Sequence[str], pattern: Sequence[str]) -> bool:
    """Check whether the first labels of a namespace match a pattern; ``*`` stands for any label."""
    return len(namespace) >= len(pattern) and _fits(namespace[: len(pattern)], pattern)


def ends_with(namespace: Sequence[str], pattern: Sequence[str]) -> bool:
    """Check whether the last labels of a namespace match a pattern; ``*`` stands for any label."""
    return len(namespace) >= len(pattern) and _fits(namespace[len(namespace) - len(pattern) :], pattern)


def _fits(labels: Iterable[str], pattern: Iterable[str]) -> bool:
    return all(wanted in (ANY_LABEL, label) for label, wanted in zip(labels, pattern, strict=True))


def _encoded(text: object, what: str) -> bytes:
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text, not {type(text).__name__}.")
    if not text:
        raise InvalidInput(f"{what} is empty.")
    if "\0" in text:
        raise InvalidInput(f"{what} holds a NUL character; remove it.")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate, which UTF-8 cannot hold; remove it.") from None
