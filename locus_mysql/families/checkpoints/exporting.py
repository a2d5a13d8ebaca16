"""Threads, as an export reads them and an import writes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any, TypeVar

from ...engine.operation import Operation
from ...errors import CorruptCheckpoint, Unavailable
from ...runtime.arguments import check_thread_id
from ...runtime.database import Database
from ...runtime.exporting import Page, Tally
from .lines import (
    LineCheckpoint,
    checkpoint_line,
    checkpoint_of_content,
    head_line,
    place_of_content,
)
from .moving import Damaged, KeptCheckpoint, KeptPage, Standing
from .new import NewCheckpoint
from .order import Order
from .records import decode_state_text
from .store import StoreOperations
from .thread_writer import ThreadWriter, Wanted

T = TypeVar("T")

#: Bytes of lines that are given at a time.
_BYTES_AT_ONCE = 4_000_000

#: Checkpoints of the target that are read at a time, to be compared.
_COMPARED_AT_ONCE = 50

#: How often a thread is looked at anew because somebody else wrote to it.
_TRIES = 10


class ThreadSource:
    """Checkpoints, thread by thread in the order of their ids, those of a thread in the order in which they were saved.

    Args:
        tables: Those of a family, for a tenant.
        threads: Only these; None means all.
        glob: Only threads whose ids match it.
        since: Only checkpoints saved since.
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
        self._waiting: deque[str] = deque()
        self._last_thread = ""
        self._listed = False
        self._thread: _ThreadReading | None = None

    def position_of(self, content: Mapping[str, Any]) -> tuple[str, int]:
        """Thread and place."""
        return place_of_content(content)

    async def count(self, database: Database) -> int:
        """How many checkpoints there are."""
        tables = self._tables
        operations = tables.checkpoints
        if self._named is None:
            return await _run(database, tables, operations.count_checkpoints(tables.tenant, self._glob, self._since))
        standings = [await _run(database, tables, operations.standing(tables.tenant, one)) for one in self._named]
        return sum(len(standing.entries) for standing in standings)

    async def page(self, database: Database, after: tuple[str, int] | None, limit: int) -> Page:
        """Some lines behind those given last. A position is asked for only with the first call."""
        if after is not None and not self._last_thread:
            self._last_thread = after[0]
            self._thread = _ThreadReading(self._tables, after[0], after[1], self._since)
        page, size = Page(), 0
        while len(page.lines) < limit and size < _BYTES_AT_ONCE:
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
            page.lines.append(checkpoint_line(self._thread.thread_id, found, parent_id))
            size += len(page.lines[-1])
        return page

    async def _next(self, database: Database) -> str | None:
        """The next thread; None if that was the last."""
        if self._named is not None:
            thread_id = next((one for one in self._named if one > self._last_thread), None)
            self._last_thread = thread_id or self._last_thread
            return thread_id
        if not self._waiting and not self._listed:
            tables = self._tables
            asking = tables.checkpoints.threads_after(tables.tenant, self._last_thread, self._glob, self._since)
            self._waiting.extend(await _run(database, tables, asking))
            self._listed = not self._waiting
        if not self._waiting:
            return None
        self._last_thread = self._waiting.popleft()
        return self._last_thread


class _ThreadReading:
    """The checkpoints of a thread, one after another."""

    def __init__(self, tables: StoreOperations, thread_id: str, after: int, since: datetime | None) -> None:
        self.thread_id = thread_id
        self._tables = tables
        self._after = after
        self._since = since
        self._page: KeptPage | None = None
        self._each: Iterator[KeptCheckpoint | Damaged] = iter(())
        self._ids: dict[int, str] = {}
        self._given: set[str] = set()
        self._standing: Standing | None = None

    async def next(self, database: Database) -> KeptCheckpoint | Damaged | None:
        """The next one; None if there is none. One that was saved anew meanwhile is not given again."""
        tables = self._tables
        while True:
            for found in self._each:
                self._after = found.seq
                if found.checkpoint_id not in self._given:
                    self._given.add(found.checkpoint_id)
                    return found
            if self._page is not None and self._page.complete:
                return None
            reading = tables.checkpoints.kept_page(tables.tenant, self.thread_id, self._after, since=self._since)
            self._page = await _run(database, tables, reading)
            if not self._page.stored:
                return None
            self._each = self._page.each()

    async def parent_of(self, database: Database, kept: KeptCheckpoint) -> str | None:
        """The nearest checkpoint that one follows."""
        self._ids[kept.seq] = kept.checkpoint_id
        if kept.parent_seq is None or kept.parent_seq in self._ids:
            return None if kept.parent_seq is None else self._ids[kept.parent_seq]
        if self._standing is None or kept.checkpoint_id not in self._standing.entries:
            tables = self._tables
            self._standing = await _run(database, tables, tables.checkpoints.standing(tables.tenant, self.thread_id))
        entry = self._standing.entries.get(kept.checkpoint_id)
        return None if entry is None else entry.parent_id


class ThreadTarget:
    """Takes the checkpoints of threads.

    Args:
        tables: Those of a family, for the tenant whose they will be.
        tell: Told of what is left alone.
    """

    constants = True

    def __init__(self, tables: StoreOperations, tell: Callable[[str], None]) -> None:
        self._tables = tables
        self._tell = tell
        self._thread: _ThreadWriting | None = None

    def read(self, content: Mapping[str, Any]) -> LineCheckpoint:
        """A checkpoint."""
        return checkpoint_of_content(content)

    async def write(self, database: Database, contents: Sequence[LineCheckpoint], done: Tally) -> None:
        """Write what is missing, and compare what is there."""
        for thread_id, group in groupby(contents, key=lambda one: one.thread_id):
            if self._thread is None or self._thread.thread_id != thread_id:
                self._thread = _ThreadWriting(self._tables, database, thread_id, self._tell)
                await self._thread.look()
            await self._thread.take(list(group), done)


class _ThreadWriting:
    """A thread whose lines come."""

    def __init__(
        self, tables: StoreOperations, database: Database, thread_id: str, tell: Callable[[str], None]
    ) -> None:
        self.thread_id = thread_id
        self._tables = tables
        self._database = database
        self._tell = tell
        self._writer = ThreadWriter(tables.checkpoints, tables.tenant, thread_id)
        self._order = Order({})
        self._read: dict[str, KeptCheckpoint | Damaged] = {}
        self._diverged = False

    async def look(self) -> None:
        """See what is there."""
        standing = await _run(self._database, self._tables, self._writer.look())
        times = {checkpoint_id: entry.created_at for checkpoint_id, entry in standing.entries.items()}
        self._order = Order(times)
        self._read = {}

    async def take(self, lines: Sequence[LineCheckpoint], done: Tally) -> None:
        """Write those that are missing, and compare the others."""
        for _ in range(_TRIES):
            missing: list[LineCheckpoint] = []
            tally = Tally()
            coming: set[str] = set()
            for line in lines:
                place = self._order.place(line.checkpoint_id, line.created_at)
                if line.checkpoint_id in coming:
                    self._left_alone(line, "the file holds it twice", tally)
                elif place == "missing" and not self._diverged:
                    missing.append(line)
                    coming.add(line.checkpoint_id)
                elif place == "missing":
                    self._left_alone(line, "it would follow a checkpoint that is there as something else", tally)
                elif place == "behind":
                    self._left_alone(line, "the thread has newer checkpoints, and lacks it", tally)
                elif await self._is_same(line):
                    tally.present += 1
                else:
                    self._diverged = True
                    self._left_alone(line, "it is there as something else", tally)
            if await self._put(missing):
                done.written += len(missing)
                done.present += tally.present
                done.differing += tally.differing
                return
            await self.look()
        raise Unavailable(f"Thread {self.thread_id!r} was written to all the time; try again when it is quiet.")

    async def _put(self, missing: Sequence[LineCheckpoint]) -> bool:
        wanted = [
            Wanted(
                self._new(line),
                line.created_at,
                line.parent_id,
                line.knows_parent,
            )
            for line in missing
        ]
        if not await _run(self._database, self._tables, self._writer.put(wanted)):
            return False
        for line in missing:
            self._order.written(line.checkpoint_id)
        return True

    async def _is_same(self, line: LineCheckpoint) -> bool:
        """Whether a checkpoint is there as a line says."""
        if line.checkpoint_id not in self._read:
            entry = self._writer.standing.entries.get(line.checkpoint_id)
            if entry is None:  # from an earlier line of this very import
                return False
            reading = self._tables.checkpoints.kept_page(
                self._tables.tenant, self.thread_id, entry.seq - 1, _COMPARED_AT_ONCE
            )
            page = await _run(self._database, self._tables, reading)
            self._read = {one.checkpoint_id: one for one in page.each()}
        found = self._read.get(line.checkpoint_id)
        if found is None or isinstance(found, Damaged) or found.metadata != line.metadata:
            return False
        if line.created_at is not None and found.created_at != line.created_at:
            return False
        new = self._new(line)
        text = found.state.text()
        if new.encode(None).state.text() == text:
            return True
        try:
            return decode_state_text(text, self.thread_id) == line.state
        except CorruptCheckpoint:
            return False

    def _new(self, line: LineCheckpoint) -> NewCheckpoint:
        new = self._tables.new(line.state, line.checkpoint_id, line.metadata)
        return replace(new, provisional=line.provisional)

    def _left_alone(self, line: LineCheckpoint, why: str, tally: Tally) -> None:
        self._tell(f"Checkpoint {line.checkpoint_id!r} of thread {self.thread_id!r} was left alone: {why}.")
        tally.differing += 1


async def _run(database: Database, tables: StoreOperations, operation: Operation[T]) -> T:
    """Run an operation, when the tables are made or checked."""
    return await database.asynchronous.run(operation, tables.schema, tables.config.ddl_mode)
