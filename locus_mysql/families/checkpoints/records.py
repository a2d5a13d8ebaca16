"""Results about checkpoints; states from rows of the table, and rows from states. No I/O."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, cast

from ...errors import CorruptCheckpoint
from ...runtime.exact_json import decode_json
from ...runtime.sealing import Sealing
from ...runtime.server_rows import aware, decodes_rows
from .coding.codec import EncodedState
from .coding.delta import Delta, Held, Lineage, NotHeld, StoredRow, assemble, seal_payload
from .statements.loading import SinceRow, rows_of
from .statements.queries import ChosenRow, HistoryRow
from .statements.saving import NewRow


@dataclass(frozen=True, slots=True)
class EncodedCheckpoint:
    """A state as text, and data that speeds up encoding the thread's next state.

    Args:
        state: The encoded state.
        memo: Kept with the state, as long as it is the thread's newest, and given to the next encoding.
        memo_bytes: Approximate memory of the memo.
    """

    state: EncodedState
    memo: object = None
    memo_bytes: int = 0


class ParentRule(enum.Enum):
    """Rules that choose the parent of a new checkpoint.

    A caller that keeps its state in this process continues the checkpoint that this process loaded or saved last, even
    if other processes wrote to the thread since: two agents then create two branches. For a client of the service, this
        process's cache does not count: another process may have answered the client's last request.
    """

    REMEMBERED = "the checkpoint that this process loaded or saved last; if it knows none of the thread, the newest"
    NEWEST = "the newest under the thread's lock"


#: A rule, or the id of the checkpoint.
Parent: TypeAlias = ParentRule | str


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint to save.

    Args:
        encode: Encodes the state. Receives the memo of the thread's newest state, or None, and may raise
            `InvalidInput`.
        search_text: From the delta, the text to index and whether it only adds to the parent's.
        checkpoint_id: Its id; a random one if None. An existing id moves to the new state.
        metadata: A dict of JSON values for queries.
        provisional: Whether a later save will supersede it and delete it.
        oldest_at: When the state's first exchange began, as text in UTC, if that is known.
        token: The token of its row, 16 random bytes; generated if None.
        must_be_new: Whether the save is refused if a checkpoint of this id exists.
        parent: Which checkpoint it follows. A lasting one follows, of a provisional one, the lasting one before that.
    """

    encode: Callable[[object], EncodedCheckpoint]
    search_text: Callable[[Delta], tuple[str, bool]]
    checkpoint_id: str | None = None
    metadata: object = None
    provisional: bool = False
    oldest_at: str | None = None
    token: bytes | None = None
    must_be_new: bool = False
    parent: Parent = ParentRule.REMEMBERED


class Linked(Protocol):
    """A row that may build on another one."""

    @property
    def seq(self) -> int:
        """The seq of the row."""

    @property
    def base_seq(self) -> int | None:
        """The seq of the row it builds on; its own if it builds on no other row."""


class SealedRow(NamedTuple):
    """All that the seal of a checkpoint's row covers, and the seal."""

    checkpoint_id: str
    token: bytes
    metadata: str | None
    seal: int | None


class Named(Protocol):
    """The row of a checkpoint, with all that its seal covers."""

    @property
    def checkpoint_id(self) -> str | None:
        """The id of the checkpoint."""

    @property
    def token(self) -> bytes | None:
        """The token of the row."""

    @property
    def metadata(self) -> str | None:
        """Its metadata as text; None if there is none."""

    @property
    def seal(self) -> int | None:
        """Its seal."""


L = TypeVar("L", bound=Linked)


@decodes_rows
def assemble_rows(rows: Sequence[Any], thread_id: str, sealing: Sealing) -> tuple[EncodedState, Lineage]:
    """Return a state and its lineage, from its row and those it builds on, newest first; see `delta.assemble`.

    Args:
        rows: Rows of any statement, with a seq, a token and a payload.
        thread_id: The thread of the rows.
        sealing: Opens the payloads of the thread.
    """
    try:
        return assemble([StoredRow(row.seq, row.token, row.payload) for row in rows], thread_id, sealing)
    except NotHeld:
        raise CorruptCheckpoint(f"A checkpoint row of thread {thread_id!r} came without its payload.") from None


def row_seal(sealing: Sealing, checkpoint_id: str, token: bytes, metadata: str | None) -> int:
    """Return the seal of a checkpoint's row, for all that its payload does not hold.

    Args:
        sealing: That of the thread.
        checkpoint_id: The checkpoint.
        token: The token of the row.
        metadata: Its metadata as text.
    """
    return sealing.checksum("row", checkpoint_id, token, metadata)


@decodes_rows
def check_row(row: Named, thread_id: str, sealing: Sealing) -> None:
    """Check that the row of a checkpoint fits its seal.

    Raises:
        CorruptCheckpoint: It does not.
    """
    checkpoint_id = cast(str, row.checkpoint_id)
    if row.seal != row_seal(sealing, checkpoint_id, cast(bytes, row.token), row.metadata):
        raise CorruptCheckpoint(
            f"The row of checkpoint {checkpoint_id!r} of thread {thread_id!r} does not fit its seal: its id, its "
            "metadata or its token was changed, or the row was moved. Load another checkpoint of the thread, or "
            "restore the row from a backup."
        )


#: The rows of a result of a statement that loads a checkpoint.
chain_rows = decodes_rows(rows_of)


def rows_since(found: Sequence[SinceRow], held: Held) -> list[StoredRow]:
    """Return the rows of the newest checkpoint, newest first; without payloads below the first state that is held.

    Args:
        found: The rows saved since that state.
        held: The state.

    Raises:
        NotHeld: The state no longer exists, or the newest checkpoint does not build on it.
    """
    known = held.lineage[0]
    if not found or found[-1].token != known.token:
        raise NotHeld
    by_seq = {row.seq: row for row in found}
    seq = next((row.seq for row in found if row.named), None)
    rows = []
    while seq is not None and seq in by_seq:
        row = by_seq[seq]
        rows.append(StoredRow(seq, row.token, row.payload))
        if row.payload is None or row.base_seq == seq:
            return rows
        seq = row.base_seq if row.base_seq is not None and row.base_seq < seq else None
    base = next((row for row in held.lineage if row.seq == seq), None)
    if base is None:
        raise NotHeld
    return [*rows, StoredRow(base.seq, base.token, None)]


def row_of(
    new: NewCheckpoint,
    checkpoint_id: str,
    token: bytes,
    delta: Delta,
    metadata: tuple[str | None, str | None],
    sealing: Sealing,
    *,
    search: bool,
) -> NewRow:
    """Return the row of a new checkpoint, with the text that it adds, if text is indexed.

    Args:
        new: The checkpoint.
        checkpoint_id: Its id.
        token: The token of its row.
        delta: Its state, as it is stored.
        metadata: Its metadata as text, and the keys by which it is found.
        sealing: Seals the rows of the thread.
        search: Whether text is indexed.
    """
    text, continues = new.search_text(delta) if search and not new.provisional else ("", False)
    return NewRow(
        checkpoint_id=checkpoint_id,
        token=token,
        payload=seal_payload(sealing, delta, token),
        seal=row_seal(sealing, checkpoint_id, token, metadata[0]),
        parent_seq=delta.parent.seq if delta.parent else None,
        continues=2 if new.provisional else int(continues),
        metadata=metadata[0],
        metadata_keys=metadata[1],
        search_text=text or None,
        unindexed=1 if text else None,
        oldest_at=new.oldest_at,
    )


def chain_of(stored: Mapping[int, L], seq: int) -> list[L]:
    """Return a row and those it builds on, newest first. Ends where a base is missing or not older than its row."""
    chain = [stored[seq]]
    while (base := stored.get(chain[-1].base_seq or 0)) is not None and base.seq < chain[-1].seq:
        chain.append(base)
    return chain


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
