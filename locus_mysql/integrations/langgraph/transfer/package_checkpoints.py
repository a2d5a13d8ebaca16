"""Imports checkpoints from the tables of the package ``langgraph-checkpoint-mysql``: `import_checkpoints`.

Its tables (version 3.0.0) are ``checkpoints``, one row each, with small values inside and the others by version in
``checkpoint_blobs``, and ``checkpoint_writes``. Bytes are copied unchanged, encrypted ones too; nothing is
deserialised. That package need not be installed, and it need not support the server.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ....config import MySQLConfig
from ....dialect import Query
from ....engine.asynchronous import AsyncEngine
from ....engine.operation import Operation, fetch
from ....errors import SchemaMismatch
from ....families.graphs import keys
from ....families.graphs.operations import GraphOperations
from ....families.graphs.records import Base, LoadedVersion, LoadedWrite, NewValue, NewVersion
from ....families.graphs.values import EncodedValue
from ....runtime.exact_json import canonical_text
from ....runtime.sealing import refuse_clear_tables
from ....runtime.transfer import TransferReport
from ....transfer.engine import Advance, UnitSource, UnitTarget, transfer
from ..coding import CODEC, encode_head, needs_of

T = TypeVar("T")

_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('checkpoints', 'checkpoint_blobs', 'checkpoint_writes')
"""

_NEEDED = {
    "checkpoints": {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"},
    "checkpoint_blobs": {"thread_id", "checkpoint_ns", "channel", "version", "type", "blob"},
    "checkpoint_writes": {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "blob"},
}

# Ids that differ in case alone are equal under the tables' collation, so they are grouped by their bytes. The thread
# with the newest save comes last, so that it is also the last one saved in the target.
_THREADS = """
SELECT MAX(c.thread_id), COUNT(*)
  FROM checkpoints c
 GROUP BY CAST(c.thread_id AS BINARY)
 ORDER BY MAX(c.checkpoint_id)
"""

_CHECKPOINTS = """
SELECT c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint, c.metadata
  FROM checkpoints c
 WHERE c.thread_id = %s AND CAST(c.thread_id AS BINARY) = CAST(%s AS BINARY)
 ORDER BY CAST(c.checkpoint_id AS BINARY)
"""

_BLOBS = """
SELECT b.channel, b.version, b.type, b.`blob`
  FROM checkpoint_blobs b
 WHERE b.thread_id = %s AND CAST(b.thread_id AS BINARY) = CAST(%s AS BINARY)
   AND CAST(b.checkpoint_ns AS BINARY) = CAST(%s AS BINARY) AND (<versions>)
"""

_WRITES = """
SELECT w.task_id, w.idx, w.channel, <path>, w.type, w.`blob`
  FROM checkpoint_writes w
 WHERE w.thread_id = %s AND CAST(w.thread_id AS BINARY) = CAST(%s AS BINARY)
   AND CAST(w.checkpoint_ns AS BINARY) = CAST(%s AS BINARY)
   AND CAST(w.checkpoint_id AS BINARY) = CAST(%s AS BINARY)
"""


class ColumnRow(NamedTuple):
    """A column of a table."""

    table: str
    column: str


class ThreadRow(NamedTuple):
    """A thread and the number of its checkpoints."""

    thread_id: str
    checkpoints: int


class CheckpointRow(NamedTuple):
    """A checkpoint; ``content`` and ``metadata`` are JSON texts."""

    ns: str
    checkpoint_id: str
    parent_id: str | None
    content: str
    metadata: str


class BlobRow(NamedTuple):
    """The value of a channel in one version."""

    channel: str
    version: str
    kind: str
    blob: bytes | None


class WriteRow(NamedTuple):
    """A write of a task."""

    task_id: str
    idx: int
    channel: str
    path: str
    kind: str | None
    blob: bytes


@dataclass(frozen=True, slots=True)
class SourceCheckpoint:
    """A row of the table of checkpoints."""

    ns: str
    checkpoint_id: str
    parent_id: str | None
    content: dict[str, Any]
    metadata: dict[str, Any]

    @property
    def key(self) -> bytes:
        """Its key in the target."""
        return keys.version_key(self.ns, self.checkpoint_id)

    @property
    def versions(self) -> dict[str, Any]:
        """The versions of its channels."""
        return cast("dict[str, Any]", self.content.get("channel_versions") or {})


async def import_checkpoints(
    source: MySQLConfig, target: MySQLConfig, report: TransferReport, advance: Advance = lambda *_: None
) -> TransferReport:
    """Copy the checkpoints of that package. May be repeated: checkpoints that are present are skipped.

    A thread that has checkpoints of its own in the target is left unchanged if it lacks some of the source, because
    older ones would become its newest. The source is only read.

    Args:
        source: The server and database of that package's tables.
        target: The server and tenant to copy to.
        report: Filled during the import. If its ``dry_run`` is true, checkpoints are only counted, and no tables are
            created.
        advance: Called after each thread.

    Raises:
        SchemaMismatch: The source does not have that package's tables.
        LocusMySQLError: A server cannot be used. Run the import again: it continues.
    """
    reading, writing = PackageCheckpoints(source), GraphWriter(target)
    try:
        return await transfer(reading, writing, report, advance=advance)
    finally:
        await reading.close()
        await writing.close()


class PackageThread(NamedTuple):
    """A thread of that package, and its reader."""

    source: PackageCheckpoints
    thread_id: str
    checkpoints: int


class PackageCheckpoints(UnitSource["PackageThread"]):
    """Reads that package's tables.

    Args:
        config: The server and database.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.tables = SourceTables(config.database)
        self._engine = AsyncEngine(config)
        self._threads: list[ThreadRow] = []

    async def open(self) -> int:
        """Check the tables; return the number of threads."""
        await self.run(self.tables.check())
        self._threads = await self.run(self.tables.threads())
        return len(self._threads)

    async def units(self) -> AsyncGenerator[PackageThread, None]:
        """List the threads."""
        for thread_id, count in self._threads:
            yield PackageThread(self, thread_id, count)

    async def changed(self) -> int:
        """Return how many threads were created, deleted, or now have another number of checkpoints."""
        now = await self.run(self.tables.threads())
        return len({thread_id for thread_id, _ in {*self._threads} ^ {*now}})

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation on the tables."""
        return await self._engine.run(operation)

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.close()


class GraphWriter(UnitTarget["PackageThread"]):
    """Writes that package's threads into the tables of graphs, and compares them.

    Args:
        config: The server and tenant.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._tenant = config.tenant
        self._writing = GraphOperations(config)
        self._reading = GraphOperations(config)  # caches only what it read, so that stored values are compared
        self._engine = AsyncEngine(config)
        self._schema = self._writing.sql.schema
        refuse_clear_tables(config, self._schema)
        self._ddl_mode = config.ddl_mode

    async def write(self, thread: PackageThread, report: TransferReport) -> None:
        """Copy a thread."""
        report.threads += 1
        if report.dry_run:
            report.copied += thread.checkpoints
            return
        source, thread_id = thread.source, thread.thread_id
        checkpoints = await source.run(source.tables.checkpoints(thread_id))
        stored = await self._run(self._reading.loading.keys(self._tenant, thread_id))
        keys = {one.key for one in checkpoints}
        if stored - keys and keys - stored:
            report.left_alone += 1
            report.notify(f"Thread {thread_id!r} has checkpoints of its own in the target; it was left alone.")
            return
        for one in checkpoints:
            await self._write_checkpoint(thread, one, report, present=one.key in stored)

    async def _write_checkpoint(
        self, thread: PackageThread, one: SourceCheckpoint, report: TransferReport, *, present: bool
    ) -> None:
        source, thread_id = thread.source, thread.thread_id
        base = await self._run(self._writing.saving.find_base(self._tenant, thread_id, one.ns, one.parent_id))
        values = await self._values(thread, one, base)
        writes = await source.run(source.tables.writes(thread_id, one))
        if not present:
            await self._put(thread_id, one, values, base)
        found = await self._load(thread_id, one)
        await self._put_writes(thread_id, one, _missing(writes, found))
        if found is None or not _same(one, values, found):
            report.differ(f"Checkpoint {one.checkpoint_id!r} of thread {thread_id!r} differs in the target.")
        elif present:
            report.present += 1
        elif not _missing(writes, await self._load(thread_id, one)):
            report.copied += 1
        else:
            report.differ(f"Writes of checkpoint {one.checkpoint_id!r} of thread {thread_id!r} are missing.")

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.close()

    async def _run(self, operation: Operation[T]) -> T:
        return await self._engine.run(operation, self._schema, self._ddl_mode)

    async def _values(
        self, thread: PackageThread, one: SourceCheckpoint, base: Base | None
    ) -> dict[str, EncodedValue | None]:
        """Return the values of a checkpoint; None for those that its parent in the target has."""
        inline = {
            name: EncodedValue(*JsonPlusSerializer().dumps_typed(value))
            for name, value in (one.content.get("channel_values") or {}).items()
        }
        held = {} if base is None else base.values
        kept = {name for name, version in one.versions.items() if name in held and held[name].label == version}
        wanted = {name: _text(version) for name, version in one.versions.items() if name not in kept}
        source = thread.source
        blobs = await source.run(source.tables.blobs(thread.thread_id, one.ns, wanted)) if wanted else {}
        return {**dict.fromkeys(sorted(kept)), **inline, **blobs}

    async def _put(
        self, thread_id: str, one: SourceCheckpoint, values: Mapping[str, EncodedValue | None], base: Base | None
    ) -> None:
        rest = {name: value for name, value in one.content.items() if name != "channel_values"}
        head, text = encode_head(JsonPlusSerializer(), rest, one.metadata)
        run_id = one.metadata.get("run_id")

        def chosen(base: Base | None) -> Sequence[NewValue]:
            return [NewValue(name, one.versions.get(name), encoded) for name, encoded in values.items()]

        present = dict.fromkeys(values)
        content: Any = {**one.content, "channel_values": present}
        new = NewVersion(
            codec=CODEC,
            ns=one.ns,
            checkpoint_id=one.checkpoint_id,
            parent_id=one.parent_id,
            head=head,
            values=chosen,
            metadata=text,
            run_id=None if run_id is None else str(run_id),
            needs=needs_of(content, one.metadata),
            replace=False,
            token=os.urandom(16),
        )
        await self._run(self._writing.saving.save(self._tenant, thread_id, new, base))

    async def _load(self, thread_id: str, one: SourceCheckpoint) -> LoadedVersion | None:
        return await self._run(self._reading.loading.load(self._tenant, thread_id, one.ns, one.checkpoint_id))

    async def _put_writes(self, thread_id: str, one: SourceCheckpoint, writes: Sequence[LoadedWrite]) -> None:
        for task_id in dict.fromkeys(write.task_id for write in writes):
            rows = [write for write in writes if write.task_id == task_id]
            await self._run(
                self._writing.saving.put_writes(self._tenant, thread_id, one.key, task_id, rows, replace=False)
            )


class SourceTables:
    """Statements on that package's tables, as operations.

    Args:
        database: The name of their database, for errors.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._path = "w.task_path"

    def check(self) -> Operation[None]:
        """Check the tables and the columns that are read.

        Raises:
            SchemaMismatch: Some are missing.
        """
        found = yield from fetch(Query(_COLUMNS.strip(), row=ColumnRow))
        columns: dict[str, set[str]] = {}
        for row in found:
            columns.setdefault(row.table.casefold(), set()).add(row.column.casefold())
        for table, needed in _NEEDED.items():
            if missing := needed - columns.get(table, set()):
                raise SchemaMismatch(
                    f"Database {self._database!r} has no table {table!r} as langgraph-checkpoint-mysql makes it "
                    f"(missing: {', '.join(sorted(missing))}). Name its database with --source-dsn."
                )
        if "task_path" not in columns["checkpoint_writes"]:
            self._path = "''"

    def threads(self) -> Operation[list[ThreadRow]]:
        """Return the threads."""
        return (yield from fetch(Query(_THREADS.strip(), row=ThreadRow)))

    def checkpoints(self, thread_id: str) -> Operation[list[SourceCheckpoint]]:
        """Return a thread's checkpoints, oldest first."""
        found = yield from fetch(Query(_CHECKPOINTS.strip(), (thread_id, thread_id), row=CheckpointRow))
        return [
            SourceCheckpoint(
                ns=row.ns,
                checkpoint_id=row.checkpoint_id,
                parent_id=row.parent_id or None,
                content=json.loads(row.content),
                metadata=json.loads(row.metadata),
            )
            for row in found
        ]

    def blobs(self, thread_id: str, ns: str, versions: Mapping[str, str]) -> Operation[dict[str, EncodedValue]]:
        """Return values by channel, of these versions; channels without a value are left out."""
        condition = " OR ".join(["(b.channel = %s AND b.version = %s)"] * len(versions))
        params = [part for pair in versions.items() for part in pair]
        text = _BLOBS.strip().replace("<versions>", condition)
        found = yield from fetch(Query(text, (thread_id, thread_id, ns, *params), row=BlobRow))
        return {
            row.channel: EncodedValue(row.kind, row.blob)
            for row in found
            if row.kind != "empty" and row.blob is not None and versions.get(row.channel) == row.version
        }

    def writes(self, thread_id: str, one: SourceCheckpoint) -> Operation[list[LoadedWrite]]:
        """Return the writes of a checkpoint."""
        text = _WRITES.strip().replace("<path>", self._path)
        found = yield from fetch(Query(text, (thread_id, thread_id, one.ns, one.checkpoint_id), row=WriteRow))
        return [
            LoadedWrite(row.task_id, row.idx, row.channel, row.path, EncodedValue(row.kind or "null", row.blob))
            for row in found
        ]


def _missing(writes: Sequence[LoadedWrite], found: LoadedVersion | None) -> list[LoadedWrite]:
    """Return writes that a checkpoint in the target does not have. One that was replaced there is not missing."""
    there = set() if found is None else {(write.task_id, write.idx) for write in found.writes}
    return [write for write in writes if (write.task_id, write.idx) not in there]


def _same(one: SourceCheckpoint, values: Mapping[str, EncodedValue | None], found: LoadedVersion) -> bool:
    """Return whether the target has this checkpoint. Of values that are its parent's, versions are compared."""
    read = found.values()
    rest = {name: value for name, value in one.content.items() if name != "channel_values"}
    if found.head.kind != "json" or found.parent_id != one.parent_id:
        return False
    if canonical_text([json.loads(found.head.data), json.loads(found.metadata or "{}")]) != canonical_text(
        [rest, one.metadata]
    ):
        return False
    if set(read) != set(values):
        return False
    return all(
        found.labels[name] == one.versions.get(name) if encoded is None else read[name] == encoded
        for name, encoded in values.items()
    )


def _text(version: Any) -> str:
    """Return a version as that package writes it into its column."""
    return version if isinstance(version, str) else json.dumps(version)
