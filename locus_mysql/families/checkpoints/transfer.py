"""Threads as a source and a target of transfers, in the order of the source."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate, groupby
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ...engine.operation import Operation
from ...engine.retry import next_page
from ...errors import CorruptCheckpoint, InvalidInput, Unavailable
from ...runtime.arguments import check_thread_id
from ...runtime.checksummed_jsonl import Head
from ...runtime.database import Database
from ...runtime.exact_json import canonical_text
from ...runtime.sealing import fetching_keys
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .lines import FORMAT, LineCheckpoint, checkpoint_line, checkpoint_of_content, head_line, key_of_content
from .moving import Damaged, KeptCheckpoint, KeptPage, MovingOperations, Standing
from .new_checkpoint import NewCheckpoint
from .records import decode_state_text
from .store import StoreOperations
from .thread_writer import ThreadWriter, Wanted

#: The checkpoint is stored; is missing and may become the newest; or is missing and older than stored ones.
Arrival: TypeAlias = Literal["stored", "missing", "behind"]


class Order:
    """Decides which arriving checkpoints may be written. They arrive oldest first.

    A checkpoint that is written becomes the newest of its thread. So a missing one may be written only if the thread
    has no newer ones: it is compared by time with the stored checkpoints after the last arrival.

    Args:
        stored: The checkpoints that the thread has, oldest first, with their times.
    """

    def __init__(self, stored: Mapping[str, datetime]) -> None:
        self._positions = {checkpoint_id: position for position, checkpoint_id in enumerate(stored)}
        #: The latest time at or after each position.
        self._latest = list(accumulate(reversed([*stored.values()]), max))[::-1]
        self._met = 0  # the number of stored checkpoints up to the last one that arrived

    def classify(self, checkpoint_id: str, created_at: datetime | None) -> Arrival:
        """Classify the next checkpoint.

        Args:
            checkpoint_id: Its id.
            created_at: When it was saved, if that is known.
        """
        position = self._positions.get(checkpoint_id)
        if position is not None:
            self._met = max(self._met, position + 1)
            return "stored"
        if self._met >= len(self._latest) or (created_at is not None and self._latest[self._met] <= created_at):
            return "missing"
        return "behind"

    def written(self, checkpoint_id: str) -> None:
        """Note that a missing checkpoint was written, as the newest."""
        self._positions[checkpoint_id] = len(self._positions)
        self._met = len(self._latest)


T = TypeVar("T")

#: Bytes of lines in a page.
_PAGE_BYTES = 4_000_000

#: Checkpoints of the target that are read at a time, to be compared.
_COMPARED_AT_ONCE = 50

#: Maximum number of times that a thread is read again because another process wrote to it.
_TRIES = 10


class ThreadTransfer:
    """Exports and imports threads. See `Transfer`.

    Args:
        tables: The operations of a kind of threads, for a tenant.
    """

    noun = "checkpoint"

    def __init__(self, tables: StoreOperations) -> None:
        self._tables = tables

    def source(
        self,
        threads: Sequence[str] | None = None,
        pattern: str = "*",
        since: datetime | None = None,
        **others: Any,
    ) -> ThreadExport:
        """See `ThreadExport`."""
        refuse_others(others, self._tables.kind)
        return ThreadExport(self._tables, threads=threads, glob=pattern, since=since)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT and head.content.get("family") == self._tables.kind

    def target(self, head: Head, *, overwrite: bool = False) -> ThreadImport:
        """See `Transfer.target`."""
        if overwrite:
            raise InvalidInput("The file holds threads, whose checkpoints are not replaced (--overwrite).")
        return ThreadImport(self._tables)


class ThreadExport:
    """Reads checkpoints thread by thread in the order of their ids, those of a thread in the order of their saves.

    Args:
        tables: The operations of a kind of threads, for a tenant.
        threads: Ids of the threads to read; None means all.
        glob: Only threads whose ids match this glob.
        since: Only checkpoints saved at or after this time.
    """

    constants = True

    def __init__(
        self,
        tables: StoreOperations,
        *,
        threads: Sequence[str] | None = None,
        glob: str = "*",
        since: datetime | None = None,
    ) -> None:
        self._tables = tables
        self._named = None if threads is None else sorted({*map(check_thread_id, threads)})
        self._glob = glob
        self._since = since
        self.head = head_line(tables.tenant, tables.kind, threads=self._named, glob=glob, since=since)
        self._pending: deque[str] = deque()
        self._last_thread = ""
        self._listed = False
        self._thread: _ThreadReading | None = None

    def position_of(self, content: Mapping[str, Any]) -> tuple[str, int]:
        """Return the thread and the seq of the checkpoint in a line."""
        return key_of_content(content)

    async def count(self, database: Database) -> int:
        """Return the number of checkpoints."""
        tables = self._tables
        operations = tables.checkpoints.moving
        if self._named is None:
            return await _run(database, tables, operations.count_checkpoints(tables.tenant, self._glob, self._since))
        standings = [await _run(database, tables, operations.standing(tables.tenant, one)) for one in self._named]
        return sum(len(standing.entries) for standing in standings)

    async def page(self, database: Database, after: tuple[str, int] | None, limit: int) -> RecordPage:
        """Return the lines after those of the last page. Only the first call uses the position."""
        if after is not None and not self._last_thread:
            self._last_thread = after[0]
            self._thread = _ThreadReading(self._tables, after[0], after[1], self._since)
        page, size = RecordPage(), 0
        while len(page.records) < limit and size < _PAGE_BYTES:
            if self._thread is None:
                thread_id = await self._next(database)
                if thread_id is None:
                    break
                self._thread = _ThreadReading(self._tables, thread_id, 0, self._since)
            found = await self._thread.next(database)
            if found is None:
                self._thread = None
                continue
            page.last = (self._thread.thread_id, found.seq)
            if isinstance(found, Damaged):
                page.damaged.append(f"checkpoint {found.checkpoint_id!r}: {found.error}")
                continue
            parent_id = await self._thread.parent_of(database, found)
            page.records.append(checkpoint_line(self._thread.thread_id, found, parent_id))
            size += len(page.records[-1])
        return page

    async def _next(self, database: Database) -> str | None:
        """Return the next thread; None after the last."""
        if self._named is not None:
            thread_id = next((one for one in self._named if one > self._last_thread), None)
            self._last_thread = thread_id or self._last_thread
            return thread_id
        if not self._pending and not self._listed:
            tables = self._tables
            asking = tables.checkpoints.moving.threads_after(tables.tenant, self._last_thread, self._glob, self._since)
            self._pending.extend(await _run(database, tables, asking))
            self._listed = not self._pending
        if not self._pending:
            return None
        self._last_thread = self._pending.popleft()
        return self._last_thread


class _ThreadReading:
    """Reads the checkpoints of a thread, one after another."""

    def __init__(self, tables: StoreOperations, thread_id: str, after: int, since: datetime | None) -> None:
        self.thread_id = thread_id
        self._tables = tables
        self._after = after
        self._since = since
        self._page: KeptPage | None = None
        self._each: Iterator[KeptCheckpoint | Damaged] = iter(())
        self._ids: dict[int, str] = {}
        self._returned: set[str] = set()
        self._standing: Standing | None = None

    async def next(self, database: Database) -> KeptCheckpoint | Damaged | None:
        """Return the next checkpoint; None after the last. One that was saved again meanwhile is returned once."""
        tables = self._tables
        while True:
            for found in self._each:
                self._after = next_page(self._after, found.seq)
                if found.checkpoint_id not in self._returned:
                    self._returned.add(found.checkpoint_id)
                    return found
            if self._page is not None and self._page.complete:
                return None
            reading = tables.checkpoints.moving.kept_page(tables.tenant, self.thread_id, self._after, since=self._since)
            self._page = await _run(database, tables, reading)
            if not self._page.stored:
                return None
            self._each = self._page.each()

    async def parent_of(self, database: Database, kept: KeptCheckpoint) -> str | None:
        """Return the id of the nearest stored ancestor of a checkpoint."""
        self._ids[kept.seq] = kept.checkpoint_id
        if kept.parent_seq is None or kept.parent_seq in self._ids:
            return None if kept.parent_seq is None else self._ids[kept.parent_seq]
        if self._standing is None or kept.checkpoint_id not in self._standing.entries:
            tables = self._tables
            self._standing = await _run(
                database, tables, tables.checkpoints.moving.standing(tables.tenant, self.thread_id)
            )
        entry = self._standing.entries.get(kept.checkpoint_id)
        return None if entry is None else entry.parent_id


class StoredThread:
    """A thread in the tables that is the target of a transfer.

    Args:
        run: Runs an operation after the tables were created or checked.
        operations: The operations on the tables.
        tenant: The tenant of the thread.
        thread_id: The thread.
    """

    def __init__(self, run: Run, operations: MovingOperations, tenant: str, thread_id: str) -> None:
        self._run = run
        self._operations = operations
        self._key = (tenant, thread_id)
        self._writer = ThreadWriter(operations, tenant, thread_id)
        self._loaded: dict[str, KeptCheckpoint | Damaged] = {}

    async def list_checkpoints(self) -> dict[str, datetime]:
        """Return the time of each checkpoint, oldest first. Needed before the first write and after a failed one."""
        standing = await self._run(self._writer.look())
        self._loaded = {}
        return {checkpoint_id: entry.created_at for checkpoint_id, entry in standing.entries.items()}

    def has(self, checkpoint_id: str) -> bool:
        """Return whether the thread has a checkpoint."""
        return checkpoint_id in self._writer.standing.entries

    async def load(self, checkpoint_id: str) -> KeptCheckpoint | Damaged | None:
        """Load a checkpoint and, in advance, those that follow it."""
        if checkpoint_id not in self._loaded:
            entry = self._writer.standing.entries.get(checkpoint_id)
            if entry is None:
                return None
            page = await self._run(self._operations.kept_page(*self._key, entry.seq - 1, _COMPARED_AT_ONCE))
            self._loaded = {one.checkpoint_id: one for one in page.each()}
        return self._loaded.get(checkpoint_id)

    async def save(self, wanted: Sequence[Wanted], replaced: Sequence[str] = ()) -> bool:
        """Save checkpoints as the newest; False if another process wrote to the thread since it was listed."""
        return await self._run(self._writer.put(wanted, replaced))


class Run(Protocol):
    """Runs an operation."""

    def __call__(self, operation: Operation[T]) -> Awaitable[T]:
        """Run it."""


class ThreadImport:
    """Writes the checkpoints of threads.

    Args:
        tables: The operations of a kind of threads, for the tenant that gets them.
    """

    constants = True

    def __init__(self, tables: StoreOperations) -> None:
        self._tables = tables
        self._thread: _ThreadImport | None = None

    def read(self, content: Mapping[str, Any]) -> LineCheckpoint:
        """Return the checkpoint in a line."""
        return checkpoint_of_content(content)

    async def write(self, database: Database, records: Sequence[LineCheckpoint], report: TransferReport) -> None:
        """Write missing checkpoints, and compare the others."""
        for thread_id, group in groupby(records, key=lambda one: one.thread_id):
            if self._thread is None or self._thread.thread_id != thread_id:
                self._thread = _ThreadImport(self._tables, database, thread_id)
                await self._thread.open()
            await self._thread.write(list(group), report)


class _ThreadImport:
    """A thread that is being read from a file, checkpoint by checkpoint."""

    def __init__(self, tables: StoreOperations, database: Database, thread_id: str) -> None:
        self.thread_id = thread_id
        self._tables = tables

        def run(operation: Operation[T]) -> Awaitable[T]:
            return _run(database, tables, operation)

        self._stored = StoredThread(run, tables.checkpoints.moving, tables.tenant, check_thread_id(thread_id))
        self._order = Order({})
        self._diverged = False

    async def open(self) -> None:
        """Read which checkpoints are stored."""
        self._order = Order(await self._stored.list_checkpoints())

    async def write(self, lines: Sequence[LineCheckpoint], report: TransferReport) -> None:
        """Write missing checkpoints, and compare the others."""
        for _ in range(_TRIES):
            missing: dict[str, LineCheckpoint] = {}
            refused: list[str] = []
            for line in lines:
                arrival = self._order.classify(line.checkpoint_id, line.created_at)
                if arrival == "missing" and not self._diverged and line.checkpoint_id not in missing:
                    missing[line.checkpoint_id] = line
                    continue
                twice = line.checkpoint_id in missing
                why = "the file contains it twice" if twice else await self._difference(line, arrival)
                if why is not None:
                    refused.append(
                        f"Checkpoint {line.checkpoint_id!r} of thread {self.thread_id!r} was left out: {why}."
                    )
            if await self._save([*missing.values()]):
                report.copied += len(missing)
                report.present += len(lines) - len(missing) - len(refused)
                for message in refused:
                    report.leave_out(message)
                return
            await self.open()
        raise Unavailable(
            f"Thread {self.thread_id!r} was written to during every attempt; try again when nothing writes to it."
        )

    async def _save(self, missing: Sequence[LineCheckpoint]) -> bool:
        wanted = [Wanted(self._new(line), line.created_at, line.parent_id, line.knows_parent) for line in missing]
        if not await self._stored.save(wanted):
            return False
        for line in missing:
            self._order.written(line.checkpoint_id)
        return True

    async def _difference(self, line: LineCheckpoint, arrival: Arrival) -> str | None:
        """Return why a checkpoint that differs from the tables is not written; None if it is identical."""
        if arrival == "missing":
            return "it would follow a checkpoint that differs in the tables"
        if arrival == "behind":
            return "the thread has newer checkpoints, and lacks it"
        if await self._is_same(line):
            return None
        self._diverged = True
        return "it differs in the tables"

    async def _is_same(self, line: LineCheckpoint) -> bool:
        """Return whether a stored checkpoint is identical to the one in a line."""
        found = await self._stored.load(line.checkpoint_id)
        if found is None or isinstance(found, Damaged):
            return False
        if canonical_text(found.metadata) != canonical_text(line.metadata):
            return False
        if line.created_at is not None and found.created_at != line.created_at:
            return False
        text = found.state.text()
        if self._new(line).encode(None).state.text() == text:
            return True
        try:
            return canonical_text(decode_state_text(text, self.thread_id)) == canonical_text(line.state)
        except CorruptCheckpoint:
            return False

    def _new(self, line: LineCheckpoint) -> NewCheckpoint:
        new = self._tables.new(line.state, line.checkpoint_id, line.metadata)
        return replace(new, provisional=line.provisional)


async def _run(database: Database, tables: StoreOperations, operation: Operation[T]) -> T:
    """Run an operation after the tables were created or checked."""
    steps = fetching_keys(operation, tables.config)
    return await database.asynchronous.run(steps, tables.schema, tables.config.ddl_mode)
