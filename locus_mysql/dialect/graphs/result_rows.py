"""The rows that statements about graphs return."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

#: The kinds of rows of statements that load checkpoints.
CHECKPOINT, PART, WRITE, PARENTS_WRITE = range(4)


class LoadedRow(NamedTuple):
    """A row of a statement that loads checkpoints. By its kind it is a row of one of the three classes below."""

    kind: int
    thread_id: str | None
    seq: int | None
    number: int | None
    checkpoint_key: bytes | None
    text1: str | None
    text2: str | None
    text3: str | None
    payload: bytes
    metadata: str | None
    created_at: datetime | None
    epoch: bytes | None
    token: bytes | None
    flags: int | None
    parent_key: bytes | None


class LoadedCheckpointRow(NamedTuple):
    """A checkpoint. Its flags are what it needs of its parent, plus 4 if the parent is unlinked."""

    kind: int
    thread_id: str
    seq: int
    stored_seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    parent_id: str | None
    ns: str
    payload: bytes
    metadata: str | None
    created_at: datetime
    epoch: bytes
    token: bytes
    flags: int
    parent_key: bytes | None

    @property
    def needs(self) -> int:
        """Return which content of its parent the checkpoint needs."""
        return self.flags & 3

    @property
    def unlinked(self) -> bool:
        """Return whether the parent was deleted and none of its rows is needed."""
        return self.flags > 3


class LoadedPartRow(NamedTuple):
    """A part, by its number."""

    kind: int
    thread_id: str | None
    seq: None
    number: int
    checkpoint_key: None
    text1: None
    text2: None
    text3: None
    chunk: bytes
    metadata: None
    created_at: None
    epoch: None
    token: None
    flags: None
    parent_key: None


class LoadedWriteRow(NamedTuple):
    """A write at a checkpoint, or at the parent of one; the key is that of the checkpoint."""

    kind: int
    thread_id: str
    seq: None
    idx: int
    checkpoint_key: bytes
    task_id: str
    channel: str
    task_path: str
    payload: bytes
    metadata: None
    created_at: None
    epoch: None
    token: None
    flags: None
    parent_key: None


class LineRow(NamedTuple):
    """A row of a line of ancestors. By its kind it is a row of one of the two classes below."""

    kind: int
    depth: int
    number: int
    checkpoint_key: bytes
    text1: str
    text2: str | None
    text3: str | None
    payload: bytes
    parent_key: bytes | None
    needs: int | None
    metadata_checksum: int | None


class AncestorRow(NamedTuple):
    """A checkpoint of a line of ancestors, at its distance from the first."""

    kind: int
    depth: int
    stored_seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    text2: None
    text3: None
    payload: bytes
    parent_key: bytes | None
    needs: int
    metadata_checksum: int | None


class AncestorsWriteRow(NamedTuple):
    """A write at a checkpoint of the line."""

    kind: int
    depth: int
    idx: int
    checkpoint_key: bytes
    task_id: str
    channel: str
    task_path: str
    payload: bytes
    parent_key: None
    needs: None
    metadata_checksum: None


class TaskWriteRow(NamedTuple):
    """A write."""

    task_id: str
    idx: int
    channel: str
    task_path: str
    payload: bytes


class BaseRow(NamedTuple):
    """The columns of a checkpoint that a save based on it needs."""

    stored_seq: int
    payload: bytes
    epoch: bytes
    token: bytes
    parent_key: bytes | None
    needs: int
    metadata_checksum: int | None


class PartRow(NamedTuple):
    """A part, by its number."""

    number: int
    chunk: bytes


class KeyRow(NamedTuple):
    """The key of a checkpoint."""

    checkpoint_key: bytes


class ThreadRow(NamedTuple):
    """The id of a thread."""

    thread_id: str


class ThreadPageRow(NamedTuple):
    """The id of a thread, and its position in the order of pages."""

    thread_id: str
    ordered_at: str


class UsedIdRow(NamedTuple):
    """An id of a thread that rows of a table have, and whether the thread does not exist."""

    thread_id: str
    missing: int


class EpochRow(NamedTuple):
    """The epoch of a thread."""

    epoch: bytes


class CountRow(NamedTuple):
    """A number of rows."""

    total: int
