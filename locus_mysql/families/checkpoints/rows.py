"""Between rows of the table and states: assembling, and rewriting a whole thread. No I/O."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast

from ...dialect.checkpoints.loading import rows_of
from ...dialect.checkpoints.maintenance import PlacedRow
from ...dialect.checkpoints.saving import NewRow
from ...drivers.interface import Row
from ...errors import CorruptCheckpoint
from ...runtime.answers import decodes_rows
from .coding.codec import EncodedState
from .coding.delta import (
    Delta,
    Held,
    Lineage,
    NotHeld,
    StoredRow,
    assemble,
    encode_delta,
    extend,
)
from .coding.digests import hash_logs
from .new import NewCheckpoint

#: From a checkpoint's id and its state's text, the new state with its search text.
Change: TypeAlias = Callable[[str, bytes], NewCheckpoint]


@decodes_rows
def assemble_rows(
    rows: Sequence[Sequence[Any]], thread_id: str, held: Held | None = None
) -> tuple[EncodedState, Lineage]:
    """A state and its lineage, from rows that begin with seq, token and payload, newest first. See `delta.assemble`."""
    try:
        return assemble([StoredRow(row[0], row[1], row[2]) for row in rows], thread_id, held)
    except NotHeld:
        if held is not None:
            raise
        raise CorruptCheckpoint(f"A checkpoint row of thread {thread_id!r} came without its payload.") from None


#: The rows in what a statement that loads a checkpoint has found.
chain_rows = decodes_rows(rows_of)


@decodes_rows
def rows_since(found: Sequence[Sequence[Any]], held: Held) -> list[StoredRow]:
    """The rows of the newest checkpoint, newest first, without payloads from where a state is held that it builds on.

    Args:
        found: What was saved since that state, as the statement of that name tells.
        held: The state.

    Raises:
        NotHeld: The state is no longer there, or the newest checkpoint does not build on it.
    """
    known = held.lineage[0]
    if not found or found[-1][3] != known.token:
        raise NotHeld
    there = {row[1]: row for row in found}
    seq: int | None = next((row[1] for row in found if row[5]), None)
    rows = []
    while seq is not None and seq in there:
        _, _, base_seq, token, payload, _ = there[seq]
        rows.append(StoredRow(seq, token, payload))
        if payload is None or base_seq == seq:
            return rows
        seq = base_seq if base_seq is not None and base_seq < seq else None
    base = next((row for row in held.lineage if row.seq == seq), None)
    if base is None:
        raise NotHeld
    return [*rows, StoredRow(base.seq, base.token, None)]


def rewritten(
    rows: Sequence[Row], change: Change, thread_id: str, *, compression: Literal["zlib", "none"]
) -> list[PlacedRow]:
    """A thread's rows with every state changed.

    Args:
        rows: What the statement that reads a thread gave, oldest first.
        change: Gives the new states.
        thread_id: The thread, to be named in an error.
        compression: Whether payloads may be compressed.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    stored = {cast(int, row[0]): row for row in rows}
    lineages: dict[int, Lineage] = {}
    placed = []
    for seq, row in stored.items():
        _, _, _, checkpoint_id, _, parent_seq, metadata, metadata_keys, created_at, _ = row
        if checkpoint_id is None:
            continue
        state, before = assemble_rows(chain_of(stored, seq), thread_id)
        new = change(cast(str, checkpoint_id), state.text())
        parent = _nearest_named(stored, seq, cast("int | None", parent_seq))
        provisional = before[0].provisional
        lineage = lineages[parent] if parent is not None else ()
        encoded = new.encode(None).state
        hashed = hash_logs(encoded, {})
        token = os.urandom(16)
        delta = encode_delta(encoded, hashed, lineage, token=token, provisional=provisional, compression=compression)
        search_text, continues = ("", False) if provisional else new.search_text(delta)
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


def row_of(
    new: NewCheckpoint,
    checkpoint_id: str,
    token: bytes,
    delta: Delta,
    metadata: tuple[str | None, str | None],
    *,
    search: bool,
) -> NewRow:
    """The row of a new checkpoint, with the text that it adds, if text is indexed.

    Args:
        new: What is saved.
        checkpoint_id: Its id.
        token: The token of its row.
        delta: Its state, as it is stored.
        metadata: Its metadata as text, and the keys by which it is found.
        search: Whether text is indexed.
    """
    text, continues = new.search_text(delta) if search and not new.provisional else ("", False)
    return NewRow(
        checkpoint_id=checkpoint_id,
        token=token,
        payload=delta.payload,
        parent_seq=delta.parent.seq if delta.parent else None,
        continues=continues,
        provisional=new.provisional,
        metadata=metadata[0],
        metadata_keys=metadata[1],
        search_text=text or None,
        oldest_at=new.oldest_at,
    )


def aware(value: object) -> datetime:
    """A time of the database, which is in UTC, as an aware datetime."""
    return cast(datetime, value).replace(tzinfo=UTC)


def as_sql_time(value: datetime) -> str:
    """A time as the text of a DATETIME(6) in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def chain_of(stored: Mapping[int, Row], seq: int) -> list[Row]:
    """A row and those it builds on, newest first. Ends early where a base is missing or not older than its row."""
    chain = [stored[seq]]
    while (base := stored.get(cast(int, chain[-1][4]))) is not None and cast(int, base[0]) < cast(int, chain[-1][0]):
        chain.append(base)
    return chain


def _nearest_named(stored: dict[int, Row], seq: int, parent_seq: int | None) -> int | None:
    """The nearest checkpoint that a row follows. A row that is said to follow a later one follows none."""
    while parent_seq is not None and parent_seq < seq and parent_seq in stored:
        if stored[parent_seq][3] is not None:
            return parent_seq
        seq, parent_seq = parent_seq, cast("int | None", stored[parent_seq][5])
    return None
