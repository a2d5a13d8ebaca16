"""Items as lines of JSON, and back: the format of exports. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...errors import CorruptCheckpoint, InvalidInput
from ...runtime.checksummed_jsonl import checksummed, floats_bytes, floats_text
from ...runtime.server_times import from_text
from .arguments import (
    SEARCHED_CHARACTERS,
    TTL_LIMIT_S,
    check_text,
    encode_metadata,
    encode_value,
    searched_text,
)
from .moving import KeptItem, KeptVector, time_text
from .namespaces import encoded_key, labels_of, path_of
from .statements.moving import KeptRow
from .vectors.coding import decode_vector, finite_floats

#: The format in the first line.
FORMAT = "locus-mysql memories 1"

_NEEDED = ("namespace", "key", "value", "version", "created_at", "updated_at")
_NAMES = frozenset((*_NEEDED, "metadata", "ttl_us", "text", "expires_at", "index", "embeddings"))

#: The largest version.
_LARGEST = 2**63 - 1


def head_line(tenant: str, namespace: tuple[str, ...]) -> bytes:
    """Return the first line.

    Args:
        tenant: The tenant of the items.
        namespace: The first labels of their namespaces.
    """
    return checksummed({"format": FORMAT, "tenant": tenant, "namespace": namespace})


def item_line(item: KeptItem, *, searched: bool = True) -> bytes:
    """Return the line of an item.

    Args:
        item: The item.
        searched: Whether the tables store text to be searched by word.

    Raises:
        CorruptCheckpoint: Its row is not JSON, or a checksum is wrong.
    """
    row = item.row
    try:
        value = json.loads(row.value)
        metadata = None if row.metadata is None else json.loads(row.metadata)
        named = {"namespace": labels_of(row.path), "key": row.key.decode()}
    except ValueError:
        raise _unreadable(row, "it is not JSON") from None
    if item.damage is not None:
        raise _unreadable(row, item.damage)
    content: dict[str, Any] = {**named, "value": value}
    if metadata is not None:
        content["metadata"] = metadata
    content |= {"version": row.version, "created_at": _iso(row.created_at), "updated_at": _iso(row.updated_at)}
    if row.expires_at is not None:
        content["expires_at"] = _iso(row.expires_at)
    if row.ttl_us is not None:
        content["ttl_us"] = row.ttl_us
    if searched and row.text != default_text(value):
        content["text"] = row.text
    if row.embed_paths is not None:
        content["index"] = json.loads(row.embed_paths)
    if item.vectors:
        content["embeddings"] = [
            {"float32": floats_text(one.raw)}
            | ({} if one.digest is None else {"digest": one.digest.hex()})
            | ({"model": one.model} if one.model else {})
            for one in item.vectors
        ]
    return checksummed(content)


def _unreadable(row: KeptRow, why: str) -> CorruptCheckpoint:
    name = row.key.decode(errors="replace")
    return CorruptCheckpoint(f"Item {name!r} in {labels_of(row.path)!r} cannot be read: {why}. Delete it.")


def default_text(value: Any) -> str | None:
    """Return the text that is searched by word if none was given: all texts in the value."""
    return searched_text(value)


def item_of_content(content: Mapping[str, Any]) -> KeptItem:
    """Return the item in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    if unknown := sorted(content.keys() - _NAMES):
        raise InvalidInput(f"An item has no field {unknown[0]!r:.50}; known are {', '.join(sorted(_NAMES))}.")
    if missing := [name for name in _NEEDED if name not in content]:
        raise InvalidInput(f"The item lacks the field {missing[0]!r}.")
    value = content["value"]
    text = content.get("text", default_text(value))
    if text is not None:
        text = check_text(text, "The text")[:SEARCHED_CHARACTERS]
    expires_at, ttl_us = content.get("expires_at"), content.get("ttl_us")
    row = KeptRow(
        path_of(content["namespace"]),
        encoded_key(content["key"]),
        encode_value(value),
        encode_metadata(content.get("metadata")),
        _number(content["version"], "version"),
        None if ttl_us is None else _number(ttl_us, "ttl_us", TTL_LIMIT_S * 1_000_000),
        text or None,
        _sql_time(content["created_at"], "created_at"),
        _sql_time(content["updated_at"], "updated_at"),
        None if expires_at is None else _sql_time(expires_at, "expires_at"),
        _embed_paths(content.get("index")),
    )
    embeddings = content.get("embeddings", [])
    if not isinstance(embeddings, list) or len(embeddings) > 65_536:
        raise InvalidInput("embeddings must be a list of at most 65,536.")
    return KeptItem(row, tuple(map(_embedding, embeddings)))


def _embed_paths(index: Any) -> str | None:
    if index is None:
        return None
    if not isinstance(index, list) or not all(isinstance(path, str) for path in index):
        raise InvalidInput("index must be a list of paths.")
    return encode_value(index)


def _embedding(content: Any) -> KeptVector:
    if not isinstance(content, dict) or "float32" not in content:
        raise InvalidInput("An embedding cannot be read: it must hold 32-bit floats in base 64, as float32.")
    raw = floats_bytes(content["float32"])
    finite_floats(decode_vector(raw), None)
    model = content.get("model", 0)
    if isinstance(model, bool) or not isinstance(model, int) or not 0 <= model < 2**32:
        raise InvalidInput("The model of an embedding must be a whole number of 32 bits.")
    if "digest" not in content:
        return KeptVector(None, raw, model)
    try:
        digest = bytes.fromhex(content["digest"])
    except (TypeError, ValueError):
        digest = b""
    if len(digest) != 16:
        raise InvalidInput("The digest of an embedding cannot be read: it must be 16 bytes in hexadecimal.")
    return KeptVector(digest, raw, model)


def _number(value: Any, what: str, largest: int = _LARGEST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise InvalidInput(f"{what} must be a whole number from 1 to {largest}.")
    return value


def _sql_time(value: Any, name: str) -> str:
    return time_text(from_text(value, name).replace(tzinfo=None))


def _iso(time: str) -> str:
    return f"{time.replace(' ', 'T')}Z"
