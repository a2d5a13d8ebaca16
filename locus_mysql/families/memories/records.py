"""What callers get: items, hits, and how an item is read from its row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from ...dialect.memories.writing import item_checksum
from ...drivers.interface import Row
from ...errors import CorruptCheckpoint
from ...runtime.answers import decodes_rows
from .namespaces import labels_of

Namespace: TypeAlias = tuple[str, ...]

#: Why an item cannot be read.
NO_JSON = "it is no JSON"
WRONG_CHECKSUM = "its checksum is wrong"
WRONG_EMBEDDING = "the checksum of an embedding is wrong"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """What is kept under a key.

    Args:
        namespace: Its labels.
        key: Its key.
        value: The JSON value.
        metadata: A dict of JSON values.
        version: 1 for a new item, one more with each write. An item that was deleted, or expired, begins with 1 again.
        created_at: When it was first written, by the server's clock, in UTC.
        updated_at: When it was last written.
        expires_at: From when on it is no longer there; None for never.
    """

    namespace: Namespace
    key: str
    value: Any
    metadata: dict[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """An item that a search found.

    Args:
        item: The item.
        score: How well it fits, as `MemoryStore.search` says; None if nothing was asked but fields.
    """

    item: MemoryItem
    score: float | None


class Hits(list[MemoryHit]):
    """What a search found, best first.

    Args:
        hits: The hits.
        exact: Whether they are certain to be the best. A search by meaning that has not seen its namespaces before,
            and finds a thousand embeddings or more there, compares signs first, and may miss one now and then.
    """

    def __init__(self, hits: Iterable[MemoryHit] = (), *, exact: bool = True) -> None:
        super().__init__(hits)
        self.exact = exact


@decodes_rows
def item_of(tenant: str, row: Row) -> MemoryItem:
    """The item of a row, read for a tenant.

    Raises:
        CorruptCheckpoint: What is stored is no JSON, its names are no UTF-8, or its checksum is wrong.
    """
    path, key, value, metadata, version, created_at, updated_at, expires_at, stored = row[:9]
    try:
        item = MemoryItem(
            labels_of(cast(bytes, path)),
            cast(bytes, key).decode(),
            json.loads(cast(str, value)),
            {} if metadata is None else json.loads(cast(str, metadata)),
            cast(int, version),
            _aware(cast(datetime, created_at)),
            _aware(cast(datetime, updated_at)),
            None if expires_at is None else _aware(cast(datetime, expires_at)),
        )
    except (ValueError, RecursionError):
        raise unreadable(cast(bytes, path), cast(bytes, key)) from None
    if stored != item_checksum(tenant, *cast("tuple[bytes, bytes, str, str | None, int]", row[:5])):
        raise unreadable(cast(bytes, path), cast(bytes, key), WRONG_CHECKSUM)
    return item


def hit_of(tenant: str, row: Row) -> MemoryHit:
    """The hit of a row with a score behind the item. Raises as `item_of` does."""
    return MemoryHit(item_of(tenant, row), float(cast(float, row[9])))


def unreadable(path: bytes, key: bytes, why: str = NO_JSON) -> CorruptCheckpoint:
    """The error to raise where an item was damaged, or changed by hand, so that it cannot be read."""
    try:
        name, namespace = key.decode(), labels_of(path)
    except UnicodeDecodeError:
        return CorruptCheckpoint(f"Item {key!r} in {path!r} cannot be read: its names are no UTF-8. Delete it.")
    return CorruptCheckpoint(f"Item {name!r} in {namespace!r} cannot be read: {why}. Delete it.")


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)
