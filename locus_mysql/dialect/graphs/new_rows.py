"""Rows to insert: a checkpoint's row, and a write's."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..statement import Param

#: The maximum number of parts that one checkpoint may have of its own. Smaller numbers of parts mean those of the row
#: itself.
OWN_PARTS = 1024

#: The stored_seq of a row that does not hold its part itself is the sum of this and the number of the save within its
#: thread: more than any seq that the server assigns.
APART = 1 << 40

#: The key of a checkpoint that a new one builds on, and the token of the save that wrote it.
BaseKey: TypeAlias = tuple[bytes, bytes]

#: The largest part, in bytes, that a save may store in its own row.
OWN_CHUNK_BYTES = 262_144


class GraphCheckpointRow(NamedTuple):
    """A checkpoint to insert, without its thread and seq.

    Args:
        ns_key: Digest of the namespace.
        checkpoint_key: Digest of namespace and id.
        parent_key: The parent's, or None.
        checkpoint_id: The id.
        parent_id: The parent's id, or None.
        ns: The namespace.
        needs: 0 if it needs nothing of its parent, 1 if all of it, 2 if its writes.
        sources: JSON array of the numbers of its parts.
        tokens: The save's token, 16 bytes; then the digest of the content, 15 bytes, if history is kept.
        payload: Its bytes.
        metadata: JSON text for queries, or None.
        run_key: Digest of the run that made it, or None.
        chunks: Its own parts.
    """

    ns_key: bytes
    checkpoint_key: bytes
    parent_key: bytes | None
    checkpoint_id: str
    parent_id: str | None
    ns: str
    needs: int
    sources: str
    tokens: bytes
    payload: bytes
    metadata: str | None
    run_key: bytes | None
    chunks: tuple[bytes, ...]

    @property
    def params(self) -> tuple[Param, ...]:
        """Return the values in the order of the insert statement, after tenant, thread and namespace."""
        return (
            self.checkpoint_key,
            self.parent_key,
            self.checkpoint_id,
            self.parent_id,
            self.ns,
            self.needs,
            self.sources,
            self.tokens,
            self.payload,
            self.metadata,
            self.run_key,
        )


class WriteRow(NamedTuple):
    """One write of a task, without its thread and checkpoint."""

    task_key: bytes
    idx: int
    task_id: str
    task_path: str
    channel: str
    payload: bytes
