"""Writing checkpoints of a thread as they were elsewhere, as generators that do no I/O: `ThreadWriter`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ...dialect import Statement
from ...dialect.checkpoints.moving import ThreadTimes
from ...dialect.checkpoints.saving import NewRow
from ...engine.logs import HOUSEKEEPING, told
from ...engine.operation import Batch, Duplicate, Operation, Outdated
from ...errors import LocusMySQLError, StateTooLarge
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from .coding.delta import Delta, Lineage, encode_delta, extend
from .coding.digests import HashedLogs, hash_logs
from .maintenance import INDEXED_PER_SAVE
from .moving import Entry, MovingOperations, Standing
from .new import NewCheckpoint
from .rows import as_sql_time, row_of

#: What one transaction writes at most, unless one state is larger by itself.
PUT_BYTES, PUT_ROWS = 4_000_000, 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checkpoint to be written as it was elsewhere.

    Args:
        new: What to save; its id must be given.
        created_at: When it was saved; None means now.
        parent_id: What it followed; None if nothing.
        knows_parent: Whether that is known; else it follows the one before it.
    """

    new: NewCheckpoint
    created_at: datetime | None = None
    parent_id: str | None = None
    knows_parent: bool = False


class ThreadWriter:
    """Writes checkpoints of one thread as they were elsewhere, behind those that are there.

    Args:
        operations: Those of the tables.
        tenant: Whose the thread will be.
        thread_id: The thread.
    """

    def __init__(self, operations: MovingOperations, tenant: str, thread_id: str) -> None:
        self._operations = operations
        self._key = (tenant, check_thread_id(thread_id))
        self.standing = Standing()
        self._lineages: dict[str, Lineage] = {}
        self._hashed: HashedLogs = {}

    def look(self) -> Operation[Standing]:
        """See what is there. Needed before the first write, and after one that failed. One round trip."""
        self.standing = yield from self._operations.standing(*self._key)
        self._lineages, self._hashed = {}, {}
        return self.standing

    def put(self, wanted: Sequence[Wanted], replaced: Sequence[str] = ()) -> Operation[bool]:
        """Write checkpoints as the newest of the thread, in a few transactions; a round trip for each.

        Args:
            wanted: The checkpoints, oldest first. None of the ids may be there, unless it is replaced.
            replaced: Ids that are there and give way, before the first is written.

        Returns:
            Whether that was done. If not, somebody else wrote to the thread since it was looked at, and the last
            transactions were not carried out.

        Raises:
            InvalidInput: One cannot be stored exactly.
            StateTooLarge: One of them needs a larger packet than the server accepts.
        """
        try:
            return (yield from self._put(wanted, replaced))
        except BaseException:
            self._lineages.clear()  # some are of rows that were not written
            raise

    def _put(self, wanted: Sequence[Wanted], replaced: Sequence[str]) -> Operation[bool]:
        rows: list[_Placed] = []
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

    def _row(self, wanted: Wanted, before: Sequence[_Placed], removed: Sequence[str]) -> Operation[_Placed]:
        """The row of a checkpoint that will stand behind those."""
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
            token=token,
            provisional=new.provisional,
            compression=operations.config.compression,
        )
        seq = before[-1].seq + 1 if before else self.standing.last_seq + 1
        row = row_of(new, checkpoint_id, token, delta, metadata, search=operations.config.search)
        self._hashed = hashed
        self._lineages[checkpoint_id] = extend(lineage, delta, seq, token, provisional=new.provisional)
        return _Placed(row, seq, delta, wanted.created_at, parent_id if lineage else None)

    def _last(self, before: Sequence[_Placed], removed: Sequence[str]) -> str | None:
        """The checkpoint that stands last before the next one."""
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

    def _write(self, rows: Sequence[_Placed], replaced: Sequence[str]) -> Operation[bool]:
        """One transaction, or a few if it is too large for one."""
        try:
            return (yield from self._write_at_once(rows, replaced))
        except StateTooLarge:
            if len(rows) == 1:
                raise
        half = len(rows) // 2
        return (yield from self._write(rows[:half], replaced)) and (yield from self._write(rows[half:], ()))

    def _write_at_once(self, rows: Sequence[_Placed], replaced: Sequence[str]) -> Operation[bool]:
        operations, sql, standing = self._operations, self._operations.sql, self.standing
        tenant, _ = self._key
        version = os.urandom(16)
        first, times = self._times(rows)
        landed = sql.ledger.find(tenant, version)
        first_seq = standing.last_seq + 1 if standing.expired else standing.first_seq
        steps: list[Statement | tuple[Statement, ...]] = []
        if standing.version is None:
            steps.append(sql.moving.make(*self._key, rows[-1].seq, version, times, operations.ttl_us))
        else:
            seqs = (rows[-1].seq, first_seq)
            steps.append(sql.moving.grow(*self._key, seqs, version, standing.version, times, operations.ttl_us))
            steps.append(sql.threads.guard(landed))
        steps.append(sql.ledger.settle(tenant, version))
        if standing.expired:
            steps += [sql.ledger.settle_left_behind(*self._key), sql.checkpoints.delete_left_behind(*self._key)]
        if replaced:
            steps += [sql.ledger.settle_rows(*self._key), sql.moving.unname_all(*self._key, replaced)]
        steps += [row.statement(operations, self._key) for row in rows]
        if replaced:
            steps.append(sql.maintenance.sweep(*self._key))
        try:
            yield Batch.named(*steps, landed=landed)
        except Outdated:
            return False
        except Duplicate as error:
            if error.table == sql.names["checkpoints"] and standing.version is None:  # rows without a thread's row
                yield Batch.of(sql.threads.adopt(*self._key, os.urandom(16), operations.ttl_us))
            return False
        finally:
            operations.memory.forget(self._key)
        gone = {*replaced}
        entries = {} if standing.expired else {i: one for i, one in standing.entries.items() if i not in gone}
        entries |= {row.row.checkpoint_id: row.entry for row in rows}
        self.standing = Standing(version, rows[-1].seq, first_seq, False, first, entries)
        yield from self._index(sum(row.row.search_text is not None for row in rows))
        return True

    def _times(self, rows: Sequence[_Placed]) -> tuple[datetime | None, ThreadTimes]:
        """When the thread was first saved, and its times as they will be; the last one is now if one is not known."""
        now = datetime.now(UTC)
        there = [] if self.standing.expired else [entry.created_at for entry in self.standing.entries.values()]
        times = [row.created_at or now for row in rows] + there
        first = min(times)
        last = None if any(row.created_at is None for row in rows) else as_sql_time(max(times))
        return first, ThreadTimes(as_sql_time(first), last)

    def _index(self, texts: int) -> Operation[None]:
        """Index the words of what was written, many at a time, so that the first search does not have to."""
        waiting = self._operations.texts_waiting = self._operations.texts_waiting + texts
        if waiting < INDEXED_PER_SAVE:
            return
        self._operations.texts_waiting = 0
        sql = self._operations.sql
        try:
            index = sql.queries.index_pending(waiting, skip_locked=True)
            yield Batch((index, sql.ledger.forget_old()), atomic=False)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("Checkpoints were written, but indexing their words failed: %s.", told(error))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row with its place."""

    row: NewRow
    seq: int
    delta: Delta
    created_at: datetime | None
    parent_id: str | None

    @property
    def size_bytes(self) -> int:
        """About how much it takes in a packet."""
        row = self.row
        return len(row.payload) + len(row.metadata or "") + 2 * len(row.search_text or "") + 500

    def statement(self, operations: MovingOperations, key: tuple[str, str]) -> Statement:
        """What inserts it."""
        base_seq = self.seq if self.delta.base is None else self.delta.base.seq
        time = None if self.created_at is None else as_sql_time(self.created_at)
        return operations.sql.moving.put(*key, self.seq, base_seq, self.row, time)

    @property
    def entry(self) -> Entry:
        """What the thread's list shows of it."""
        return Entry(self.seq, self.parent_id, self.created_at or datetime.now(UTC), self.row.provisional)
