"""Embeddings as they are read from their rows, checked: `sound_embeddings`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ....dialect.memories.vectors import embedding_checksum
from ....drivers.interface import Row


def sound_embeddings(tenant: str, rows: Iterable[Row]) -> list[tuple[Row, bytes]]:
    """The rows whose checksum is right, each with its embedding.

    Args:
        tenant: Whose they are.
        rows: They begin with path, key, place, embedding and checksum.
    """
    return [(row, cast(bytes, row[3])) for row in rows if is_sound(tenant, row)]


def is_sound(tenant: str, row: Row) -> bool:
    """Whether the checksum of a row is right."""
    return row[4] == embedding_checksum(tenant, *cast("tuple[bytes, bytes, int, bytes]", row[:4]))
