"""Reading threads whole, as generators that do no I/O: for copies and exports. `ThreadWriter` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ...drivers.interface import Row
from ...engine.operation import Batch, Operation
from ...errors import CorruptCheckpoint
from ...runtime.arguments import check_text, check_thread_id
from .coding.codec import EncodedState
from .coding.delta import Lineage
from .records import metadata_of
from .rows import as_sql_time, assemble_rows, aware, chain_of
from .saving import SavingOperations


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A checkpoint with all that is kept of it.

    Args:
        seq: Its place in the thread.
        checkpoint_id: Its id.
        state: Its state.
        metadata: Its metadata.
        created_at: When it was saved.
        provisional: Whether a later save of its turn would have deleted it.
        parent_seq: The place of what it follows; None if nothing.
    """

    seq: int
    checkpoint_id: str
    state: EncodedState
    metadata: dict[str, Any]
    created_at: datetime
    provisional: bool
    parent_seq: int | None


@dataclass(frozen=True, slots=True)
class Damaged:
    """A checkpoint that cannot be read.

    Args:
        seq: Its place in the thread.
        checkpoint_id: Its id.
        error: What is wrong.
    """

    seq: int
    checkpoint_id: str
    error: CorruptCheckpoint


@dataclass(frozen=True, slots=True)
class KeptPage:
    """Some of a thread's checkpoints, as rows: each state is put together when it is its turn.

    Args:
        thread_id: The thread.
        stored: The rows by their places, those that others build on among them.
        complete: Whether the thread had no more.
    """

    thread_id: str
    stored: Mapping[int, Row]
    complete: bool

    def each(self) -> Iterator[KeptCheckpoint | Damaged]:
        """The checkpoints, oldest first."""
        for seq, row in self.stored.items():
            if row[3] is None:
                continue
            checkpoint_id = cast(str, row[3])
            try:
                state, _ = assemble_rows(chain_of(self.stored, seq), self.thread_id)
                metadata = metadata_of(self.thread_id, checkpoint_id, row[5])
            except CorruptCheckpoint as error:
                yield Damaged(seq, checkpoint_id, error)
                continue
            parent_seq = cast("int | None", row[8])
            yield KeptCheckpoint(seq, checkpoint_id, state, metadata, aware(row[6]), bool(row[7]), parent_seq)


@dataclass(frozen=True, slots=True)
class Entry:
    """A checkpoint as its thread's list shows it.

    Args:
        seq: Its place in the thread.
        parent_id: The nearest checkpoint that it follows; None if there is none.
        created_at: When it was saved.
        provisional: Whether a later save of its turn would have deleted it.
    """

    seq: int
    parent_id: str | None
    created_at: datetime
    provisional: bool


@dataclass(slots=True)
class Standing:
    """What is there of a thread.

    Args:
        version: Another one after every write; None if there is no thread.
        last_seq: The seq of what was saved last.
        first_seq: The first seq that counts.
        expired: Whether it has expired, so that nothing in it counts.
        created_at: When it was first saved.
        entries: Its checkpoints by their ids, oldest first.
    """

    version: bytes | None = None
    last_seq: int = 0
    first_seq: int = 1
    expired: bool = False
    created_at: datetime | None = None
    entries: dict[str, Entry] = field(default_factory=dict)


class MovingOperations(SavingOperations):
    """Reading threads whole. `ThreadWriter` writes them."""

    #: How many checkpoints were written since some were last indexed.
    texts_waiting = 0

    def threads_after(
        self, tenant: str, after: str, glob: str = "*", since: datetime | None = None, limit: int = 500
    ) -> Operation[list[str]]:
        """Ids of threads behind one, in the order of the ids. One round trip.

        Args:
            tenant: Whose.
            after: The last one that is known; empty to begin.
            glob: Only those that match it.
            since: Of those not saved to since, most are left out.
            limit: At most so many.
        """
        time = None if since is None else as_sql_time(since)
        (found,) = yield Batch.of(
            self.sql.moving.threads_after(tenant, after, check_text(glob, "Pattern"), time, limit)
        )
        return [cast(str, row[0]) for row in found.rows]

    def count_threads(self, tenant: str, glob: str = "*") -> Operation[int]:
        """How many threads match a glob. One round trip."""
        (found,) = yield Batch.of(self.sql.moving.count_threads(tenant, check_text(glob, "Pattern")))
        return cast(int, found.rows[0][0])

    def count_checkpoints(self, tenant: str, glob: str = "*", since: datetime | None = None) -> Operation[int]:
        """How many checkpoints, saved since a time, the threads that match a glob have. One round trip."""
        time = None if since is None else as_sql_time(since)
        (found,) = yield Batch.of(self.sql.moving.count_checkpoints(tenant, check_text(glob, "Pattern"), time))
        return cast(int, found.rows[0][0])

    def standing(self, tenant: str, thread_id: str) -> Operation[Standing]:
        """What is there of a thread, without states and metadata. One round trip."""
        (found,) = yield Batch.of(self.sql.moving.thread(tenant, check_thread_id(thread_id)))
        return _standing_of(found.rows)

    def kept_page(
        self,
        tenant: str,
        thread_id: str,
        after: int,
        limit: int = 100,
        limit_bytes: int = 8_000_000,
        since: datetime | None = None,
    ) -> Operation[KeptPage]:
        """A thread's checkpoints behind a place, whole, oldest first; none if that was the last. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            after: The place; 0 to begin.
            limit: At most so many.
            limit_bytes: No more once their rows take as much.
            since: Only those saved since.
        """
        time = None if since is None else as_sql_time(since)
        (found,) = yield Batch.of(
            self.sql.moving.page(tenant, check_thread_id(thread_id), after, limit, limit_bytes, time)
        )
        stored = {cast(int, row[0]): row for row in found.rows}
        sizes = [len(cast(bytes, row[2])) for row in found.rows if row[3] is not None]
        return KeptPage(thread_id, stored, complete=len(sizes) < limit and sum(sizes) < limit_bytes)

    def lineage_of(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[Lineage]:
        """What a state may build on that follows a checkpoint; empty if that is not there. One round trip."""
        rows = yield from self._named_rows(tenant, thread_id, checkpoint_id)
        return assemble_rows(rows, thread_id)[1] if rows else ()


def _standing_of(rows: Sequence[Row]) -> Standing:
    """What the rows of `MovingStatements.thread` say."""
    if not rows:
        return Standing()
    version, last_seq, first_seq, created_at, _, expired = rows[0][:6]
    standing = Standing(
        cast(bytes, version), cast(int, last_seq), cast(int, first_seq), bool(expired), aware(created_at)
    )
    if expired:
        return standing
    ids: dict[int, str | None] = {}
    parents: dict[int, int | None] = {}
    for row in rows:
        seq, checkpoint_id, parent_seq, saved_at, provisional = row[6:]
        if seq is None:
            continue
        place = cast(int, seq)
        ids[place], parents[place] = cast("str | None", checkpoint_id), cast("int | None", parent_seq)
        if checkpoint_id is not None:
            parent_id = _nearest_named(place, ids, parents)
            standing.entries[cast(str, checkpoint_id)] = Entry(place, parent_id, aware(saved_at), bool(provisional))
    return standing


def _nearest_named(seq: int, ids: Mapping[int, str | None], parents: Mapping[int, int | None]) -> str | None:
    """The nearest checkpoint that a row follows. A row that is said to follow a later one follows none."""
    parent = parents[seq]
    while parent is not None and parent < seq and parent in ids:
        if ids[parent] is not None:
            return ids[parent]
        seq, parent = parent, parents[parent]
    return None
