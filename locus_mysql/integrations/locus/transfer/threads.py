"""Copies of threads of any Locus checkpointer, as rows of this package's tables: `ThreadUnits` and `ThreadTarget`.

A thread is written as a whole. Its version is a digest of its checkpoints that begins with `COPIED`, and every other
write gives a thread a random one: so a repeated copy recognises a thread that it need not write, and one that it may
replace, because nobody has written to it since it was copied.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ....config import MySQLConfig
from ....engine.bootstrap import has_tables
from ....engine.operation import Operation
from ....errors import CorruptCheckpoint, LocusMySQLError, SetupError, Unavailable, UsageError
from ....families.checkpoints.coding.codec import HashedLogs, hash_logs
from ....families.checkpoints.coding.delta import Lineage, encode_delta, extend
from ....families.checkpoints.family import tables
from ....records.moving import Moving, OwnerRecord, PartRecord
from ....records.owner_writer import OwnerWriter
from ....records.tables import Row
from ....runtime.arguments import check_checkpoint_id, encode_metadata
from ....runtime.database import Database
from ....runtime.matching import matcher
from ....runtime.sealing import fetching_keys
from ....runtime.server_rows import as_sql_time
from ....transfer.engine import TransferReport, UnitSource, UnitTarget
from ....wording import counted
from ..agent_states import is_provisional
from ..operations import LocusOperations
from .checkpointers import ALL, time_of
from .sources import AgentCheckpoint, CopySource, ListedCheckpoint, UnreadableCheckpoint, same_metadata, same_states

T = TypeVar("T")

#: The beginning of the version of a thread that was not written to since it was copied.
COPIED = b"copied"

#: Maximum number of checkpoints of a thread, with the same difference, that are named; others are only counted.
NAMED_ALIKE = 3

#: After this number of consecutive failed threads, a side is considered unavailable.
_FAILURES = 10


class GaveUp(LocusMySQLError):
    """Many consecutive threads failed, and the rest was not tried."""


class AgentTables:
    """The tables of `MySQLCheckpointer`, and the runner of operations on them.

    Args:
        database: The database of the tables.
        operations: The operations of a checkpointer.
        owned: Whether the connections are closed when the copy ends.
    """

    def __init__(self, database: Database, operations: LocusOperations, *, owned: bool) -> None:
        self.database = database
        self.locus = operations
        self._owned = owned
        self._moving: dict[str, Moving] = {}

    @property
    def config(self) -> MySQLConfig:
        """The options, with the tenant of threads whose ids do not tell it."""
        return self._config_of(self.locus.tenancy.of())

    def moving(self, thread_id: str) -> Moving:
        """Return what writing the rows of a thread needs."""
        tenant = self.locus.thread_key(thread_id).tenant
        if tenant not in self._moving:
            config = self._config_of(tenant)
            declared = tables(config.table_prefix, "agents", search=config.search, search_parser=config.search_parser)
            self._moving[tenant] = Moving(declared, config)
        return self._moving[tenant]

    async def open(self, *, creates: bool) -> None:
        """Create or check the tables; or, if nothing may be created, check that the server answers."""
        if creates:
            await self.run(self.locus.list_threads(1))
        else:
            await self.database.asynchronous.run(has_tables(self.locus.schema))

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation after the tables were created or checked."""
        config = self.locus.config
        steps = fetching_keys(operation, config)
        return await self.database.asynchronous.run(steps, self.locus.schema, config.ddl_mode)

    async def close(self) -> None:
        """Close the connections if they were opened for the copy."""
        if self._owned:
            await self.database.aclose()

    def _config_of(self, tenant: str) -> MySQLConfig:
        return self.locus.config.model_copy(update={"tenant": tenant})


class ThreadUnits(UnitSource[str]):
    """Threads of a source as units of the engine.

    Args:
        source: The source.
        threads: Ids of the threads to copy; None means all.
        pattern: Only threads whose ids match this glob.
    """

    def __init__(self, source: CopySource, threads: Sequence[str] | None, pattern: str) -> None:
        self.source = source
        self.named = None if threads is None else list(dict.fromkeys(threads))
        self._pattern = pattern

    async def open(self) -> int | None:
        """Open the source; return about how many threads there are."""
        await self.source.open()
        return len(self.named) if self.named is not None else await self.source.count(self._pattern)

    async def units(self) -> AsyncGenerator[str, None]:
        """List the ids of the threads to copy."""
        if self.named is None:
            matches = matcher(self._pattern)
            async with aclosing(self.source.threads(self._pattern)) as threads:
                async for thread_id in threads:
                    if matches(thread_id):
                        yield thread_id
        for thread_id in self.named or ():
            yield thread_id
        self.gaps = self.source.gaps


class ThreadTarget(UnitTarget[str]):
    """Writes threads, with their checkpoints in the source's order.

    Args:
        units: The threads of the source.
        target: The tables.
        verify: Whether each checkpoint is loaded on both sides and compared.
        overwrite: Whether threads that others wrote to are replaced.
        dry_run: Whether nothing may be written.
    """

    def __init__(
        self, units: ThreadUnits, target: AgentTables, *, verify: bool, overwrite: bool, dry_run: bool = False
    ) -> None:
        self._units = units
        self._source = units.source
        self._target = target
        self._verify = verify
        self._overwrite = overwrite
        self._dry_run = dry_run
        self._failures = 0

    async def open(self) -> None:
        """Open the target."""
        await self._target.open(creates=not self._dry_run)

    async def write(self, thread_id: str, report: TransferReport) -> None:
        """Copy a thread. If that fails, report it, so that others are copied."""
        report.threads += 1
        try:
            await self._copy(thread_id, report)
        except (SetupError, Unavailable):
            raise
        except Exception as error:  # whatever a checkpointer raises, other threads can be copied
            report.failed += 1
            report.notify(f"Thread {thread_id!r} was not copied: {_described(error)}")
            self._failures += 1
            if self._failures >= _FAILURES:
                raise GaveUp(
                    f"{_FAILURES} threads failed one after another, the last one with: {_described(error)} "
                    "The other threads were not tried. Run the copy again after fixing that."
                ) from None
        else:
            self._failures = 0

    async def _copy(self, thread_id: str, report: TransferReport) -> None:
        listed = await self._source.checkpoints(thread_id)
        if not listed:
            if self._units.named is not None:
                report.missing += 1
                report.notify(f"Thread {thread_id!r} has no checkpoints in the source.")
            return
        keep = self._target.locus.config.keep_checkpoints
        listed = listed if keep is None else listed[-keep:]
        if report.dry_run:
            report.copied += len(listed)
            return
        rows = ThreadRows(self._target.locus, self._target.moving(thread_id), thread_id)
        refused: dict[str, str] = {}
        async with aclosing(self._source.load(thread_id, listed)) as loaded:
            async for one in loaded:
                why = one.why if isinstance(one, UnreadableCheckpoint) else rows.add(one)
                if why is not None:
                    refused[one.checkpoint_id] = why.rstrip(".")
        for checkpoint_id, why in refused.items():
            report.leave_out(f"Checkpoint {checkpoint_id!r} of thread {thread_id!r} was left out: {why}.")
        written = rows.ids and await self._write(thread_id, rows, report)
        if written and self._verify:
            await self._compare(thread_id, [one for one in listed if one.checkpoint_id not in refused], report)

    async def _write(self, thread_id: str, rows: ThreadRows, report: TransferReport) -> bool:
        """Write a thread, unless it is stored; return whether it is stored now."""
        messages: list[str] = []
        of_rows = TransferReport("row", notify=messages.append)
        overwrite = self._overwrite or (lambda stored: bytes(stored["version"]).startswith(COPIED))
        writer = OwnerWriter(self._target.moving(thread_id), of_rows, overwrite=overwrite)
        await self._target.run(writer.write(rows.records()))
        await self._target.run(writer.finish())
        if of_rows.left_out:
            report.leave_out(" ".join(messages))
        elif of_rows.copied:
            report.copied += len(rows.ids)
        elif of_rows.present or {*rows.ids} <= {*await self._stored(thread_id)}:
            report.present += len(rows.ids)
        else:
            report.left_alone += 1
            report.notify(
                f"Thread {thread_id!r} has checkpoints of its own in the target; it was left alone. --overwrite "
                "replaces it."
            )
            return False
        return not of_rows.left_out

    async def _stored(self, thread_id: str) -> list[str]:
        """Return the ids of a thread's checkpoints in the tables, oldest first."""
        return (await self._target.run(self._target.locus.list_checkpoints(thread_id, ALL)))[::-1]

    async def _compare(self, thread_id: str, wanted: Sequence[ListedCheckpoint], report: TransferReport) -> None:
        """Load each checkpoint of a thread on both sides."""
        stored, ids = await self._stored(thread_id), [one.checkpoint_id for one in wanted]
        if [one for one in stored if one in {*ids}] != [one for one in ids if one in {*stored}]:
            report.differ(f"Thread {thread_id!r} does not have the source's order in the target.")
        differing: Counter[str] = Counter()
        async with aclosing(self._source.load(thread_id, wanted)) as loaded:
            async for one in loaded:
                why = one.why if isinstance(one, UnreadableCheckpoint) else await self._difference(thread_id, one)
                if why is None:
                    report.verified += 1
                    continue
                report.differing += 1
                differing[why] += 1
                if differing[why] <= NAMED_ALIKE:
                    report.notify(f"Checkpoint {one.checkpoint_id!r} of thread {thread_id!r} differs: {why}.")
        for why, count in differing.items():
            if count > NAMED_ALIKE:
                more = counted(count - NAMED_ALIKE, "more checkpoint")
                report.notify(f"{more} of thread {thread_id!r} likewise: {why}.")

    async def _difference(self, thread_id: str, one: AgentCheckpoint) -> str | None:
        """Return how the stored checkpoint differs from this one; None if it does not."""
        locus = self._target.locus
        try:
            state = await self._target.run(locus.load(thread_id, one.checkpoint_id))
            info = await self._target.run(locus.get_metadata(thread_id, one.checkpoint_id))
        except CorruptCheckpoint as error:
            return str(error)
        if state is None or info is None:
            return "the target does not have it"
        if not same_states(state, one.state):
            return "its state differs"
        if one.metadata is not None and not same_metadata(info["metadata"] or {}, one.metadata):
            return "its metadata differ"
        stored_at = time_of(info["created_at"])
        if one.saved_at is not None and stored_at is not None and as_sql_time(stored_at) != as_sql_time(one.saved_at):
            return "it was saved at another time"
        return None


class ThreadRows:
    """Makes the rows of one thread from its checkpoints, each a delta to the one before.

    Tokens are digests of all checkpoints so far, so that a repeated copy makes the same rows.

    Args:
        locus: The operations of a checkpointer.
        moving: What writing the rows needs.
        thread_id: The thread.
    """

    def __init__(self, locus: LocusOperations, moving: Moving, thread_id: str) -> None:
        self._locus = locus
        self._columns = moving.sql.owners.columns
        self._part = moving.statements("checkpoints")
        self._thread_id = thread_id
        self._token = hashlib.sha256(thread_id.encode()).digest()[:16]
        self._lineage: Lineage = ()
        self._hashed: HashedLogs = {}
        self._parts: list[PartRecord] = []
        self._times: list[str] = []
        #: The ids of the checkpoints.
        self.ids: list[str] = []

    def add(self, one: AgentCheckpoint) -> str | None:
        """Add the next checkpoint; return why it cannot be stored, None if it can."""
        try:
            self._add(one)
        except (UsageError, CorruptCheckpoint) as error:
            return str(error)
        return None

    def _add(self, one: AgentCheckpoint) -> None:
        config = self._locus.config
        checkpoint_id = check_checkpoint_id(one.checkpoint_id)
        provisional = is_provisional(one.state.metadata, checkpoint_id)
        new = self._locus.new(one.state, checkpoint_id, one.metadata or None, provisional=provisional)
        metadata, metadata_keys = encode_metadata(new.metadata)
        state = new.encode(None).state
        saved_at = as_sql_time(one.saved_at or datetime.now(UTC))
        digest = hashlib.sha256(self._token)
        digest.update(repr((checkpoint_id, metadata, saved_at if one.saved_at else None)).encode())
        digest.update(state.text())
        token, seq = digest.digest()[:16], len(self.ids) + 1
        hashed = hash_logs(state, self._hashed)
        delta = encode_delta(
            state,
            hashed,
            self._lineage,
            provisional=provisional,
            compression=config.compression,
            held=self._hashed,
        )
        text, continues = new.search_text(delta) if config.search and not provisional else ("", False)
        row = {
            "seq": seq,
            "checkpoint_id": checkpoint_id,
            "parent_seq": delta.parent.seq if delta.parent else None,
            "base_seq": delta.base.seq if delta.base else seq,
            "continues": 2 if provisional else int(continues),
            "token": token,
            "payload": b"".join((delta.payload.kind, *delta.payload.pieces)),
            "metadata": metadata,
            "metadata_keys": metadata_keys,
            "pending_text": text or None,
            "unindexed": 1 if text else None,
            "oldest_at": new.oldest_at,
            "created_at": saved_at,
            "base_payload": delta.base.token if delta.base else None,
        }
        self._parts.append(
            PartRecord("checkpoints", tuple(row.get(name) for name in (*self._part.columns, *self._part.bases)))
        )
        self._lineage = extend(self._lineage, delta, seq, token, provisional=provisional)
        self._hashed, self._token = hashed, token
        self._times.append(saved_at)
        self.ids.append(checkpoint_id)

    def records(self) -> list[OwnerRecord | PartRecord]:
        """Return the thread and its rows."""
        ttl_s = self._locus.config.ttl_s
        row: Row = {
            "thread_id": self._thread_id,
            "last_seq": len(self.ids),
            "first_seq": 1,
            "version": COPIED + self._token[len(COPIED) :],
            "created_at": min(self._times),
            "updated_at": max(self._times),
            "expires_at": None if ttl_s is None else as_sql_time(datetime.now(UTC) + timedelta(seconds=ttl_s)),
        }
        return [OwnerRecord(tuple(row[name] for name in self._columns)), *self._parts]


def _described(error: Exception) -> str:
    """Return an error's message, with its class if it is not one of this package's."""
    words = str(error).strip()[:500]
    if isinstance(error, LocusMySQLError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
