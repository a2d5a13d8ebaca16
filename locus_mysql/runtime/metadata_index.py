"""By which 64-bit keys metadata is indexed, and by which of them it is looked up. Candidates are then compared exactly.

A key stands for a scalar and the names that lead to it; arrays on the way leave no trace, as an array contains what one
of its elements contains. So whatever metadata contains a value has the keys of each scalar in the value, and one of
them is enough to look it up by. An array or object without scalars has a key for its kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from .matching import canonical

#: Most keys of one checkpoint: a row of a multi-valued index holds at most 1,604 integers, measured on MySQL 9.7.
INDEXED_KEYS_LIMIT = 1_000

#: Stands for all of a checkpoint's metadata that has too many top-level names.
TOO_MANY_NAMES = 0

# Instead of a scalar; no value has this form.
_ARRAY, _OBJECT, _TOO_MANY = ["\0array"], ["\0object"], ["\0many"]


def index_keys(metadata: dict[str, Any]) -> list[int]:
    """The keys of all that metadata contains, at most `INDEXED_KEYS_LIMIT`.

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
    """Of these keys, metadata that contains ``name: value`` has at least one; others that have one are few."""
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
    """The scalars in a value, each with its path; and arrays and objects: all of them, or those that hold nothing."""
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
    """A hasher that has read the names down to a value."""
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
