"""The tables of this package as a side of a copy: exact in both directions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ....engine.bootstrap import has_tables
from ....engine.operation import Operation
from ....engine.retry import next_page
from ....errors import CorruptCheckpoint, UsageError
from ....families.checkpoints.coding.codec import EncodedState
from ....families.checkpoints.moving import Damaged, KeptCheckpoint
from ....families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from ....families.checkpoints.records import decode_state_text
from ....families.checkpoints.thread_writer import ThreadWriter, Wanted
from ....runtime.database import Database
from ....runtime.server_times import as_sql_time
from ..agent_states import AgentDictOperations, is_provisional
from ..operations import LocusOperations
from .sources import (
    AgentCheckpoint,
    CopySource,
    ListedCheckpoint,
    UnreadableCheckpoint,
    same_metadata,
    same_states,
)

T = TypeVar("T")

#: Checkpoints of the target that are read at a time, to be compared.
COMPARED_AT_ONCE = 50

#: What `TablesThread.difference` returns if everything else is equal.
ANOTHER_TIME = "it was saved at another time"


class ThreadChanged(Exception):
    """Another process wrote to the thread in the target meanwhile; nothing was saved."""


class Tables:
    """The tables of `MySQLCheckpointer`, and the runner of operations on them.

    Args:
        database: The database of the tables.
        operations: The operations of a checkpointer.
        owned: Whether the connections are closed when the copy ends.
        creates: Whether missing tables are created.
    """

    def __init__(self, database: Database, operations: LocusOperations, *, owned: bool, creates: bool) -> None:
        self.database = database
        self.locus = operations
        self.checkpoints = operations.checkpoints.moving
        self.dicts = AgentDictOperations(operations.config)
        self.tenant = operations.tenancy.of()
        self.creates = creates
        self._owned = owned

    @property
    def identity(self) -> tuple[object, ...]:
        """A value that is equal for equal tables and tenants."""
        config = self.locus.config
        return (config.endpoints, config.database, config.table_prefix, self.tenant)

    async def exist(self) -> bool:
        """Return whether any of the tables exists."""
        return await self.database.asynchronous.run(has_tables(self.locus.schema))

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation after the tables were created or checked."""
        mode = self.locus.config.ddl_mode if self.creates else "validate"
        return await self.database.asynchronous.run(operation, self.locus.schema, mode)

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        if self._owned:
            await self.database.aclose()


class TablesSource(CopySource):
    """Reads the tables of this package.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.gaps = set()

    async def open(self) -> None:
        """Check that the tables exist."""
        await self.count("")

    async def count(self, pattern: str) -> int:
        """Return the number of threads that match a glob."""
        return await self.tables.run(self.tables.checkpoints.count_threads(self.tables.tenant, pattern))

    async def changed(self, pattern: str, seen: Mapping[str, int]) -> int:
        """Return the number of threads created or deleted; 1 if only the number of checkpoints changed."""
        now = {thread_id async for thread_id in self.threads(pattern)}
        if changed := len(now ^ seen.keys()):
            return changed
        count = self.tables.checkpoints.count_checkpoints(self.tables.tenant, pattern)
        return int(await self.tables.run(count) != sum(seen.values()))

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of threads that match a glob, in their order."""
        after = ""
        while page := await self.tables.run(self.tables.checkpoints.threads_after(self.tables.tenant, after, pattern)):
            for found in page:
                after = next_page(after, found)
                yield after

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        standing = await self.tables.run(self.tables.checkpoints.standing(*self.tables.locus.thread_key(thread_id)))
        return [ListedCheckpoint(one, entry.created_at, entry) for one, entry in standing.entries.items()]

    async def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of the checkpoints, in their order."""
        if not wanted:
            return
        key = self.tables.locus.thread_key(thread_id)
        entries = {one.checkpoint_id: one.locator for one in wanted}
        after, last = wanted[0].locator.seq - 1, wanted[-1].locator.seq
        while after < last:
            page = await self.tables.run(self.tables.checkpoints.kept_page(*key, after))
            for found in page.each():
                after = next_page(after, found.seq)
                entry = entries.get(found.checkpoint_id)
                if entry is None or entry.seq != found.seq:
                    continue
                if isinstance(found, Damaged):
                    yield UnreadableCheckpoint(found.checkpoint_id, str(found.error))
                    continue
                yield AgentCheckpoint(
                    found.checkpoint_id,
                    thread_id,
                    found.state,
                    found.metadata,
                    found.created_at,
                    entry.parent_id,
                    knows_parent=True,
                    provisional=found.provisional,
                )
            if page.complete:
                return

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        await self.tables.close()


class TablesTarget:
    """Writes the tables of this package: ids, order, metadata, times and parents are those of the source.

    Args:
        tables: The tables.

    Attributes:
        keep: Number of newest checkpoints that they keep of a thread; None if all.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.keep = tables.locus.config.keep_checkpoints
        self._empty = False

    async def open(self) -> None:
        """Create the tables; or, if nothing may be created, check whether they exist."""
        if self.tables.creates:
            await self.tables.run(self.tables.checkpoints.count_threads(self.tables.tenant, ""))
        else:
            self._empty = not await self.tables.exist()

    def thread(self, thread_id: str) -> TablesThread:
        """Return a thread."""
        return TablesThread(self.tables, thread_id, empty=self._empty)

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        await self.tables.close()


class TablesThread:
    """A thread in the tables of this package.

    Args:
        tables: The tables.
        thread_id: Its id.
        empty: Whether the tables do not exist.
    """

    def __init__(self, tables: Tables, thread_id: str, *, empty: bool) -> None:
        self._tables = tables
        self._empty = empty
        self._key = tables.locus.thread_key(thread_id)
        self._writer = ThreadWriter(tables.checkpoints, *self._key)
        self._loaded: dict[str, KeptCheckpoint | Damaged] = {}

    async def checkpoints(self) -> Mapping[str, datetime | None]:
        """Return the time of each checkpoint, oldest first. Call it before the first save, and after a failed one."""
        self._loaded = {}
        if self._empty:
            return {}
        standing = await self._tables.run(self._writer.look())
        return {checkpoint_id: entry.created_at for checkpoint_id, entry in standing.entries.items()}

    async def _load(self, checkpoint_id: str) -> KeptCheckpoint | Damaged | None:
        """Load a checkpoint and, in advance, those that follow it."""
        if checkpoint_id not in self._loaded:
            entry = self._writer.standing.entries.get(checkpoint_id)
            if entry is None:
                return None
            reading = self._tables.checkpoints.kept_page(*self._key, entry.seq - 1, COMPARED_AT_ONCE)
            self._loaded = {one.checkpoint_id: one for one in (await self._tables.run(reading)).each()}
        return self._loaded.get(checkpoint_id)

    async def save(self, checkpoints: Sequence[AgentCheckpoint], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints as the newest, oldest first, with the times that they have in the source.

        Args:
            checkpoints: The checkpoints.
            replaced: The ids of those that are present, and are replaced by these.

        Returns:
            By their ids, why some could not be saved.

        Raises:
            ThreadChanged: Another process wrote to the thread.
        """
        wanted, wrong = [], {}
        for one in checkpoints:
            try:
                new = self._new(one)
                encoded = new.encode(None)
            except (UsageError, CorruptCheckpoint) as error:
                wrong[one.checkpoint_id] = str(error)
                continue
            wanted.append(Wanted(encoded_once(new, encoded), one.saved_at, one.parent_id, one.knows_parent))
        removed = [one for one in replaced if one not in wrong]
        if wanted:
            try:
                done = await self._tables.run(self._writer.put(wanted, removed))
            except UsageError as error:
                if len(wanted) > 1:
                    return wrong | await self._save_each(checkpoints, removed)
                return wrong | {str(wanted[0].new.checkpoint_id): str(error)}
            if not done:
                raise ThreadChanged
        return wrong

    async def _save_each(self, checkpoints: Sequence[AgentCheckpoint], replaced: Sequence[str]) -> dict[str, str]:
        """Save one at a time, because one of them cannot be saved and it is not known which."""
        wrong: dict[str, str] = {}
        await self.checkpoints()
        for one in checkpoints:
            if one.checkpoint_id in self._writer.standing.entries and one.checkpoint_id not in replaced:
                continue
            wrong |= await self.save([one], [one.checkpoint_id] if one.checkpoint_id in replaced else [])
        return wrong

    async def difference(self, checkpoint: AgentCheckpoint) -> str | None:
        """Return how the stored checkpoint differs from this one; None if it does not."""
        found = await self._load(checkpoint.checkpoint_id)
        if found is None:
            return "the target does not have it"
        if isinstance(found, Damaged):
            return str(found.error)
        try:
            if not same_states(found.state, checkpoint.state, checkpoint.thread_id):
                return "its state differs"
        except CorruptCheckpoint as error:
            return str(error)
        if checkpoint.metadata is not None and not same_metadata(found.metadata, checkpoint.metadata):
            return "its metadata differ"
        if checkpoint.saved_at is not None and as_sql_time(found.created_at) != as_sql_time(checkpoint.saved_at):
            return ANOTHER_TIME
        return None

    def _new(self, one: AgentCheckpoint) -> NewCheckpoint:
        """Return the checkpoint to save."""
        metadata = one.metadata or None
        if isinstance(one.state, EncodedState):
            state = decode_state_text(one.state.text(), one.thread_id)
            new = self._tables.dicts.new(state, one.checkpoint_id, metadata)
            provisional = is_provisional(state.get("metadata"), one.checkpoint_id)
            new = encoded_once(new, EncodedCheckpoint(one.state))
        else:
            provisional = is_provisional(one.state.metadata, one.checkpoint_id)
            new = self._tables.locus.new(one.state, one.checkpoint_id, metadata, provisional=provisional)
        return replace(new, provisional=provisional if one.provisional is None else one.provisional)


def encoded_once(new: NewCheckpoint, encoded: EncodedCheckpoint) -> NewCheckpoint:
    """Return a new checkpoint with an encoded state."""
    return replace(new, encode=lambda _: encoded)
