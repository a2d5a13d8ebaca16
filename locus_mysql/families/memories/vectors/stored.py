"""Checking the checksums of stored embeddings: `verified_embeddings`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ....dialect.memories.vectors import embedding_checksum


class StoredEmbedding(Protocol):
    """A row with an embedding and its checksum."""

    @property
    def path(self) -> bytes:
        """The namespace's path."""

    @property
    def key(self) -> bytes:
        """The item's key."""

    @property
    def number(self) -> int:
        """The embedding's number among those of its item."""

    @property
    def embedding(self) -> bytes:
        """32-bit floats, little-endian."""

    @property
    def checksum(self) -> int:
        """The stored checksum."""


E = TypeVar("E", bound=StoredEmbedding)


def verified_embeddings(tenant: str, rows: Iterable[E]) -> list[E]:
    """Return the rows whose checksum is right, read for a tenant."""
    return [row for row in rows if is_sound(tenant, row)]


def is_sound(tenant: str, row: StoredEmbedding) -> bool:
    """Check whether the checksum of a row is right."""
    return row.checksum == embedding_checksum(tenant, row.path, row.key, row.number, row.embedding)
