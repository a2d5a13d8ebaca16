"""Describes a list's text as copies from an older text and inserted bytes: `find_copies` and `copied`. No I/O.

A compaction of a conversation replaces some of its messages and keeps the others. The texts are divided where an object
of JSON may begin, and equal pieces are found by their content, wherever they stand in the older text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....records.framing import DamagedFrame

#: Texts below this size are stored whole: copies would save little.
SMALLEST_COPIED_FROM_BYTES = 4_096

#: A shorter run of equal pieces is stored again, as the description of a copy takes up to 20 bytes.
SMALLEST_COPY_BYTES = 64

#: Maximum number of copies in a row: the longest are chosen. So a row's header stays within the bytes that lists and
#: charts read.
MAX_COPIES = 100

# A piece begins with the brace.
_SEPARATOR = b",{"


class Copy(NamedTuple):
    """One step of assembling a text.

    Args:
        offset: The position in the older text from which bytes are copied.
        copied: The number of these bytes.
        inserted: The number of bytes of the row that follow them.
    """

    offset: int
    copied: int
    inserted: int


class _Run(NamedTuple):
    """Equal bytes of both texts."""

    at: int
    offset: int
    length: int


def find_copies(older: bytes, text: bytes) -> list[Copy]:
    """Return the copies that make a text of an older one; empty if too little is equal.

    Args:
        older: The text to copy from.
        text: The text to describe.
    """
    if min(len(older), len(text)) < SMALLEST_COPIED_FROM_BYTES:
        return []
    runs = [run for run in _runs(older, text) if run.length >= SMALLEST_COPY_BYTES]
    if not runs:
        return []
    if sum(run.length for run in runs) > len(older):  # as the reader allows no more, equal items are stored again
        return []
    if len(runs) > MAX_COPIES:
        runs = sorted(sorted(runs, key=lambda run: -run.length)[:MAX_COPIES])
    ends = [*[run.at for run in runs[1:]], len(text)]
    copies = [Copy(0, 0, runs[0].at)] if runs[0].at else []
    for run, end in zip(runs, ends, strict=True):
        copies.append(Copy(run.offset, run.length, end - run.at - run.length))
    return copies


def inserted_pieces(text: bytes, copies: Sequence[Copy]) -> Iterator[memoryview]:
    """Return the bytes of a text that its copies do not contain."""
    view, at = memoryview(text), 0
    for copy in copies:
        at += copy.copied
        yield view[at : at + copy.inserted]
        at += copy.inserted


def copied(older: memoryview, copies: Sequence[Copy], inserted: memoryview) -> list[memoryview]:
    """Return the pieces of a text.

    Args:
        older: The text to copy from.
        copies: What to copy.
        inserted: The bytes to insert.

    Raises:
        DamagedFrame: The older text is too short, or more is copied than it has: so rows cannot grow without end.
    """
    pieces, at = [], 0
    if sum(copy.copied for copy in copies) > len(older):
        raise DamagedFrame("it copies from a text of another length")
    for copy in copies:
        if copy.offset + copy.copied > len(older):
            raise DamagedFrame("it copies from a text of another length")
        pieces += [older[copy.offset : copy.offset + copy.copied], inserted[at : at + copy.inserted]]
        at += copy.inserted
    return pieces


def _runs(older: bytes, text: bytes) -> Iterator[_Run]:
    """Return equal runs of pieces, in the order of the text. None is part of another one."""
    known, starts = _pieces(older)
    pieces, at = _pieces(text)
    # The first piece, before the first brace, is not copied.
    found: dict[bytes, int] = {}
    for index in range(len(known) - 1, 0, -1):
        found[known[index]] = index
    here = 1
    while here < len(pieces):
        there = found.get(pieces[here])
        if there is None:
            here += 1
            continue
        begin, offset = here, starts[there]
        while here < len(pieces) and there < len(known) and pieces[here] == known[there]:
            here, there = here + 1, there + 1
        end = at[here - 1] + 1 + len(pieces[here - 1])
        comma = here < len(pieces) and there < len(known)
        yield _Run(at[begin], offset, end + comma - at[begin])


def _pieces(text: bytes) -> tuple[list[bytes], list[int]]:
    """Divide a text. Return its pieces without their first brace, and the position of each piece's brace."""
    pieces = (b"," + text).split(_SEPARATOR)
    starts, at = [], -1 - len(_SEPARATOR)
    for piece in pieces:
        starts.append(at + 1)
        at += len(piece) + len(_SEPARATOR)
    return pieces, starts
