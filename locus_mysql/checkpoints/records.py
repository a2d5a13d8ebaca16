"""What operations tell of checkpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, TypedDict, cast

from ..drivers.base import Row
from .codec import EncodedState
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
    """What checkpoints take on the server, indexes left out."""

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


def checkpoint_info(row: Row) -> CheckpointInfo:
    """From a row of thread, id, metadata and time."""
    thread_id, checkpoint_id, metadata, created_at = row
    return CheckpointInfo(
        thread_id=cast(str, thread_id),
        checkpoint_id=cast(str, checkpoint_id),
        metadata=json.loads(cast(str, metadata)) if metadata else {},
        created_at=aware(created_at),
        updated_at=aware(created_at),
    )


def states_of(rows: Sequence[Row]) -> list[tuple[CheckpointInfo, EncodedState]]:
    """Each checkpoint with its state, from the rows of the statements that load several."""
    grouped = groupby(rows, key=lambda row: (row[0], row[1]))
    states = []
    for _, group in grouped:
        lineage = list(group)
        states.append((checkpoint_info(lineage[0][:4]), assemble_rows([row[4:] for row in lineage])[0]))
    return states
