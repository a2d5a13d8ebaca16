"""The operations' results about checkpoints, and their construction from rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol, TypedDict, cast

from ...errors import CorruptCheckpoint
from ...runtime.exact_json import decode_json
from ...runtime.sealing import Sealing
from ...runtime.server_rows import aware
from .state_rows import Named, assemble_rows, check_row
from .statements.queries import ChosenRow, HistoryRow


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
    """The disk usage of checkpoints on the server, without indexes."""

    threads: int
    checkpoints: int
    rows: int
    payload_bytes: int
    search_bytes: int
    metadata_bytes: int
    total_bytes: int


class Health(TypedDict):
    """The result of a health check."""

    ok: bool
    server_version: str
    read_only: bool
    server_time: datetime


class Described(Named, Protocol):
    """A checkpoint's row, read without its state."""

    @property
    def created_at(self) -> datetime | None:
        """When it was saved."""


class DescribedOfAny(Described, Protocol):
    """The same of any thread."""

    @property
    def thread_id(self) -> str:
        """The thread."""


def checkpoint_info(row: Described, thread_id: str, sealing: Sealing) -> CheckpointInfo:
    """Return a checkpoint without its state; ``sealing`` is that of the thread.

    Raises:
        CorruptCheckpoint: The row is damaged.
    """
    created_at = aware(row.created_at)
    return CheckpointInfo(
        thread_id=thread_id,
        checkpoint_id=cast(str, row.checkpoint_id),
        metadata=metadata_of(row, thread_id, sealing),
        created_at=created_at,
        updated_at=created_at,
    )


def found_info(row: DescribedOfAny, tenant: str, sealing: Sealing) -> CheckpointInfo:
    """Return a checkpoint of any thread; ``sealing`` is that of the family. Raises as `checkpoint_info` does."""
    return checkpoint_info(row, row.thread_id, sealing.of(tenant, row.thread_id))


def history_entry(row: HistoryRow, thread_id: str, sealing: Sealing) -> HistoryEntry:
    """Return a checkpoint in the history of its thread. Raises as `checkpoint_info` does."""
    return HistoryEntry(
        checkpoint_id=row.checkpoint_id,
        parent_id=row.parent_id,
        created_at=aware(row.created_at),
        size_bytes=row.size_bytes,
        metadata=metadata_of(row, thread_id, sealing),
    )


def checkpoints_of(rows: Sequence[ChosenRow]) -> list[list[ChosenRow]]:
    """Group the rows of a statement that loads several checkpoints by checkpoint."""
    return [list(group) for _, group in groupby(rows, key=lambda row: (row.thread_id, row.checkpoint_id))]


def state_of(rows: Sequence[ChosenRow], tenant: str, sealing: Sealing) -> tuple[CheckpointInfo, dict[str, Any]]:
    """Return a checkpoint with its state, from its rows.

    Args:
        rows: The rows.
        tenant: Their tenant.
        sealing: Opens the rows of the family.

    Raises:
        CorruptCheckpoint: A row or the metadata is damaged.
    """
    thread_id = rows[0].thread_id
    sealing = sealing.of(tenant, thread_id)
    info = checkpoint_info(rows[0], thread_id, sealing)
    state, _ = assemble_rows(rows, thread_id, sealing)
    return info, decode_state_text(state.text(), thread_id)


def decode_state_text(text: bytes, thread_id: str) -> dict[str, Any]:
    """Return a state as a dict.

    Raises:
        CorruptCheckpoint: The text does not encode a state.
    """
    try:
        state = decode_json(text)
    except CorruptCheckpoint:
        state = None
    if not isinstance(state, dict):
        raise CorruptCheckpoint(f"A checkpoint of thread {thread_id!r} is not readable JSON of an object.")
    return state


def metadata_of(row: Named, thread_id: str, sealing: Sealing) -> dict[str, Any]:
    """Return the metadata of a checkpoint; ``sealing`` is that of the thread.

    Raises:
        CorruptCheckpoint: The row does not fit its seal, or the metadata is not a JSON object.
    """
    check_row(row, thread_id, sealing)
    try:
        metadata = json.loads(row.metadata) if row.metadata else {}
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise CorruptCheckpoint(
            f"The metadata of checkpoint {row.checkpoint_id!r} of thread {thread_id!r} is not readable JSON of an "
            "object."
        )
    return metadata
