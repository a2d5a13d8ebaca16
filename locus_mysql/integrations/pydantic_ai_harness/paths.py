"""Paths and metadata of memory files: the framework's rules for what a store accepts. No I/O.

The rules are those of `validate_store_path`, `validate_store_prefix` and `encode_metadata` of Pydantic AI Harness
0.62.0, which are private to its stores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,200}")

#: The longest metadata, in characters of its JSON text.
METADATA_CHARS = 4_096


def check_path(path: str) -> None:
    """Refuse a path that the framework's stores refuse.

    Raises:
        ValueError: A segment has other characters than ``A-Z a-z 0-9 _ . -``, more than 200, or could name a parent.
    """
    for segment in path.split("/"):
        if not _SEGMENT.fullmatch(segment) or ".." in segment or segment == ".":
            raise ValueError(f"invalid memory path: {path!r}")


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that is neither empty nor a path, with or without a slash behind it.

    Raises:
        ValueError: As `check_path`.
    """
    if prefix:
        check_path(prefix.removesuffix("/"))


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the metadata of a write; None if there is none.

    Raises:
        TypeError: A key or value is no text.
        ValueError: A key or value has a NUL, or the JSON text is too long.
    """
    if not metadata:
        return None
    for text in (*metadata.keys(), *metadata.values()):
        if not isinstance(text, str):
            raise TypeError("memory metadata keys and values must be strings")
        if "\x00" in text:
            raise ValueError("memory metadata keys and values must not contain NUL characters")
    chars = len(json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":")))
    if chars > METADATA_CHARS:
        raise ValueError(f"memory metadata is {chars} characters as JSON; the limit is {METADATA_CHARS}")
    return dict(metadata)
