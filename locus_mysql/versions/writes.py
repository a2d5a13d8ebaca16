"""A write's value as it stands in its row. No I/O."""

from __future__ import annotations

from typing import Literal

from ..errors import CorruptCheckpoint
from .sealed import seal, unseal
from .values import Encoded


def pack_write(value: Encoded, compression: Literal["zlib", "none"]) -> bytes:
    """The payload of a write's row: the length of the kind, the kind, the bytes."""
    kind = value.kind.encode()
    return seal(b"".join((len(kind).to_bytes(2, "little"), kind, value.data)), compression)


def unpack_write(payload: bytes) -> Encoded:
    """The value of a write's row.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    content = unseal(payload)
    end = 2 + int.from_bytes(content[:2], "little")
    if end > len(content):
        raise CorruptCheckpoint("A stored write cannot be read back; its bytes are damaged.")
    return Encoded(content[2:end].decode(), content[end:])
