"""The limits of a search in transcripts: items, bytes, and the size of a page. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...dialect.transcripts.inspection import SizeRow
from ...dialect.transcripts.pieces import RowKey

#: A search reads this many of the transcripts written last, this many of the last items of each, and at most this many
#: stored bytes of items.
SEARCHED_TRANSCRIPTS, SEARCHED_ITEMS, SEARCHED_BYTES = 50, 200, 8_388_608

#: Stored bytes of items that are read at once; a single item may be larger.
PAGE_BYTES = 1_048_576


class Piece(NamedTuple):
    """Neighbouring items of a transcript that are read by one query.

    Args:
        key: The transcript.
        first: The seq of the first item.
        last: That of the last.
        size_bytes: Their stored size.
    """

    key: RowKey
    first: int
    last: int
    size_bytes: int


def pieces_of(sizes: Mapping[RowKey, Sequence[SizeRow]]) -> Iterator[Piece]:
    """Yield the items to read, each piece of at most `PAGE_BYTES` or of one item.

    Args:
        sizes: The last items of each transcript, last first; the most important transcript first.
    """
    left = SEARCHED_BYTES
    for key, rows in sizes.items():
        piece: Piece | None = None
        for seq, size_bytes in rows:
            if size_bytes > left:
                break
            left -= size_bytes
            if piece is not None and piece.size_bytes + size_bytes > PAGE_BYTES:
                yield piece
                piece = None
            piece = Piece(
                key, seq, *((seq, size_bytes) if piece is None else (piece.last, piece.size_bytes + size_bytes))
            )
        if piece is not None:
            yield piece


def pages_of(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces that are read together: at most `PAGE_BYTES`, or one piece."""
    page: list[Piece] = []
    for piece in pieces:
        if page and sum(one.size_bytes for one in page) + piece.size_bytes > PAGE_BYTES:
            yield page
            page = []
        page.append(piece)
    if page:
        yield page
