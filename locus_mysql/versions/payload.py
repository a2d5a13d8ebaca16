"""The payload of a checkpoint's row: a header, the head, and the small values. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ..database.exact_json import decode_json, encode_json
from ..dialect.versions.rows import OWN_PARTS
from ..errors import CorruptCheckpoint
from .chains import Inline, Link, Stored
from .records import Held
from .sealed import seal, unseal
from .values import Encoded

_LENGTH = struct.Struct("<I")


class Content(NamedTuple):
    """What a payload says.

    Args:
        surface: Who encoded it.
        head: All of it but its values.
        values: The values by name.
        snapshots: Names of values that this checkpoint holds as a snapshot, or lacks because an ancestor holds one from
            which it is put together.
    """

    surface: str
    head: Encoded
    values: Mapping[str, Held]
    snapshots: frozenset[str] = frozenset()


def pack(content: Content, compression: Literal["zlib", "none"]) -> bytes:
    """The payload of a row. Parts of the row's own have numbers below `OWN_PARTS`."""
    entries: list[list[Any]] = []
    pieces = [content.head.data]
    for name, (label, value) in content.values.items():
        if isinstance(value, Inline):
            entries.append([name, label, value.value.kind, len(value.value.data)])
            pieces.append(value.value.data)
        else:
            chain = [number for link in value.chain for number in link]
            around = (value.front.hex(), value.back.hex())
            entries.append([name, label, value.kind, *around, value.position, value.digest.hex(), chain])
    fields: dict[str, Any] = {"s": content.surface, "h": content.head.kind, "n": len(content.head.data), "c": entries}
    if content.snapshots:
        fields["d"] = sorted(content.snapshots)
    header = encode_json(fields)
    return seal(b"".join((_LENGTH.pack(len(header)), header, *pieces)), compression)


def unpack(payload: bytes, stored_seq: int) -> Content:
    """What a payload says, with the numbers of parts as they stand in their table.

    Args:
        payload: The row's.
        stored_seq: The seq of its own parts.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    body = unseal(payload)
    try:
        return _unpack(body, stored_seq)
    except (struct.error, KeyError, ValueError, TypeError, IndexError) as error:
        raise CorruptCheckpoint("A checkpoint row cannot be read back; its header is damaged.") from error


def _unpack(body: bytes, stored_seq: int) -> Content:
    start = _LENGTH.size
    end = start + _LENGTH.unpack_from(body, 0)[0]
    header = decode_json(body[start:end])
    start, end = end, end + header["n"]
    head = Encoded(header["h"], body[start:end])
    values: dict[str, Held] = {}
    for name, label, kind, *rest in header["c"]:
        if len(rest) == 1:
            start, end = end, end + rest[0]
            values[name] = Held(label, Inline(Encoded(kind, body[start:end])))
        else:
            front, back, position, digest, chain = rest
            links = tuple(
                Link(part_number(part, stored_seq), start_of, length)
                for part, start_of, length in zip(chain[::3], chain[1::3], chain[2::3], strict=True)
            )
            stored = Stored(kind, bytes.fromhex(front), bytes.fromhex(back), position, bytes.fromhex(digest), links)
            values[name] = Held(label, stored)
    if end != len(body):
        raise ValueError("more than the header says")
    return Content(header["s"], head, values, frozenset(header.get("d", ())))


def part_number(part: int, stored_seq: int) -> int:
    """The number of a part in its table."""
    return stored_seq * OWN_PARTS + part if part < OWN_PARTS else part


def resolved(values: Mapping[str, Held], stored_seq: int) -> dict[str, Held]:
    """Values with the numbers of their parts as they stand in their table, once the seq is known."""
    found = {}
    for name, (label, value) in values.items():
        if isinstance(value, Stored):
            chain = tuple(link._replace(part=part_number(link.part, stored_seq)) for link in value.chain)
            value = value._replace(chain=chain)
        found[name] = Held(label, value)
    return found
