"""Records that the inspector returns about families without threads; and rows of statements that families share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

#: Items whose times of creation are counted by day. Families without threads have no index by time.
EXAMINED = 50_000


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """A namespace of long-term memory in a list.

    Attributes:
        namespace: Its labels.
        items: Number of its items, without those of namespaces below it.
        size_bytes: Size of their values.
        updated_at: When one of them was last written.
    """

    namespace: tuple[str, ...]
    items: int
    size_bytes: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item of long-term memory in a list.

    Attributes:
        namespace: Its namespace.
        key: Its key.
        preview: The beginning of its value, JSON text that may be truncated.
        size_bytes: Size of value and metadata.
        version: 1 for a new item; each write adds 1.
        created_at: When it was first written.
        updated_at: When it was last written.
        expires_at: When it expires; None if never.
    """

    namespace: tuple[str, ...]
    key: str
    preview: str
    size_bytes: int
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item of long-term memory.

    Attributes:
        item: Its row.
        value: The JSON value; a text that reports the damage if it is damaged.
        metadata: Its metadata.
        embeddings: Number of its embeddings.
        dims: Their number of dimensions; None without embeddings.
    """

    item: ItemRow
    value: Any
    metadata: Mapping[str, Any]
    embeddings: int
    dims: int | None


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item of long-term memory that a search found.

    Attributes:
        item: Its row.
        score: Its relevance, comparable within one search only.
    """

    item: ItemRow
    score: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The items of a family without threads that were created on each of the last 30 days and still exist.

    Attributes:
        noun: The noun for an item, in the plural.
        days: The days, as ``2026-11-22``, with the number of items, oldest first; days without items are left out.
        examined: The number of items that were counted, if there are more; None if all were counted.
    """

    noun: str
    days: Sequence[tuple[str, int]]
    examined: int | None = None


def growth_of(noun: str, rows: Sequence[CreatedRow], limit: int) -> Growth:
    """Return the growth in the rows of a statement.

    Args:
        noun: The noun for an item, in the plural.
        rows: Its rows.
        limit: The number of items that it examined at most.
    """
    days = sorted((row.day, int(row.items)) for row in rows if row.day is not None)
    examined = sum(int(row.items) for row in rows if row.day is None)
    return Growth(noun, days, examined if examined >= limit else None)


class ThreadMarker(NamedTuple):
    """A thread, and a value that every write to it changes."""

    thread_id: str
    marker: str | bytes


class CreatedRow(NamedTuple):
    """The number of items created on a day; without a day, the number of all that were examined."""

    day: str | None
    items: int


class ThreadId(NamedTuple):
    """The id of a thread."""

    thread_id: str
