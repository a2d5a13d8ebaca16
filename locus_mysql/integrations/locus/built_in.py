"""Converts arguments and results of Locus' built-in MySQL backend."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...errors import ConfigError

#: Options that have no counterpart, and what to use here.
_OTHER_OPTIONS = {
    "table_name": "use table_prefix=, which names both tables",
    "min_pool_size": "connections are opened when needed; leave it out",
    "charset": "text is always utf8mb4; leave it out",
    "collation": "ids are always compared by code point; leave it out",
    "autocommit": "transactions are managed here; leave it out",
    "use_pure": "choose the client library with driver=",
}


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the built-in backend's options as options of `MySQLConfig`.

    Raises:
        ConfigError: One has no counterpart.
    """
    for name, advice in _OTHER_OPTIONS.items():
        if name in options:
            raise ConfigError(f"{name}: {advice}.")
    own = dict(options)
    if "max_pool_size" in own:
        own.setdefault("pool_size", own.pop("max_pool_size"))
        own.pop("max_pool_size", None)
    return own


def as_returned(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict in the form of Locus' own backends: times as ISO 8601 text."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}


def as_glob(pattern: str) -> str:
    """Return a pattern for LIKE, which Locus' SQL backends accept, as a glob; a possible glob is returned unchanged.

    One with ``%`` and neither ``*`` nor ``?`` is for LIKE. ``_`` alone is not evidence, because many ids contain it.
    """
    if not isinstance(pattern, str) or "%" not in pattern or {"*", "?"} & {*pattern}:
        return pattern
    glob, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            glob.append(next(characters, "\\"))
        else:
            glob.append({"%": "*", "_": "?"}.get(character, character))
    return "".join(glob)
