"""Reads whole threads, for copies and exports, as generators that do no I/O. `ThreadWriter` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...dialect.template import like
from ...engine.operation import Operation, fetch
from ...errors import CorruptCheckpoint
from ...runtime.arguments import check_text, check_thread_id
from ...runtime.sealing import Sealing
from ...runtime.server_times import as_sql_time, aware
from .coding.codec import EncodedState
from .coding.delta import Lineage
from .context import Context
from .loading import Loading
from .records import metadata_of
from .state_rows import assemble_rows, chain_of
from .statements import moving, threads
from .statements.moving import PageRow, ThreadRow
from .thread_cache import ThreadKey


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A checkpoint with all its stored data.

    Args:
        seq: Its position in the thread.
        checkpoint_id: Its id.
        state: Its state.
        metadata: Its metadata.
        created_at: When it was saved.
        provisional: Whether a later save of its turn would have deleted it.
        parent_seq: The position of its parent; None if it has none.
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
        seq: Its position in the thread.
        checkpoint_id: Its id.
        error: The error.
    """

    seq: int
    checkpoint_id: str
    error: CorruptCheckpoint


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page of a thread's checkpoints, as rows: each state is assembled only when it is iterated.

    Args:
        thread_id: The thread.
        sealing: Opens its rows.
        stored: The rows by their positions, including those that others build on.
        complete: Whether this is the thread's last page.
    """

    thread_id: str
    sealing: Sealing
    stored: Mapping[int, PageRow]
    complete: bool

    def each(self) -> Iterator[KeptCheckpoint | Damaged]:
        """Yield the checkpoints, oldest first."""
        for seq, row in self.stored.items():
            if row.checkpoint_id is None:
                continue
            try:
                metadata = metadata_of(row, self.thread_id, self.sealing)
                state, _ = assemble_rows(chain_of(self.stored, seq), self.thread_id, self.sealing)
            except CorruptCheckpoint as error:
                yield Damaged(seq, row.checkpoint_id, error)
                continue
            yield KeptCheckpoint(
                seq, row.checkpoint_id, state, metadata, aware(row.created_at), bool(row.provisional), row.parent_seq
            )


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """A checkpoint in the list of its thread.

    Args:
        seq: Its position in the thread.
        parent_id: Its nearest ancestor that is a checkpoint; None if there is none.
        created_at: When it was saved.
        provisional: Whether a later save of its turn would have deleted it.
    """

    seq: int
    parent_id: str | None
    created_at: datetime
    provisional: bool


@dataclass(slots=True)
class Standing:
    """The stored rows of a thread, without states and metadata.

    Args:
        version: Changes with every write; None if the thread does not exist.
        last_seq: The seq of the last save.
        first_seq: The first valid seq.
        expired: Whether it has expired, so that all its rows are invalid.
        created_at: When it was first saved.
        entries: Its checkpoints by their ids, oldest first.
    """

    version: bytes | None = None
    last_seq: int = 0
    first_seq: int = 1
    expired: bool = False
    created_at: datetime | None = None
    entries: dict[str, CheckpointEntry] = field(default_factory=dict)


class MovingOperations:
    """Reads whole threads. `ThreadWriter` writes them.

    Args:
        context: The objects shared by the store's operations.
        loading: Loads single checkpoints.
    """

    def __init__(self, context: Context, loading: Loading) -> None:
        self.context = context
        self._loading = loading

    #: Number of checkpoints written since the last indexing.
    texts_waiting = 0

    def threads_after(
        self, tenant: str, after: str, glob: str = "*", since: datetime | None = None, limit: int = 500
    ) -> Operation[list[str]]:
        """Return the ids of threads after one, in the order of the ids. One round trip.

        Args:
            tenant: The tenant of the threads.
            after: The last id that was returned; empty for the first page.
            glob: Only threads whose ids match it.
            since: Omits most threads without a save since this time.
            limit: The maximum number.
        """
        time = None if since is None else as_sql_time(since)
        pattern = like(check_text(glob, "Pattern"))
        find = moving.THREADS_AFTER(
            self.context.sql, tenant=tenant, after=after, pattern=pattern, since=time, limit=limit
        )
        return [row.thread_id for row in (yield from fetch(find))]

    def count_threads(self, tenant: str, glob: str = "*") -> Operation[int]:
        """Return the number of threads that match a glob. One round trip."""
        pattern = like(check_text(glob, "Pattern"))
        ((number,),) = yield from fetch(threads.COUNT(self.context.sql, tenant=tenant, pattern=pattern))
        return number

    def count_checkpoints(self, tenant: str, glob: str = "*", since: datetime | None = None) -> Operation[int]:
        """Return the number of checkpoints, saved since a time, in threads that match a glob. One round trip."""
        time = None if since is None else as_sql_time(since)
        pattern = like(check_text(glob, "Pattern"))
        count = moving.COUNT_CHECKPOINTS(self.context.sql, tenant=tenant, pattern=pattern, since=time)
        ((number,),) = yield from fetch(count)
        return number

    def standing(self, tenant: str, thread_id: str) -> Operation[Standing]:
        """Return a thread's rows without states and metadata. One round trip."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        return _standing_of((yield from fetch(moving.READ_STANDING(self.context.sql, key))))

    def kept_page(
        self,
        tenant: str,
        thread_id: str,
        after: int,
        limit: int = 100,
        limit_bytes: int = 8_000_000,
        since: datetime | None = None,
    ) -> Operation[KeptPage]:
        """Return a page of a thread's whole checkpoints after a position, oldest first. One round trip.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            after: The position; 0 for the first page.
            limit: The maximum number.
            limit_bytes: The page ends when its rows reach this size.
            since: Only checkpoints saved since this time.
        """
        time = None if since is None else as_sql_time(since)
        key = ThreadKey(tenant, check_thread_id(thread_id))
        read = moving.READ_PAGE(self.context.sql, key, after=after, limit=limit, limit_bytes=limit_bytes, since=time)
        stored = {row.seq: row for row in (yield from fetch(read))}
        sizes = [len(row.payload) for row in stored.values() if row.checkpoint_id is not None]
        return KeptPage(
            thread_id,
            self.context.sealing.of(tenant, thread_id),
            stored,
            complete=len(sizes) < limit and sum(sizes) < limit_bytes,
        )

    def lineage_of(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[Lineage]:
        """Return the lineage for a state that follows a checkpoint; empty if it does not exist. One round trip."""
        rows = yield from self._loading.named_rows(ThreadKey(tenant, thread_id), checkpoint_id)
        return assemble_rows(rows, thread_id, self.context.sealing.of(tenant, thread_id))[1] if rows else ()


def _standing_of(rows: Sequence[ThreadRow]) -> Standing:
    if not rows:
        return Standing()
    thread = rows[0]
    standing = Standing(
        thread.version, thread.last_seq, thread.first_seq, bool(thread.expired), aware(thread.created_at)
    )
    if standing.expired:
        return standing
    ids: dict[int, str | None] = {}
    parents: dict[int, int | None] = {}
    for row in rows:
        if row.seq is None:
            continue
        ids[row.seq], parents[row.seq] = row.checkpoint_id, row.parent_seq
        if row.checkpoint_id is not None:
            parent_id = _nearest_named(row.seq, ids, parents)
            standing.entries[row.checkpoint_id] = CheckpointEntry(
                row.seq, parent_id, aware(row.saved_at), bool(row.provisional)
            )
    return standing


def _nearest_named(seq: int, ids: Mapping[int, str | None], parents: Mapping[int, int | None]) -> str | None:
    """Return the nearest named ancestor of a row. A parent that is not older than its child counts as none."""
    parent = parents[seq]
    while parent is not None and parent < seq and parent in ids:
        if ids[parent] is not None:
            return ids[parent]
        seq, parent = parent, parents[parent]
    return None
