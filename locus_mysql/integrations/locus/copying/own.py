"""The tables of this package as a side of a copy: exact both ways."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import TypeVar

from ....engine.bootstrap import has_tables
from ....engine.operation import Operation
from ....errors import CorruptCheckpoint, UsageError
from ....families.checkpoints.coding.codec import EncodedState
from ....families.checkpoints.moving import Damaged, KeptCheckpoint, Standing
from ....families.checkpoints.new import Encoded, NewCheckpoint
from ....families.checkpoints.records import decode_state_text
from ....families.checkpoints.rows import as_sql_time
from ....families.checkpoints.thread_writer import ThreadWriter, Wanted
from ....runtime.database import Database
from ..dicts import (
    ITERATION_CHECKPOINTS_KEY,
    AgentDictOperations,
    is_provisional,
)
from ..operations import LocusOperations
from .sides import (
    ANOTHER_TIME,
    Given,
    Listed,
    Present,
    ThreadChanged,
    Unreadable,
    same_metadata,
    same_states,
)

T = TypeVar("T")

#: Checkpoints that are read at a time to be compared.
_COMPARED_AT_ONCE = 50


class OwnTables:
    """The tables of `MySQLCheckpointer`, and what runs operations on them.

    Args:
        database: Where.
        operations: The checkpointer's.
        owned: Whether the connections are closed when the copy ends.
        makes: Whether the tables are made if they are missing.
    """

    def __init__(self, database: Database, operations: LocusOperations, *, owned: bool, makes: bool) -> None:
        self.database = database
        self.locus = operations
        self.checkpoints = operations.checkpoints
        self.dicts = AgentDictOperations(operations.config)
        self.makes = makes
        self._owned = owned

    @property
    def identity(self) -> tuple[object, ...]:
        """Which tables, and whose."""
        config = self.locus.config
        return (config.endpoints, config.database, config.table_prefix, self.locus.tenancy.of())

    async def are_there(self) -> bool:
        """Whether there are any tables."""
        return await self.database.asynchronous.run(has_tables(self.locus.schema))

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation, when the tables are made or checked."""
        mode = self.locus.config.ddl_mode if self.makes else "validate"
        return await self.database.asynchronous.run(operation, self.locus.schema, mode)

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        if self._owned:
            await self.database.aclose()


class OwnSource:
    """Reads the tables of this package.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: OwnTables) -> None:
        self.tables = tables
        self.gaps: set[str] = set()

    async def open(self) -> None:
        """Make sure that the tables are there."""
        await self.tables.run(self.tables.checkpoints.count_threads(self.tables.locus.tenancy.of(), ""))

    async def count(self, pattern: str) -> int | None:
        """How many threads match a glob."""
        return await self.tables.run(self.tables.checkpoints.count_threads(self.tables.locus.tenancy.of(), pattern))

    async def count_checkpoints(self, pattern: str) -> int:
        """How many checkpoints the threads that match a glob have."""
        return await self.tables.run(self.tables.checkpoints.count_checkpoints(self.tables.locus.tenancy.of(), pattern))

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of threads that match a glob, in the order of the ids."""
        tenant, after = self.tables.locus.tenancy.of(), ""
        while page := await self.tables.run(self.tables.checkpoints.threads_after(tenant, after, pattern)):
            for after in page:
                yield after

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        key = self.tables.locus.place(thread_id)
        standing = await self.tables.run(self.tables.checkpoints.standing(*key))
        return [Listed(one, entry.created_at, entry) for one, entry in standing.entries.items()]

    async def given(self, thread_id: str, wanted: Sequence[Listed]) -> AsyncGenerator[Given | Unreadable, None]:
        """Some of these, in their order."""
        key = self.tables.locus.place(thread_id)
        places = {one.checkpoint_id: one.place for one in wanted}
        if not wanted:
            return
        after, last = wanted[0].place.seq - 1, wanted[-1].place.seq
        while after < last:
            page = await self.tables.run(self.tables.checkpoints.kept_page(*key, after))
            for found in page.each():
                after = found.seq
                place = places.get(found.checkpoint_id)
                if place is None or place.seq != found.seq:
                    continue
                if isinstance(found, Damaged):
                    yield Unreadable(found.checkpoint_id, str(found.error))
                    continue
                yield Given(
                    found.checkpoint_id,
                    thread_id,
                    found.state,
                    found.metadata,
                    found.created_at,
                    place.parent_id,
                    knows_parent=True,
                    provisional=found.provisional,
                )
            if page.complete:
                return

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        await self.tables.close()


class OwnTarget:
    """Writes the tables of this package: ids, order, metadata, times and parents as they were.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: OwnTables) -> None:
        self.tables = tables
        self.gaps: set[str] = set()
        self.keep = tables.locus.config.keep_checkpoints
        self._empty = False

    async def open(self) -> None:
        """Make the tables, or see that there are none to be looked at."""
        if self.tables.makes:
            await self.tables.run(self.tables.checkpoints.count_threads(self.tables.locus.tenancy.of(), ""))
        else:
            self._empty = not await self.tables.are_there()

    def place_of(self, thread_id: str) -> str | None:
        """Each has its own place."""
        return None

    def thread(self, thread_id: str) -> OwnThread:
        """A thread."""
        return OwnThread(self.tables, thread_id, empty=self._empty)

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        await self.tables.close()


class OwnThread:
    """A thread in the tables of this package.

    Args:
        tables: The tables.
        thread_id: Its id.
        empty: Whether there are no tables.
    """

    def __init__(self, tables: OwnTables, thread_id: str, *, empty: bool) -> None:
        self._tables = tables
        self._key = tables.locus.place(thread_id)
        self._empty = empty
        self._writer = ThreadWriter(tables.checkpoints, *self._key)
        self._read: dict[str, KeptCheckpoint | Damaged] = {}

    async def look(self) -> Present:
        """See what is there."""
        standing = Standing() if self._empty else await self._tables.run(self._writer.look())
        self._read = {}
        return Present({one: entry.created_at for one, entry in standing.entries.items()})

    async def put(self, given: Sequence[Given], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints as the newest, with the times that they had."""
        wanted, wrong = [], {}
        for one in given:
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
                    return wrong | await self._put_each(given, removed)
                return wrong | {str(wanted[0].new.checkpoint_id): str(error)}
            if not done:
                raise ThreadChanged
        return wrong

    async def _put_each(self, given: Sequence[Given], replaced: Sequence[str]) -> dict[str, str]:
        """One at a time, as one of them cannot be saved; nobody knows which one."""
        wrong: dict[str, str] = {}
        await self.look()
        for one in given:
            if one.checkpoint_id in self._writer.standing.entries and one.checkpoint_id not in replaced:
                continue
            wrong |= await self.put([one], [one.checkpoint_id] if one.checkpoint_id in replaced else [])
        return wrong

    async def difference(self, given: Given) -> str | None:
        """In what the checkpoint there differs from this one."""
        found = await self._found(given.checkpoint_id)
        if found is None:
            return "it is not there"
        if isinstance(found, Damaged):
            return str(found.error)
        try:
            if not same_states(found.state, given.state, given.thread_id):
                return "its state is another one"
        except CorruptCheckpoint as error:
            return str(error)
        if given.metadata is not None and not same_metadata(found.metadata, given.metadata):
            return "its metadata is other metadata"
        if given.saved_at is not None and as_sql_time(found.created_at) != as_sql_time(given.saved_at):
            return ANOTHER_TIME
        return None

    async def finish(self, expected: Sequence[str]) -> list[str]:
        """Nothing can be wrong: all was written in transactions."""
        return []

    async def _found(self, checkpoint_id: str) -> KeptCheckpoint | Damaged | None:
        if checkpoint_id not in self._read:
            entry = self._writer.standing.entries.get(checkpoint_id)
            if entry is None:
                return None
            reading = self._tables.checkpoints.kept_page(*self._key, entry.seq - 1, _COMPARED_AT_ONCE)
            self._read = {one.checkpoint_id: one for one in (await self._tables.run(reading)).each()}
        return self._read.get(checkpoint_id)

    def _new(self, given: Given) -> NewCheckpoint:
        """What to save."""
        metadata = given.metadata or None
        if isinstance(given.state, EncodedState):
            state = decode_state_text(given.state.text(), given.thread_id)
            new = self._tables.dicts.new(state, given.checkpoint_id, metadata)
            provisional = is_provisional(state, given.checkpoint_id)
            new = encoded_once(new, Encoded(given.state))
        else:
            superseded = given.state.metadata.get(ITERATION_CHECKPOINTS_KEY)
            provisional = isinstance(superseded, list) and given.checkpoint_id in superseded
            new = self._tables.locus.new(given.state, given.checkpoint_id, metadata, provisional=provisional)
        return replace(new, provisional=provisional if given.provisional is None else given.provisional)


def encoded_once(new: NewCheckpoint, encoded: Encoded) -> NewCheckpoint:
    """What is encoded already, so that it is not done again."""
    return replace(new, encode=lambda _: encoded)
