"""Between rows of the table and states: assembling, and rewriting a whole thread. No I/O."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, cast

from ..dialect.checkpoints import NewRow
from ..dialect.maintenance import PlacedRow
from ..drivers.base import Row
from ..errors import CorruptCheckpoint
from .codec import EncodedState
from .delta import Lineage, StoredRow, assemble, encode_delta, extend
from .digests import hash_logs
from .new import NewCheckpoint


def assemble_rows(rows: Sequence[Row]) -> tuple[EncodedState, Lineage]:
    """A state and its lineage, from rows that begin with seq, token and payload, newest first."""
    stored = [StoredRow(cast(int, row[0]), cast(bytes, row[1]), cast(bytes, row[2])) for row in rows]
    if not all(row.payload for row in stored):
        raise CorruptCheckpoint("A row that a checkpoint builds on is empty.")
    return assemble(stored)


def rewritten(
    rows: Sequence[Row], change: Callable[[bytes], NewCheckpoint], *, compression: Literal["zlib", "none"]
) -> list[PlacedRow]:
    """A thread's rows with every state changed.

    Args:
        rows: What the statement that reads a thread gave, oldest first.
        change: From a state's text, the new state with its search text.
        compression: Whether payloads may be compressed.
    """
    stored = {cast(int, row[0]): row for row in rows}
    lineages: dict[int, Lineage] = {}
    placed = []
    for seq, row in stored.items():
        _, _, _, checkpoint_id, _, parent_seq, metadata, metadata_keys, created_at, _ = row
        if checkpoint_id is None:
            continue
        state, before = assemble_rows(_chain(stored, seq))
        new = change(state.text())
        parent = _nearest_named(stored, cast("int | None", parent_seq))
        provisional = before[0].provisional
        lineage = lineages[parent] if parent is not None else ()
        encoded = new.encode(None).state
        hashed = hash_logs(encoded, {})
        delta = encode_delta(encoded, hashed, lineage, provisional=provisional, compression=compression)
        search_text, continues = ("", False) if provisional else new.search_text(delta)
        token = os.urandom(16)
        lineages[seq] = extend(lineage, delta, seq, token, provisional=provisional)
        values = NewRow(
            checkpoint_id=cast(str, checkpoint_id),
            token=token,
            payload=delta.payload,
            parent_seq=parent,
            continues=continues,
            provisional=provisional,
            metadata=cast("str | None", metadata),
            metadata_keys=cast("str | None", metadata_keys),
            search_text=search_text or None,
            oldest_at=new.oldest_at,
        )
        base_seq = seq if delta.base is None else delta.base.seq
        placed.append(PlacedRow(values, seq, base_seq, as_sql_time(aware(created_at))))
    return placed


def aware(value: object) -> datetime:
    """A time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def as_sql_time(value: datetime) -> str:
    """A time as the text of a DATETIME(6) in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _chain(stored: dict[int, Row], seq: int) -> list[Row]:
    """A row and those it builds on, newest first."""
    chain = [stored[seq]]
    while (base := cast(int, chain[-1][4])) != chain[-1][0]:
        chain.append(stored[base])
    return chain


def _nearest_named(stored: dict[int, Row], seq: int | None) -> int | None:
    while seq is not None and (seq not in stored or stored[seq][3] is None):
        seq = cast("int | None", stored[seq][5]) if seq in stored else None
    return seq
