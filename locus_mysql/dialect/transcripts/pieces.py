"""Pieces that the statements of this family share, and the key of a transcript."""

from __future__ import annotations

from typing import NamedTuple

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
        " t.created_at, t.expires_at, t.seal, t.sid"
    ),
}


class RowKey(NamedTuple):
    """The key of a transcript's row."""

    tenant: str
    kind: bytes
    collection: bytes
    name: bytes
    part: bytes


def encrypted_identity(item_id: bytes | None, seq: int) -> tuple[bytes | int | None, ...]:
    """What the encrypted content of an item is bound to within its transcript: its id, or its seq if it has none."""
    return (item_id,) if item_id is not None else (None, seq)
