"""Threads of graphs as a source and a target of transfers. A line is a checkpoint with its writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ...config import MySQLConfig
from ...dialect.graphs.moving import MarkRow
from ...engine.operation import Operation
from ...errors import CheckpointExists, CorruptCheckpoint, InvalidInput
from ...runtime.arguments import check_text, check_thread_id
from ...runtime.checksummed_jsonl import Head
from ...runtime.database import Database
from ...runtime.sealing import fetching_keys, refuse_clear_tables
from ...runtime.server_times import aware
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .lines import FORMAT, checkpoint_line, checkpoint_of_content, head_line
from .moving import Damaged, KeptGraphCheckpoint, MovingOperations, StoredValues, difference

T = TypeVar("T")

#: Checkpoints that are read at a time, and the bytes of lines after which a page ends.
_AT_ONCE, _PAGE_BYTES = 20, 4_000_000


class GraphTransfer:
    """Exports and imports threads of graphs. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "checkpoint"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(self, threads: Sequence[str] | None = None, pattern: str = "*", **others: Any) -> GraphSource:
        """Return the source that reads these threads, or those whose ids match a glob."""
        refuse_others(others, "graphs")
        return GraphSource(self._config, threads, pattern)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False) -> GraphTarget:
        """See `Transfer.target`."""
        if overwrite:
            raise InvalidInput("The file holds threads, whose checkpoints are not replaced (--overwrite).")
        return GraphTarget(self._config)


class GraphSource:
    """Reads checkpoints thread by thread in the order of their ids, those of a thread in the order of their saves.

    Args:
        config: The options, with the tenant.
        threads: Ids of the threads to read; None for all.
        pattern: Only threads whose ids match this glob.
    """

    constants = True

    def __init__(self, config: MySQLConfig, threads: Sequence[str] | None, pattern: str) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        self._named = None if threads is None else sorted({*map(check_thread_id, threads)})
        self._pattern = check_text(pattern, "Pattern")
        self.head = head_line(config.tenant, self._named, pattern)
        self._pending: list[str] = []
        self._thread: str | None = None
        self._last_thread = ""
        self._after = 0
        self._parents: StoredValues = {}

    def position_of(self, content: Mapping[str, Any]) -> tuple[str, int]:
        """Return the thread and the seq of the checkpoint in a line."""
        kept = checkpoint_of_content(content)
        return kept.thread_id, kept.seq

    async def count(self, database: Database) -> int:
        """Return the number of checkpoints."""
        if self._named is None:
            return await self._run(database, self._moving.count(self._pattern))
        return sum([len(await self._run(database, self._moving.marks(one))) for one in self._named])

    async def page(self, database: Database, after: tuple[str, int] | None, limit: int) -> RecordPage:
        """Return the lines after those of the last page. Only the first call uses the position."""
        if after is not None and self._thread is None and not self._last_thread:
            self._thread, self._after = after
        page, size = RecordPage(), 0
        while len(page.records) < limit and size < _PAGE_BYTES:
            if self._thread is None and not await self._next_thread(database):
                break
            assert self._thread is not None  # noqa: S101 - the line before found one
            reading = self._moving.page(self._thread, self._after, min(limit, _AT_ONCE), self._parents)
            found = await self._run(database, reading)
            for one in found:
                self._after = one.seq
                page.last = (self._thread, one.seq)
                if isinstance(one, Damaged):
                    page.damaged.append(f"{one.error}")
                else:
                    page.records.append(checkpoint_line(one))
                    size += len(page.records[-1])
            if not found:
                self._last_thread, self._thread = self._thread, None
        return page

    async def _next_thread(self, database: Database) -> bool:
        """Go to the next thread; False after the last."""
        self._after, self._parents = 0, {}
        if self._named is not None:
            self._thread = next((one for one in self._named if one > self._last_thread), None)
            return self._thread is not None
        if not self._pending:
            self._pending = await self._run(database, self._moving.threads(self._last_thread, self._pattern))
        if not self._pending:
            return False
        self._thread = self._pending.pop(0)
        return True

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class GraphTarget:
    """Writes checkpoints of graphs, each behind those that its thread has.

    Args:
        config: The options, with the tenant.
    """

    constants = True

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        refuse_clear_tables(config, self._moving.schema)
        self._thread: _ThreadImport | None = None

    def read(self, content: Mapping[str, Any]) -> KeptGraphCheckpoint:
        """Return the checkpoint in a line."""
        return checkpoint_of_content(content)

    async def write(self, database: Database, records: Sequence[KeptGraphCheckpoint], report: TransferReport) -> None:
        """Write checkpoints that are missing, and compare the others."""
        for kept in records:
            if self._thread is None or self._thread.thread_id != kept.thread_id:
                stored = await self._run(database, self._moving.marks(kept.thread_id))
                self._thread = _ThreadImport(kept.thread_id, self._moving, stored)
            message = await self._run(database, self._thread.write(kept, report))
            if message is not None:
                name = f"Checkpoint {kept.checkpoint_id!r} of thread {kept.thread_id!r}"
                report.leave_out(f"{name} was left out: {message}.")

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class _ThreadImport:
    """A thread that is being read from a file, checkpoint by checkpoint.

    Args:
        thread_id: The thread.
        moving: The operations.
        stored: Its stored checkpoints.
    """

    def __init__(self, thread_id: str, moving: MovingOperations, stored: dict[bytes, MarkRow]) -> None:
        self.thread_id = thread_id
        self._moving = moving
        self._stored = stored
        self._unseen = {*stored}  # stored checkpoints that the file has not had yet
        self._refused: set[bytes] = set()

    def write(self, kept: KeptGraphCheckpoint, report: TransferReport) -> Operation[str | None]:
        """Write or compare a checkpoint; return why it was left out, or None."""
        message: str | None = None
        present = kept.key in self._stored
        if kept.parent_key in self._refused:
            message = "its parent was left out"
        elif present:
            message = yield from self._complete(kept)
        elif self._unseen:
            message = "the thread has newer checkpoints, and lacks it"
        else:
            message = yield from self._save(kept)
        self._unseen.discard(kept.key)
        if message is not None:
            self._refused.add(kept.key)
        elif present:
            report.present += 1
        else:
            report.copied += 1
        return message

    def _save(self, kept: KeptGraphCheckpoint) -> Operation[str | None]:
        try:
            yield from self._moving.save(kept)
        except (CheckpointExists, CorruptCheckpoint) as error:
            return str(error).rstrip(".")
        newest = max((mark.seq for mark in self._stored.values()), default=0)
        self._stored.update((yield from self._moving.marks(self.thread_id, newest)))
        return (yield from self._difference(kept)) if kept.key in self._stored else "it was deleted meanwhile"

    def _complete(self, kept: KeptGraphCheckpoint) -> Operation[str | None]:
        """Compare a stored checkpoint, and add what an import that was killed before did not write."""
        message = yield from self._difference(kept, writes=False)
        if message is not None:
            return message
        mark = self._stored[kept.key]
        if (aware(mark.created_at), bool(mark.hidden), mark.run_key) != (kept.created_at, kept.hidden, kept.run_key):
            yield from self._moving.mark(kept)
        found = yield from self._moving.load(self.thread_id, mark.seq)
        existing = {(write.task_id, write.idx) for write in found.loaded.writes}
        missing = [write for write in kept.writes if (write.task_id, write.idx) not in existing]
        yield from self._moving.put_writes(kept, missing)
        return None

    def _difference(self, kept: KeptGraphCheckpoint, *, writes: bool = True) -> Operation[str | None]:
        """Return how a stored checkpoint differs; None if it is identical."""
        try:
            found = yield from self._moving.load(self.thread_id, self._stored[kept.key].seq)
            parent = None
            mark = None if kept.parent_key is None else self._stored.get(kept.parent_key)
            if mark is not None and any(value.encoded is None for value in kept.values.values()):
                parent = (yield from self._moving.load(self.thread_id, mark.seq)).loaded
            what = difference(kept, found.loaded, parent)
        except CorruptCheckpoint as error:
            return str(error).rstrip(".")
        stored = sorted(found.loaded.writes, key=lambda write: (write.task_id, write.idx))
        if what is None and writes and sorted(kept.writes, key=lambda write: (write.task_id, write.idx)) != stored:
            what = "one of its writes"
        return None if what is None else f"{what} differs in the tables"
