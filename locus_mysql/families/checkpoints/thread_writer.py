"""Writing checkpoints with their ids, times and parents, as generators that do no I/O: `ThreadWriter`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...dialect import Statement
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Batch, Duplicate, Operation, Outdated
from ...errors import LocusMySQLError, StateTooLarge
from ...records.ledger import FIND, RECORD
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from ...runtime.server_times import as_sql_time
from .coding.delta import Delta, Lineage, encode_delta, extend
from .coding.digests import HashedLogs, hash_logs
from .maintenance import INDEXED_PER_SAVE, housekeeping
from .moving import CheckpointEntry, MovingOperations, Standing
from .new_checkpoint import NewCheckpoint
from .state_rows import row_of
from .statements import ledger, moving, removing, threads
from .statements.dialect import CheckpointDialect
from .statements.moving import ThreadTimes
from .statements.saving import NewRow
from .thread_cache import ThreadKey

#: Limits of one transaction: bytes, unless one state is larger, and rows.
PUT_BYTES, PUT_ROWS = 4_000_000, 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checkpoint of another store that is to be written.

    Args:
        new: The checkpoint; its id must be given.
        created_at: When it was saved; None means now.
        parent_id: The checkpoint that it follows; None if none.
        knows_parent: Whether that is known; else it follows the checkpoint before it.
    """

    new: NewCheckpoint
    created_at: datetime | None = None
    parent_id: str | None = None
    knows_parent: bool = False


class ThreadWriter:
    """Writes checkpoints of other stores into one thread, after those that it has.

    Args:
        operations: The operations on the tables.
        tenant: The tenant to store the thread for.
        thread_id: The thread.
    """

    def __init__(self, operations: MovingOperations, tenant: str, thread_id: str) -> None:
        self._operations = operations
        self._key = ThreadKey(tenant, check_thread_id(thread_id))
        self.standing = Standing()
        self._lineages: dict[str, Lineage] = {}
        self._hashed: HashedLogs = {}

    def look(self) -> Operation[Standing]:
        """Read the state of the thread. Needed before the first write, and after one that failed. One round trip."""
        self.standing = yield from self._operations.standing(*self._key)
        self._lineages, self._hashed = {}, {}
        return self.standing

    def put(self, wanted: Sequence[Wanted], replaced: Sequence[str] = ()) -> Operation[bool]:
        """Write checkpoints as the newest of the thread, in one or more transactions; each is a round trip.

        Args:
            wanted: The checkpoints, oldest first. None of the ids may be stored, unless it is replaced.
            replaced: Ids of stored checkpoints that are removed in the first transaction.

        Returns:
            True if all were written; False if another process wrote to the thread since it was read, so that the last
            transactions were not executed.

        Raises:
            InvalidInput: One cannot be stored exactly.
            StateTooLarge: One of them needs a larger packet than the server accepts.
        """
        try:
            return (yield from self._put(wanted, replaced))
        except BaseException:
            self._lineages.clear()  # some belong to rows that were not written
            raise

    def _put(self, wanted: Sequence[Wanted], replaced: Sequence[str]) -> Operation[bool]:
        rows: list[_SequencedRow] = []
        size = 0
        for one in wanted:
            row = yield from self._row(one, rows, removed=replaced)
            if rows and (size + row.size_bytes > PUT_BYTES or len(rows) == PUT_ROWS):
                if not (yield from self._write(rows, replaced)):
                    return False
                rows, size, replaced = [], 0, ()
            rows.append(row)
            size += row.size_bytes
        return not rows or (yield from self._write(rows, replaced))

    def _row(self, wanted: Wanted, before: Sequence[_SequencedRow], removed: Sequence[str]) -> Operation[_SequencedRow]:
        """Return the row of a checkpoint that will follow those."""
        operations, new = self._operations, wanted.new
        checkpoint_id = check_checkpoint_id(new.checkpoint_id)
        metadata = encode_metadata(new.metadata)
        parent_id = wanted.parent_id if wanted.knows_parent else self._last(before, removed)
        lineage = yield from self._lineage(parent_id, removed)
        encoded = new.encode(None).state
        hashed = hash_logs(encoded, self._hashed)
        token = os.urandom(16)
        delta = encode_delta(
            encoded,
            hashed,
            lineage,
            provisional=new.provisional,
            compression=operations.context.config.compression,
            held=self._hashed,
        )
        seq = before[-1].seq + 1 if before else self.standing.last_seq + 1
        sealing = operations.context.sealing.of(*self._key)
        search = operations.context.config.search
        row = row_of(new, checkpoint_id, token, delta, metadata, sealing, search=search)
        self._hashed = hashed
        self._lineages[checkpoint_id] = extend(lineage, delta, seq, token, provisional=new.provisional)
        return _SequencedRow(row, seq, delta, wanted.created_at, parent_id if lineage else None)

    def _last(self, before: Sequence[_SequencedRow], removed: Sequence[str]) -> str | None:
        """Return the last checkpoint before the next one."""
        if before:
            return before[-1].row.checkpoint_id
        return next((one for one in reversed(self.standing.entries) if one not in removed), None)

    def _lineage(self, checkpoint_id: str | None, removed: Sequence[str]) -> Operation[Lineage]:
        if checkpoint_id is None or (checkpoint_id in removed and checkpoint_id not in self._lineages):
            return ()
        if checkpoint_id not in self._lineages:
            if checkpoint_id not in self.standing.entries:
                return ()
            self._lineages[checkpoint_id] = yield from self._operations.lineage_of(*self._key, checkpoint_id)
        return self._lineages[checkpoint_id]

    def _write(self, rows: Sequence[_SequencedRow], replaced: Sequence[str]) -> Operation[bool]:
        """Write rows in one transaction, or in several if they are too large for one packet."""
        try:
            return (yield from self._write_at_once(rows, replaced))
        except StateTooLarge:
            if len(rows) == 1:
                raise
        half = len(rows) // 2
        return (yield from self._write(rows[:half], replaced)) and (yield from self._write(rows[half:], ()))

    def _write_at_once(self, rows: Sequence[_SequencedRow], replaced: Sequence[str]) -> Operation[bool]:
        context, standing = self._operations.context, self.standing
        sql, key = context.sql, self._key
        version = os.urandom(16)
        first, times = self._times(rows)
        outcome_query = FIND(sql, key, token=version)
        first_seq = standing.last_seq + 1 if standing.expired else standing.first_seq
        values: dict[str, Any] = {"last_seq": rows[-1].seq, "version": version, "ttl_us": context.ttl_us}
        steps: list[Statement] = []
        if standing.version is None:
            steps.append(moving.MAKE_THREAD(sql, key, times, **values))
        else:
            steps.append(
                moving.GROW_THREAD(sql, key, times, known_version=standing.version, first_seq=first_seq, **values)
            )
            steps.append(threads.GUARD_ONCE(sql, key, token=version))
        steps.append(RECORD(sql, key, token=version))
        if standing.expired:
            steps += [ledger.RECORD_LEFT_BEHIND(sql, key), removing.DELETE_LEFT_BEHIND(sql, key)]
        if replaced:
            steps += [ledger.RECORD_ALL(sql, key), moving.CLEAR_IDS(sql, key, checkpoint_ids=[*replaced])]
        steps += [row.statement(sql, key) for row in rows]
        if replaced:
            steps += removing.sweep(sql, key)
        try:
            yield Batch.of(*steps, outcome_query=outcome_query)
        except Outdated:
            return False
        except Duplicate as error:
            if error.table == sql.names["checkpoints"] and standing.version is None:  # rows without a thread's row
                yield Batch.of(threads.RESTORE_ROW(sql, key, version=os.urandom(16), ttl_us=context.ttl_us))
            return False
        finally:
            context.cache.forget(self._key)
        gone = {*replaced}
        entries = {} if standing.expired else {i: one for i, one in standing.entries.items() if i not in gone}
        entries |= {row.row.checkpoint_id: row.entry for row in rows}
        self.standing = Standing(version, rows[-1].seq, first_seq, False, first, entries)
        yield from self._index(sum(row.row.search_text is not None for row in rows))
        return True

    def _times(self, rows: Sequence[_SequencedRow]) -> tuple[datetime | None, ThreadTimes]:
        """Return when the thread was first saved, and its new times; the last one is now if a row has no time."""
        now = datetime.now(UTC)
        stored_times = [] if self.standing.expired else [entry.created_at for entry in self.standing.entries.values()]
        times = [row.created_at or now for row in rows] + stored_times
        first = min(times)
        last = None if any(row.created_at is None for row in rows) else as_sql_time(max(times))
        return first, ThreadTimes(as_sql_time(first), last)

    def _index(self, texts: int) -> Operation[None]:
        """Index the words of many written checkpoints at once, instead of during the first search."""
        waiting = self._operations.texts_waiting = self._operations.texts_waiting + texts
        if waiting < INDEXED_PER_SAVE:
            return
        self._operations.texts_waiting = 0
        sql = self._operations.context.sql
        try:
            yield housekeeping(sql, waiting)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("Checkpoints were written, but indexing their words failed: %s.", loggable(error))


@dataclass(frozen=True, slots=True)
class _SequencedRow:
    """A row with its seq."""

    row: NewRow
    seq: int
    delta: Delta
    created_at: datetime | None
    parent_id: str | None

    @property
    def size_bytes(self) -> int:
        """Approximate number of bytes in a packet."""
        row = self.row
        return len(row.payload) + len(row.metadata or "") + 2 * len(row.search_text or "") + 500

    def statement(self, sql: CheckpointDialect, key: ThreadKey) -> Statement:
        """Return the statement that inserts it."""
        base_seq = self.seq if self.delta.base is None else self.delta.base.seq
        time = None if self.created_at is None else as_sql_time(self.created_at)
        return moving.PUT_ROW(sql, key, self.row, seq=self.seq, base_seq=base_seq, created_at=time)

    @property
    def entry(self) -> CheckpointEntry:
        """Its entry in the list of the thread."""
        return CheckpointEntry(self.seq, self.parent_id, self.created_at or datetime.now(UTC), self.row.provisional)
