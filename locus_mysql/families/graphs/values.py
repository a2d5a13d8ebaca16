"""Values as bytes, the recognition of one that continues another, and chains of the parts they add. No I/O.

A list that grew by an item has mostly the same bytes: in JSON all but the closing bracket, in msgpack all but the
header, which holds the number of items and may take more bytes than before. So a value's bytes are divided into a
*front*, a *body* and a *back*, and bodies are compared: a list, a dict or a text that grew at its end has a body that
begins with the previous one. Bytes of any other kind, for example encrypted ones, are not divided.
https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, NamedTuple, TypeAlias

_DIGEST_BYTES = 16


class EncodedValue(NamedTuple):
    """A value as bytes.

    Args:
        kind: How to read the bytes: ``json``, ``msgpack``, or any other name that the encoder uses.
        data: The bytes.
    """

    kind: str
    data: bytes


class Grown(NamedTuple):
    """A value as bytes, in pieces most of which the previous value has too.

    Args:
        kind: How to read the bytes.
        front: The bytes that change when the value grows, as divided by `divide`.
        pieces: The other bytes. A piece that is the same object as before need not be compared.
    """

    kind: str
    front: bytes
    pieces: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """The bytes."""
        return b"".join((self.front, *self.pieces))

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes."""
        return len(self.front) + sum(map(len, self.pieces))


class Divided(NamedTuple):
    """The bytes of a value in three pieces."""

    front: bytes
    body: bytes
    back: bytes


#: Bytes of a msgpack header by its first byte, for those that hold a length: str, bin, array and map.
_HEADER_BYTES = {
    **dict.fromkeys(range(0x80, 0xC0), 1),  # a map, array or text of few items
    **dict(zip((0xC4, 0xC5, 0xC6), (2, 3, 5), strict=True)),  # bin
    **dict(zip((0xD9, 0xDA, 0xDB), (2, 3, 5), strict=True)),  # str
    **dict.fromkeys((0xDC, 0xDE), 3),  # array and map
    **dict.fromkeys((0xDD, 0xDF), 5),
}


def divide(value: EncodedValue) -> Divided:
    """Divide a value into the two ends that change when it grows, and the body."""
    data = value.data
    if value.kind == "json":
        return Divided(b"", data[:-1], data[-1:])
    if value.kind == "msgpack" and data:
        start = _HEADER_BYTES.get(data[0], 0)
        return Divided(data[:start], data[start:], b"")
    return Divided(b"", data, b"")


class Body:
    """A value's body with its digest; if a body continues another, only the added bytes are compared and hashed.

    Args:
        data: The bytes, or the pieces they are made of: those that two bodies share need not be compared.
        before: A body that it may continue.
        digest: Its digest, if it is known.
    """

    __slots__ = ("_hashed_bytes", "_hasher", "_known", "length", "pieces", "shared")

    def __init__(
        self, data: bytes | tuple[bytes, ...], before: Body | None = None, digest: bytes | None = None
    ) -> None:
        self.pieces = data if isinstance(data, tuple) else (data,)  # not bytes: it may be a bytearray
        self.length = sum(map(len, self.pieces))
        #: Length of the common prefix with the previous body.
        self.shared = 0 if before is None else self._in_common(before)
        self._known = digest
        self._hasher: Any = None
        self._hashed_bytes = 0
        if before is not None and before._hasher is not None and self.shared == before.length:
            self._hasher = before._hasher.copy()
            self._hashed_bytes = before._hashed_bytes

    @property
    def data(self) -> bytes:
        """The bytes, joined on each access."""
        return b"".join(self.pieces)

    @property
    def digest(self) -> bytes:
        """The first bytes of its SHA-256."""
        if self._known is None:
            self._hash()
            self._known = self._hasher.digest()[:_DIGEST_BYTES]
        return self._known

    def begins_with(self, length: int, digest: bytes) -> bool:
        """Return whether the first bytes have this digest."""
        if length > self.length:
            return False
        first = hashlib.sha256(memoryview(self.data)[:length], usedforsecurity=False)
        return first.digest()[:_DIGEST_BYTES] == digest

    def cut(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        if start >= end:
            return b""
        (first, start), (last, end) = self._piece_at(start), self._piece_at(end - 1)
        if first == last:
            return self.pieces[first][start : end + 1]
        return b"".join((self.pieces[first][start:], *self.pieces[first + 1 : last], self.pieces[last][: end + 1]))

    def _piece_at(self, start: int) -> tuple[int, int]:
        """Return the piece with the byte at a position, and the position within the piece."""
        for index, piece in enumerate(self.pieces):
            if start < len(piece):
                return index, start
            start -= len(piece)
        raise IndexError(f"The body is {self.length} bytes long.")

    def _in_common(self, before: Body) -> int:
        """Return the length of the common prefix with another body."""
        same, index = 0, 0
        for mine, theirs in zip(self.pieces, before.pieces, strict=False):
            if mine is not theirs:
                break
            same += len(mine)
            index += 1
        return same + _common_prefix(b"".join(self.pieces[index:]), b"".join(before.pieces[index:]))

    def _hash(self) -> None:
        if self._hasher is None:
            self._hasher = hashlib.sha256(usedforsecurity=False)
        if self._hashed_bytes < self.length:
            index, start = self._piece_at(self._hashed_bytes)
            self._hasher.update(memoryview(self.pieces[index])[start:])
            for piece in self.pieces[index + 1 :]:
                self._hasher.update(piece)
            self._hashed_bytes = self.length


def _common_prefix(now: bytes, then: bytes) -> int:
    """Return the length of the common prefix."""
    if now.startswith(then):
        return len(then)
    same, differs = 0, min(len(now), len(then)) + 1
    while differs - same > 1:  # the first `same` bytes are, and somewhere before `differs` one is not
        middle = (same + differs) // 2
        if now[same:middle] == then[same:middle]:
            same = middle
        else:
            differs = middle
    return same


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
