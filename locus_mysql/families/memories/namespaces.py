"""Namespaces as paths: bytes with the order and the prefixes of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import InvalidInput

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
