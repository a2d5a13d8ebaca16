"""The 64-bit keys by which metadata is indexed and looked up. Candidates are then compared exactly.

A key represents a scalar and the names on its path; arrays on the path are ignored, as an array contains what one of
its elements contains. So all metadata that contains a value has the keys of each scalar in the value, and one of them
is enough for the lookup. An array or object without scalars has a key for its kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from .matching import canonical

#: Most keys of one checkpoint: a row of a multi-valued index holds at most 1,604 integers, measured on MySQL 9.7.
INDEXED_KEYS_LIMIT = 1_000

#: Represents all metadata of a checkpoint with too many top-level names.
TOO_MANY_NAMES = 0

# Instead of a scalar; no value has this form.
_ARRAY, _OBJECT, _TOO_MANY = ["\0array"], ["\0object"], ["\0many"]


def index_keys(metadata: dict[str, Any]) -> list[int]:
    """Return the keys of everything in metadata, at most `INDEXED_KEYS_LIMIT`.

    If there are more, the pairs with most of them have one key each for the name alone.
    """
    if len(metadata) > INDEXED_KEYS_LIMIT:
        return [TOO_MANY_NAMES]
    keys = {name: _some_keys(name, value) for name, value in metadata.items()}
    count = sum(map(len, keys.values()))
    for name in sorted(keys, key=lambda name: len(keys[name]), reverse=True):
        if count <= INDEXED_KEYS_LIMIT:
            break
        count -= len(keys[name]) - 1
        keys[name] = {_key(_path(name), _TOO_MANY)}
    return sorted(set().union(*keys.values()))


def lookup_keys(name: str, value: Any) -> list[int]:
    """Return keys of which all metadata with ``name: value`` has at least one, and little other metadata does."""
    # The longest of several is the most likely to be rare.
    path, leaf = max(_leaves(_path(name), value), key=lambda found: len(_text(found[1])))
    return [_key(path, leaf), _key(_path(name), _TOO_MANY), TOO_MANY_NAMES]


def _some_keys(name: str, value: Any) -> set[int]:
    """Return the keys of one pair; collecting stops once they are too many."""
    keys: set[int] = set()
    for path, leaf in _leaves(_path(name), value, containers=True):
        keys.add(_key(path, leaf))
        if len(keys) > INDEXED_KEYS_LIMIT:
            break
    return keys


def _leaves(path: Any, value: Any, *, containers: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the scalars in a value, each with its path; and arrays and objects: all of them, or only empty ones."""
    if isinstance(value, dict):
        if containers or not value:
            yield path, _OBJECT
        for name, member in value.items():
            yield from _leaves(_path(name, path), member, containers=containers)
    elif isinstance(value, list):
        if containers or not value:
            yield path, _ARRAY
        for element in value:
            yield from _leaves(path, element, containers=containers)
    else:
        yield path, canonical(value)


def _path(name: str, parent: Any = None) -> Any:
    """Return a hasher that has read the names on the path to a value."""
    if parent is None:
        return hashlib.sha256(f"[{_text(name)}".encode(), usedforsecurity=False)
    path = parent.copy()
    path.update(f",{_text(name)}".encode())
    return path


def _key(path: Any, leaf: Any) -> int:
    """The first 64 bits of the SHA-256 of the JSON array of the names and the scalar."""
    whole = path.copy()
    whole.update(f",{_text(leaf)}]".encode())
    return int.from_bytes(whole.digest()[:8]) or 1


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
