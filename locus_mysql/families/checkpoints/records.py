"""What operations return about checkpoints, and how it is made from rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, TypedDict, cast

from ...drivers.interface import Row
from ...errors import CorruptCheckpoint
from ...runtime.answers import decodes_rows
from ...runtime.exact_json import decode_json
from .rows import assemble_rows, aware


class CheckpointInfo(TypedDict):
    """A checkpoint without its state."""

    thread_id: str
    checkpoint_id: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class SearchHit(TypedDict):
    """A checkpoint whose text matches a query."""

    thread_id: str
    checkpoint_id: str
    score: float
    snippet: str
    created_at: datetime


class HistoryEntry(TypedDict):
    """A checkpoint in its thread's history."""

    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: dict[str, Any]


class DiskUsage(TypedDict):
    """The space that checkpoints take on the server, without indexes."""

    threads: int
    checkpoints: int
    rows: int
    payload_bytes: int
    search_bytes: int
    metadata_bytes: int
    total_bytes: int


class Health(TypedDict):
    """What the server answered."""

    ok: bool
    server_version: str
    read_only: bool
    server_time: datetime


@decodes_rows
def checkpoint_info(row: Row) -> CheckpointInfo:
    """Made from a row of thread, id, metadata and time.

    Raises:
        CorruptCheckpoint: The metadata is damaged.
    """
    thread_id, checkpoint_id, metadata, created_at = row
    return CheckpointInfo(
        thread_id=cast(str, thread_id),
        checkpoint_id=cast(str, checkpoint_id),
        metadata=metadata_of(thread_id, checkpoint_id, metadata),
        created_at=aware(created_at),
        updated_at=aware(created_at),
    )


@decodes_rows
def history_entry(thread_id: str, row: Row) -> HistoryEntry:
    """Made from a row of id, parent's id, time, bytes and metadata. Raises as `checkpoint_info` does."""
    checkpoint_id, parent_id, created_at, size, metadata = row
    return HistoryEntry(
        checkpoint_id=cast(str, checkpoint_id),
        parent_id=cast("str | None", parent_id),
        created_at=aware(created_at),
        size_bytes=cast(int, size),
        metadata=metadata_of(thread_id, checkpoint_id, metadata),
    )


@decodes_rows
def checkpoints_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of a statement that loads several checkpoints, grouped by checkpoint."""
    return [list(group) for _, group in groupby(rows, key=lambda row: (row[0], row[1]))]


@decodes_rows
def state_of(rows: Sequence[Row]) -> tuple[CheckpointInfo, dict[str, Any]]:
    """A checkpoint with its state, from its rows.

    Raises:
        CorruptCheckpoint: A row or the metadata is damaged.
    """
    info = checkpoint_info(rows[0][:4])
    state, _ = assemble_rows([row[4:7] for row in rows], info["thread_id"])
    return info, decode_state_text(state.text(), info["thread_id"])


def decode_state_text(text: bytes, thread_id: str) -> dict[str, Any]:
    """A state as a dict.

    Raises:
        CorruptCheckpoint: The text is not that of a state.
    """
    try:
        state = decode_json(text)
    except CorruptCheckpoint:
        state = None
    if not isinstance(state, dict):
        raise CorruptCheckpoint(f"A checkpoint of thread {thread_id!r} is not readable JSON of an object.")
    return state


def metadata_of(thread_id: object, checkpoint_id: object, text: object) -> dict[str, Any]:
    """Metadata, from its text.

    Raises:
        CorruptCheckpoint: It is damaged.
    """
    try:
        metadata = json.loads(cast(str, text)) if text else {}
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise CorruptCheckpoint(
            f"The metadata of checkpoint {checkpoint_id!r} of thread {thread_id!r} is not readable JSON of an object."
        )
    return metadata
