"""Values as bytes, and how to tell that one goes on from another. No I/O.

A list that grew by an item is, as bytes, mostly the same: in JSON but for the closing bracket, in msgpack but for the
header, which holds the number of items and may take more bytes than before. So of a value's bytes a *front* and a
*back* are set apart, and what remains, the *body*, is compared: a list, a dict or a text that grew at its end has a
body that begins with the one before. Bytes of any other kind, encrypted ones for example, are taken as they are.
https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

_DIGEST_BYTES = 16


class Encoded(NamedTuple):
    """A value as bytes.

    Args:
        kind: How to read the bytes: ``json``, ``msgpack``, or any other word of whoever encoded it.
        data: The bytes.
    """

    kind: str
    data: bytes


class Framed(NamedTuple):
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


def frame(value: Encoded) -> Framed:
    """Set apart what changes at both ends when a value grows."""
    data = value.data
    if value.kind == "json":
        return Framed(b"", data[:-1], data[-1:])
    if value.kind == "msgpack" and data:
        start = _HEADER_BYTES.get(data[0], 0)
        return Framed(data[:start], data[start:], b"")
    return Framed(b"", data, b"")


class Body:
    """A value's body with its digest; of a body that goes on from another only what was added is hashed.

    Args:
        data: The bytes.
        before: One that it may go on from.
        digest: Its digest, if that is known.
    """

    __slots__ = ("_hashed_bytes", "_hasher", "_known", "data")

    def __init__(self, data: bytes, before: Body | None = None, digest: bytes | None = None) -> None:
        self.data = data
        self._known = digest
        self._hasher: Any = None
        self._hashed_bytes = 0
        if before is not None and before._hasher is not None and data.startswith(before.data):
            self._hasher = before._hasher.copy()
            self._hashed_bytes = len(before.data)

    @property
    def digest(self) -> bytes:
        """The first bytes of its SHA-256."""
        if self._known is None:
            self._hash()
            self._known = self._hasher.digest()[:_DIGEST_BYTES]
        return self._known

    def prepare(self) -> None:
        """Hash the bytes, so that one that goes on from this one need not."""
        self._hash()

    def begins_with(self, length: int, digest: bytes) -> bool:
        """Whether the first bytes have this digest."""
        if length > len(self.data):
            return False
        first = hashlib.sha256(memoryview(self.data)[:length], usedforsecurity=False)
        return first.digest()[:_DIGEST_BYTES] == digest

    def _hash(self) -> None:
        if self._hasher is None:
            self._hasher = hashlib.sha256(usedforsecurity=False)
        if self._hashed_bytes < len(self.data):
            self._hasher.update(memoryview(self.data)[self._hashed_bytes :])
            self._hashed_bytes = len(self.data)
