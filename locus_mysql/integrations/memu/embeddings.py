"""Embeddings as 32-bit floats, little-endian, as in the other families; here zeros are allowed, as in memU."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from ...families.memories.vectors.coding import decode_vector, encode_floats, finite_floats


def encode_embedding(embedding: Any, what: str = "The embedding") -> bytes | None:
    """Return an embedding as it is stored; None for none.

    Raises:
        InvalidInput: The embedding is not a list of up to 16,383 numbers, or contains NaN or an infinity.
    """
    if embedding is None:
        return None
    if isinstance(embedding, Sized) and len(embedding) == 0 and not isinstance(embedding, str | bytes):
        return b""  # other stores accept empty embeddings; no search finds them
    return encode_floats(finite_floats(embedding, None, what))


def decode_embedding(raw: bytes | None) -> list[float] | None:
    """Return the numbers of a stored embedding."""
    return None if raw is None else decode_vector(raw).tolist()


def dims_of(raw: bytes | None) -> int | None:
    """Return the width of a stored embedding; None for none."""
    return None if raw is None else len(raw) // 4
