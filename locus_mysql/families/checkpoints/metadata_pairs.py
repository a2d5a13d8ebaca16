"""Pairs of metadata: their lookup keys, and the exact comparison of candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...runtime.arguments import check_text, encode_metadata
from ...runtime.matching import Containment, lookup_keys


def lookup_text(key: object, value: Any) -> str:
    """Return the keys under which checkpoints with this top-level pair are indexed, as JSON, and check the pair."""
    return json.dumps(keys_of(key, value))


def keys_of(key: object, value: Any) -> list[int]:
    """Return the same keys as a list."""
    name = check_text(key, "Metadata key")
    encode_metadata({name: value})
    return lookup_keys(name, value)


def holds(metadata: Mapping[str, Any], key: str, wanted: Containment) -> bool:
    """Return whether metadata has this top-level key with a value that contains the wanted one."""
    return key in metadata and wanted.within(metadata[key])
