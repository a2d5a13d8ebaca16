"""The payloads of rows: a checkpoint's, with a header, the head and the small values; and a write's. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ...dialect.graphs.new_rows import OWN_PARTS
from ...errors import CorruptCheckpoint
from ...runtime.exact_json import decode_json, encode_json
from .chains import Inline, Link, Stored
from .records import LabelledValue
from .sealed_rows import RowIdentity, seal, unseal
from .values import EncodedValue

_LENGTH = struct.Struct("<I")


class Content(NamedTuple):
    """The content of a payload.

    Args:
        codec: The name of the class that encoded it.
        head: Everything except its values.
        values: The values by name.
        snapshots: Names of values that this checkpoint holds as a snapshot, or lacks because an ancestor holds the
            snapshot from which the value is rebuilt.
    """

    codec: str
    head: EncodedValue
    values: Mapping[str, LabelledValue]
    snapshots: frozenset[str] = frozenset()


def pack(content: Content, compression: Literal["zlib", "none"], identity: RowIdentity) -> bytes:
    """Return the payload of a row. Parts of the row's own have numbers below `OWN_PARTS`.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        identity: The identity of the row that it is written to.
    """
    entries: list[list[Any]] = []
    pieces = [content.head.data]
    for name, (label, value) in content.values.items():
        if isinstance(value, Inline):
            entries.append([name, label, value.value.kind, len(value.value.data)])
            pieces.append(value.value.data)
        else:
            chain = _packed_chain(value.chain)
            around = (value.front.hex(), value.back.hex())
            entries.append([name, label, value.kind, *around, value.position, value.digest.hex(), chain])
    fields: dict[str, Any] = {"s": content.codec, "h": content.head.kind, "n": len(content.head.data), "c": entries}
    if content.snapshots:
        fields["d"] = sorted(content.snapshots)
    header = encode_json(fields)
    return seal(b"".join((_LENGTH.pack(len(header)), header, *pieces)), compression, identity)


def unpack(payload: bytes, stored_seq: int, identity: RowIdentity) -> Content:
    """Return the content of a payload, with the numbers of parts in their table.

    Args:
        payload: The row's.
        stored_seq: The seq of its own parts.
        identity: The identity of the row that it was read from.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    body = unseal(payload, identity)
    try:
        return _unpack(body, stored_seq)
    except (struct.error, KeyError, ValueError, TypeError, IndexError) as error:
        raise CorruptCheckpoint("A checkpoint row cannot be read back; its header is damaged.") from error


def _unpack(body: bytes, stored_seq: int) -> Content:
    start = _LENGTH.size
    end = start + _LENGTH.unpack_from(body, 0)[0]
    header = decode_json(body[start:end])
    start, end = end, end + header["n"]
    head = EncodedValue(header["h"], body[start:end])
    values: dict[str, LabelledValue] = {}
    for name, label, kind, *rest in header["c"]:
        if len(rest) == 1:
            start, end = end, end + rest[0]
            values[name] = LabelledValue(label, Inline(EncodedValue(kind, body[start:end])))
        else:
            front, back, position, digest, chain = rest
            links = _unpacked_chain(chain, stored_seq)
            if len(links) != position.bit_count() + 1:
                raise ValueError("a chain whose length does not fit its position")
            stored = Stored(kind, bytes.fromhex(front), bytes.fromhex(back), position, bytes.fromhex(digest), links)
            values[name] = LabelledValue(label, stored)
    if end != len(body):
        raise ValueError("more bytes than the header says")
    return Content(header["s"], head, values, frozenset(header.get("d", ())))


def _packed_chain(chain: tuple[Link, ...]) -> list[int]:
    """Four small numbers for each link: its part, its start from the end of the one before, its bytes, its checksum."""
    numbers: list[int] = []
    end = 0
    for link in chain:
        numbers += (link.part, link.start - end, link.length - link.start, link.checksum)
        end = link.length
    return numbers


def _unpacked_chain(numbers: list[int], stored_seq: int) -> tuple[Link, ...]:
    links = []
    end = 0
    for part, start, size, checksum in zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True):
        start_of = end + start
        end = start_of + size
        links.append(Link(part_number(part, stored_seq), start_of, end, checksum))
    return tuple(links)


def part_number(part: int, stored_seq: int) -> int:
    """The number of a part in its table."""
    return stored_seq * OWN_PARTS + part if part < OWN_PARTS else part


def resolved(values: Mapping[str, LabelledValue], stored_seq: int) -> dict[str, LabelledValue]:
    """Return the values with the numbers of their parts in the table, once the seq is known."""
    found = {}
    for name, (label, value) in values.items():
        if isinstance(value, Stored):
            chain = tuple(link._replace(part=part_number(link.part, stored_seq)) for link in value.chain)
            value = value._replace(chain=chain)
        found[name] = LabelledValue(label, value)
    return found


def pack_write(value: EncodedValue, compression: Literal["zlib", "none"], identity: RowIdentity) -> bytes:
    """Return the payload of a write's row: the length of the kind, the kind, the bytes."""
    kind = value.kind.encode()
    return seal(b"".join((len(kind).to_bytes(2, "little"), kind, value.data)), compression, identity)


def unpack_write(payload: bytes, identity: RowIdentity) -> EncodedValue:
    """Return the value of a write's row.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    content = unseal(payload, identity)
    end = 2 + int.from_bytes(content[:2], "little")
    if end > len(content):
        raise CorruptCheckpoint("A stored write cannot be read back; its bytes are damaged.")
    return EncodedValue(content[2:end].decode(), content[end:])
