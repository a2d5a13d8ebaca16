"""The parts of large values, and how values are assembled from them: `Parts`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from ...errors import CorruptCheckpoint
from .chains import Inline, Link, Stored, seen_bytes
from .payload import Content
from .records import LabelledValue
from .sealed_rows import RowIdentity, unseal
from .values import Body, EncodedValue


@dataclass(slots=True)
class Parts:
    """The parts of one thread that were read, or that cached bodies contain.

    Args:
        identity: The identity of the thread's parts.
        sealed: Parts by number, as stored in their table.
        opened: Unsealed parts that were verified against a link.
        bodies: Cached bodies by the parts they are made of.
        held: By the number of a part, a cached body that contains it, and its position there.
    """

    identity: RowIdentity
    sealed: dict[int, bytes] = field(default_factory=dict)
    opened: dict[Link, bytes | memoryview] = field(default_factory=dict)
    bodies: dict[tuple[Link, ...], Body] = field(default_factory=dict)
    held: dict[int, tuple[Body, Link]] = field(default_factory=dict)

    def know(self, values: Mapping[str, LabelledValue], bodies: Mapping[str, Body]) -> list[int]:
        """Add cached bodies; return the parts that need not be read, because a body contains them whole."""
        numbers: list[int] = []
        for name, body in bodies.items():
            value = values[name].value
            if isinstance(value, Stored):
                self.bodies[value.chain] = body
                for index, link in enumerate(value.chain):
                    if seen_bytes(value.chain, index) >= link.length:
                        self.held[link.part] = body, link
                        numbers.append(link.part)
        return numbers

    def body(self, value: Stored) -> Body:
        """The body of a value.

        Raises:
            CorruptCheckpoint: A part is missing or of another length.
        """
        at_hand = self.bodies.get(value.chain)
        if at_hand is not None:
            return at_hand
        pieces: list[bytes | memoryview] = []
        end = value.length
        for link in reversed(value.chain):
            if link.start < end:
                if link.length < end:
                    break
                chunk = self._chunk(link)
                pieces.append(chunk if link.length == end else memoryview(chunk)[: end - link.start])
                end = link.start
        if end:
            raise CorruptCheckpoint("Its parts do not fit together.")
        return Body(b"".join(pieces[::-1]), digest=value.digest)

    def encoded(self, value: Inline | Stored) -> EncodedValue:
        """Assemble a value."""
        if isinstance(value, Inline):
            return value.value
        return EncodedValue(value.kind, b"".join((value.front, *self.body(value).pieces, value.back)))

    def _chunk(self, link: Link) -> bytes | memoryview:
        chunk = self.opened.get(link)
        if chunk is None and link.part in self.held:
            body, held = self.held[link.part]
            if held == link:
                chunk = self.opened[link] = body.cut(link.start, link.length)
        if chunk is None:
            if link.part not in self.sealed:
                raise CorruptCheckpoint(f"Its part {link.part} is missing.")
            chunk = unseal(self.sealed[link.part], self.identity)
            if len(chunk) != link.length - link.start or crc32(chunk) != link.checksum:
                raise CorruptCheckpoint(f"Its part {link.part} has other content than when it was saved.")
            self.opened[link] = chunk
        return chunk

    def forget(self) -> None:
        """Forget the cached bodies."""
        self.bodies.clear()
        self.held.clear()

    def contradicts(self, contents: Iterable[Content]) -> bool:
        """Return whether checkpoints refer to other parts under the numbers of cached ones.

        If so, the server lost the commits of the cached parts, and assigned their numbers again.
        """
        return any(
            link.part in self.held and self.held[link.part][1] != link
            for content in contents
            for _, value in content.values.values()
            if isinstance(value, Stored)
            for link in value.chain
        )
