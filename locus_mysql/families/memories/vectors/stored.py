"""Checking the checksums of stored embeddings: `verified_embeddings`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar, cast

from ....dialect.memories.vectors import embedding_checksum
from ..sealed_items import SealedItems


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


def verified_embeddings(tenant: str, rows: Iterable[E], sealed: SealedItems) -> list[E]:
    """Return the rows whose checksum is right, read for a tenant, with their embeddings decrypted."""
    return [opened(tenant, row, sealed) for row in rows if is_sound(tenant, row)]


def opened(tenant: str, row: E, sealed: SealedItems) -> E:
    """Return a row with its embedding decrypted.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed, or moved from another place.
    """
    embedding = sealed.embedding(tenant, row.path, row.key, row.number, row.embedding)
    if embedding is row.embedding:
        return row
    replaced: E = cast(Any, row)._replace(embedding=embedding)
    return replaced


def is_sound(tenant: str, row: StoredEmbedding) -> bool:
    """Check whether the checksum of a row is right."""
    return row.checksum == embedding_checksum(tenant, row.path, row.key, row.number, row.embedding)
