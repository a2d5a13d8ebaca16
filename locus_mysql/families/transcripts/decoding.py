"""Decodes items of transcripts, large ones in a thread: `decoded`. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.transcripts.pieces import RowKey
from ...dialect.transcripts.reading import StoredItem
from ...engine.operation import Operation, compute
from ...runtime.sealing import Sealing
from .coding import item_of
from .records import Item

#: Stored bytes of items from which they are decoded in a thread: that takes about a millisecond.
LARGE_BYTES = 65_536


def decoded(
    key: RowKey, rows: Sequence[StoredItem], sealing: Sealing, *, backwards: bool = False
) -> Operation[list[Item]]:
    """Return the items in rows.

    Args:
        key: Their transcript.
        rows: The rows.
        sealing: Decrypts the family.
        backwards: Begin with the last row.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    own = sealing.of(*key)

    def decode() -> list[Item]:
        return [item_of(key, row, own) for row in (reversed(rows) if backwards else rows)]

    if sum(len(row.content) for row in rows) < LARGE_BYTES:
        return decode()
    return (yield from compute(decode))
