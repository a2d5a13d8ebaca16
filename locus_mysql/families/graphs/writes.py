"""A write's value as it stands in its row. No I/O."""

from __future__ import annotations

from typing import Literal

from ...errors import CorruptCheckpoint
from .sealed import ANYWHERE, Place, seal, unseal
from .values import Encoded


def pack_write(value: Encoded, compression: Literal["zlib", "none"], place: Place = ANYWHERE) -> bytes:
    """The payload of a write's row at a place: the length of the kind, the kind, the bytes."""
    kind = value.kind.encode()
    return seal(b"".join((len(kind).to_bytes(2, "little"), kind, value.data)), compression, place)


def unpack_write(payload: bytes, place: Place = ANYWHERE) -> Encoded:
    """The value of a write's row, read at a place.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    content = unseal(payload, place)
    end = 2 + int.from_bytes(content[:2], "little")
    if end > len(content):
        raise CorruptCheckpoint("A stored write cannot be read back; its bytes are damaged.")
    return Encoded(content[2:end].decode(), content[end:])
