"""Storage of large values as chains of parts, of which each holds the bytes added to an earlier value. No I/O.

The earlier value is chosen by skip deltas, as in Subversion's FSFS. The value at position i of a line builds on the one
at i with its lowest set bit cleared. So a chain has at most log2(i) + 1 parts, and every value that a later one builds
on is in the chain of the newest: a process that knows a checkpoint knows all values that the next one needs.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple, TypeAlias

from .values import Body, EncodedValue, Grown, divide

#: Values up to this size are stored in the checkpoint's own row: a part's row and its reference take as much.
INLINE_BYTES = 256


class Inline(NamedTuple):
    """A small value, in the checkpoint's row."""

    value: EncodedValue


class Link(NamedTuple):
    """A part of a body, and the position of its bytes. It replaces the bytes of earlier parts from there on.

    Args:
        part: Its number.
        start: The position of its first byte.
        length: The length of the body that ends with it.
        checksum: The CRC-32 of its bytes. Numbers may be assigned again after a server lost its newest commits, so a
            part is identified by its checksum too.
    """

    part: int
    start: int
    length: int
    checksum: int


class Stored(NamedTuple):
    """A large value: its parts in order, and the bytes around them.

    Args:
        kind: How to read its bytes.
        front: Bytes before the body.
        back: The number of bytes after it.
        position: Its position in the line of values that continue each other.
        digest: The digest of the body.
        chain: The parts; the first holds a whole value, each other one the added bytes.
    """

    kind: str
    front: bytes
    back: bytes
    position: int
    digest: bytes
    chain: tuple[Link, ...]

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return self.chain[-1].length


Value: TypeAlias = Inline | Stored


class NewPart(NamedTuple):
    """A value to store.

    Args:
        value: Its last part is the new one, under the number given.
        body: Its body.
        chunk: The bytes of the new part; None if there is none.
    """

    value: Value
    body: Body | None
    chunk: bytes | None


def store(encoded: EncodedValue | Grown, before: Value | None, body_before: Body | None, new_part: int) -> NewPart:
    """Return the new part to store for a value.

    Args:
        encoded: The value.
        before: A stored value that it may extend.
        body_before: The body of that value, if it is cached; otherwise its digest is compared.
        new_part: The number of a new part.
    """
    if isinstance(encoded, Grown) and encoded.size_bytes <= INLINE_BYTES:
        encoded = EncodedValue(encoded.kind, encoded.data)
    if isinstance(encoded, EncodedValue) and len(encoded.data) <= INLINE_BYTES:
        return NewPart(Inline(encoded), None, None)
    kind = encoded.kind
    content: bytes | tuple[bytes, ...]
    if isinstance(encoded, EncodedValue):
        front, content, back = divide(encoded)
    else:
        front, content, back = encoded.front, encoded.pieces, b""
    if not isinstance(before, Stored) or before.kind != kind:
        return _whole(kind, front, Body(content), back, new_part)
    body = Body(content, body_before)
    same = body.shared
    if body_before is None and body.begins_with(before.length, before.digest):
        same = before.length
    if same == before.length == body.length:
        unchanged = Stored(kind, front, back, before.position, before.digest, before.chain)
        return NewPart(unchanged, body_before or body, None)
    position = before.position + 1
    base = line(before.position).index(position & (position - 1))
    kept = min(same, seen_bytes(before.chain, base))
    if 2 * kept < body.length:
        return _whole(kind, front, body, back, new_part)
    chunk = body.cut(kept, body.length)
    chain = (*before.chain[: base + 1], Link(new_part, kept, body.length, zlib.crc32(chunk)))
    return NewPart(Stored(kind, front, back, position, body.digest, chain), body, chunk)


def seen_bytes(chain: tuple[Link, ...], index: int) -> int:
    """Return how many bytes of the body that ends with a link are also in the body of the whole chain."""
    return min((link.start for link in chain[index + 1 :]), default=chain[index].length)


def line(position: int) -> list[int]:
    """Return the positions of a chain's parts, in its order: the last is the value's own."""
    positions = [position]
    while positions[-1]:
        positions.append(positions[-1] & (positions[-1] - 1))
    return positions[::-1]


def _whole(kind: str, front: bytes, body: Body, back: bytes, new_part: int) -> NewPart:
    chunk = body.data
    chain = (Link(new_part, 0, body.length, zlib.crc32(chunk)),)
    return NewPart(Stored(kind, front, back, 0, body.digest, chain), body, chunk)
