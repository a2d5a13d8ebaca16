"""Pieces that the statements of this family share, and the key of a transcript."""

from __future__ import annotations

from typing import NamedTuple

from ..checksums import checksum, with_version

#: Pieces by name. ``{KEY}`` selects a transcript ``t`` by its key, ``{GROUP}`` the transcript and all its parts.
#: ``{LIVE_TRANSCRIPT}``: it has not expired. ``{OF_TRANSCRIPT}`` joins items ``i`` to it. ``{US_SINCE_1970}`` is the
#: server's clock in microseconds.
PIECES = {
    "US_SINCE_1970": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "KEY": "t.tenant = %s AND t.kind = %s AND t.collection = %s AND t.name = %s AND t.part = %s",
    "GROUP": "t.tenant = %s AND t.kind = %s AND t.collection = %s AND t.name = %s",
    "LIVE_TRANSCRIPT": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    "OF_TRANSCRIPT": "i.tenant = t.tenant AND i.sid = t.sid",
    "HEADER": (
        "t.kind, t.collection, t.name, t.part, t.revision, t.tag, t.scope, t.items, t.size_bytes, t.last_seq,"
        " t.created_at, t.expires_at, t.checksum, t.sid"
    ),
}


class RowKey(NamedTuple):
    """The key of a transcript's row."""

    tenant: str
    kind: bytes
    collection: bytes
    name: bytes
    part: bytes


def header_checksum(key: RowKey, tag: bytes | None, scope: bytes | None, state: bytes | None) -> int:
    """The checksum of a transcript's row."""
    return checksum(key, tag, scope, state)


def item_checksum(key: RowKey, item_id: bytes | None, content: bytes) -> int:
    """The checksum of an item's row without its seq; see `sealed_at`."""
    return checksum((*key, item_id or b""), content)


def row_identity(item_id: bytes | None, seq: int) -> tuple[str | bytes, ...]:
    """What the encrypted content of an item is bound to within its transcript: its id, or its seq if it has none."""
    return ("seq", str(seq)) if item_id is None else ("id", item_id)


def sealed_at(checksum: int, seq: int) -> int:
    """The checksum of an item's row with its seq; statements combine both by XOR."""
    return with_version(checksum, seq)
