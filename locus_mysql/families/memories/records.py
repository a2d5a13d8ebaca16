"""Items and hits as returned to callers, and their construction from rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from ...errors import CorruptCheckpoint
from ...runtime.server_rows import aware
from .arguments import labels_of
from .sealed_items import SealedItems
from .statements.items import ItemRow

Namespace: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """An item of long-term memory. Times are those of the server, in UTC.

    Args:
        namespace: The labels of the namespace.
        key: The key.
        value: The JSON value.
        metadata: A dict of JSON values.
        version: 1 for a new item, each write adds 1. After deletion or expiry, it starts at 1 again.
        created_at: The time of the first write.
        updated_at: The time of the last write.
        expires_at: The time from which on the item is no longer found; None for never.
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
        score: The score, see `MemoryStore.search`; None for a search by fields only.
    """

    item: MemoryItem
    score: float | None


class Hits(list[MemoryHit]):
    """The hits of a search, best first.

    Args:
        hits: The hits.
        exact: Whether these are the best for certain. The first search by meaning in namespaces with 1,000 embeddings
            or more compares sign bits first, and may occasionally miss a hit.
    """

    def __init__(self, hits: Iterable[MemoryHit] = (), *, exact: bool = True) -> None:
        super().__init__(hits)
        self.exact = exact


def item_of(tenant: str, row: ItemRow, sealed: SealedItems) -> MemoryItem:
    """Return the item of a row that was read for a tenant.

    Args:
        tenant: The tenant.
        row: The row.
        sealed: Opens it.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: The item was changed or moved, it is not JSON, or its names are not UTF-8.
    """
    value = sealed.open_value(tenant, (row.path, row.key), row.value, row.metadata, row.seal)
    try:
        return MemoryItem(
            labels_of(row.path),
            row.key.decode(),
            json.loads(value),
            {} if row.metadata is None else json.loads(row.metadata),
            row.version,
            aware(row.created_at),
            aware(row.updated_at),
            None if row.expires_at is None else aware(row.expires_at),
        )
    except (ValueError, RecursionError):
        raise unreadable(row.path, row.key) from None


def hit_of(tenant: str, row: ItemRow, sealed: SealedItems) -> MemoryHit:
    """Return the hit of a row. Raises as `item_of` does."""
    return MemoryHit(item_of(tenant, row, sealed), None if row.score is None else float(row.score))


def unreadable(path: bytes, key: bytes) -> CorruptCheckpoint:
    """Return the error for an item that cannot be read, as it was damaged or changed by hand."""
    try:
        name, namespace = key.decode(), labels_of(path)
    except UnicodeDecodeError:
        return CorruptCheckpoint(f"Item {key!r} in {path!r} cannot be read: its names are not UTF-8. Delete it.")
    return CorruptCheckpoint(f"Item {name!r} in {namespace!r} cannot be read: it is not JSON. Delete it.")
