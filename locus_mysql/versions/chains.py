"""How a large value is stored: as a chain of parts, each what was added to a value before. No I/O.

Which value before: skip deltas, as in Subversion's FSFS. The value at position i of a line builds on the one at i with
its lowest set bit cleared. So a chain has at most log2(i) + 1 parts, and every value that a later one builds on is in
the chain of the newest: whoever knows a checkpoint knows all that the next one needs.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .values import Body, Encoded, Framed, frame

#: Values up to this size stand in the checkpoint's own row: a part's row and the way to it take as much.
INLINE_BYTES = 256


class Inline(NamedTuple):
    """A small value, in the checkpoint's row."""

    value: Encoded


class Link(NamedTuple):
    """A part of a body, and where in it its bytes stand. What the parts before had from there on is dropped.

    Args:
        part: Its number.
        start: The first byte's place.
        length: The length of the body that ends with it.
    """

    part: int
    start: int
    length: int


class Stored(NamedTuple):
    """A large value: its parts in order, and what stands around them.

    Args:
        kind: How to read its bytes.
        front: Bytes before the body.
        back: Bytes behind it.
        position: Its place in the line of values that went on from each other.
        digest: The body's.
        chain: The parts; the first holds a whole value, each other one what was added.
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
    """A value as it will be stored.

    Args:
        value: Its last part is the new one, under the number given.
        body: Its body.
        chunk: The bytes of the new part; None if there is none.
    """

    value: Value
    body: Body | None
    chunk: bytes | None


def store(encoded: Encoded, before: Value | None, body_before: Body | None, new_part: int) -> NewPart:
    """How to store a value.

    Args:
        encoded: The value.
        before: A stored value that it may go on from.
        body_before: The body of that, if it is at hand; else its digest decides.
        new_part: The number of a new part.
    """
    if len(encoded.data) <= INLINE_BYTES:
        return NewPart(Inline(encoded), None, None)
    framed = frame(encoded)
    if not isinstance(before, Stored) or before.kind != encoded.kind:
        return _whole(encoded.kind, framed, Body(framed.body), new_part)
    body = Body(framed.body, body_before)
    same = _same_bytes(body, before, body_before)
    if same == before.length == len(framed.body):
        unchanged = Stored(encoded.kind, framed.front, framed.back, before.position, before.digest, before.chain)
        return NewPart(unchanged, body_before or body, None)
    position = before.position + 1
    base = line(before.position).index(position & (position - 1))
    kept = min(same, seen_bytes(before.chain, base))
    if 2 * kept < len(framed.body):
        return _whole(encoded.kind, framed, body, new_part)
    chain = (*before.chain[: base + 1], Link(new_part, kept, len(framed.body)))
    value = Stored(encoded.kind, framed.front, framed.back, position, body.digest, chain)
    return NewPart(value, body, framed.body[kept:])


def seen_bytes(chain: tuple[Link, ...], index: int) -> int:
    """How much of the body that ends with a link is still there in the body of the whole chain."""
    return min((link.start for link in chain[index + 1 :]), default=chain[index].length)


def line(position: int) -> list[int]:
    """The positions of a chain's parts, in its order: the last is the value's own."""
    positions = [position]
    while positions[-1]:
        positions.append(positions[-1] & (positions[-1] - 1))
    return positions[::-1]


def _whole(kind: str, framed: Framed, body: Body, new_part: int) -> NewPart:
    chain = (Link(new_part, 0, len(framed.body)),)
    return NewPart(Stored(kind, framed.front, framed.back, 0, body.digest, chain), body, framed.body)


def _same_bytes(body: Body, before: Stored, body_before: Body | None) -> int:
    """How many bytes a body has in common with the one before, from the beginning."""
    if body_before is None:
        return before.length if body.begins_with(before.length, before.digest) else 0
    now, then = body.data, body_before.data
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
