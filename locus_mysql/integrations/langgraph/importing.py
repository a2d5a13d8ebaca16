"""Moving over from the package ``langgraph-checkpoint-mysql``: `LangGraphImport` copies its checkpoints.

Its tables (version 3.0.0) are ``checkpoints``, one row each, with small values inside and the others by version in
``checkpoint_blobs``, and ``checkpoint_writes``. Bytes are copied as they are, encrypted ones too; nothing is
deserialised. That package need not be installed, nor work on the server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ...config import MySQLConfig
from ...dialect import Statement
from ...engine.asynchronous import AsyncEngine
from ...engine.operation import Batch, Operation
from ...errors import SchemaMismatch
from ...families.graphs import keys
from ...families.graphs.operations import VersionOperations
from ...families.graphs.records import Base, LoadedVersion, LoadedWrite, NewValue, NewVersion
from ...families.graphs.values import Encoded
from ..counting import counted
from .coding import SURFACE, encode_head, needs_of

T = TypeVar("T")

#: Threads between two lines of progress.
_PROGRESS_EVERY = 20

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
# that was saved to last comes last, and is saved to last again.
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


@dataclass(slots=True)
class Summary:
    """What an import did, or would do."""

    dry_run: bool
    threads: int = 0
    copied: int = 0
    present: int = 0
    differing: int = 0
    left_alone: int = 0
    changed: int = 0

    @property
    def complete(self) -> bool:
        """Whether everything that the source had at the end is in the target now, or would be."""
        return not self.differing and not self.left_alone and not self.changed

    def __str__(self) -> str:
        done = "to copy" if self.dry_run else "copied and read back"
        parts = [f"{counted(self.threads, 'thread')}: {counted(self.copied, 'checkpoint')} {done}"]
        if self.present:
            parts.append(f"{self.present} there already")
        if self.differing:
            parts.append(f"{self.differing} not the same as in the source")
        if self.left_alone:
            parts.append(f"{counted(self.left_alone, 'thread')} left alone")
        if self.changed:
            parts.append(f"{counted(self.changed, 'thread')} written to in the source meanwhile")
        return ", ".join(parts) + "."


class LangGraphImport:
    """Copies the checkpoints of ``langgraph-checkpoint-mysql``. May be repeated: it goes on where it stopped.

    A checkpoint that is in the target already is passed over. A thread that has checkpoints of its own in the target is
    left alone if any is missing, as older ones would become its newest. The source is only read.

    Args:
        source: The server and database of that package's tables.
        target: Where to copy to, and whose (``tenant``).
        dry_run: Only count what would be copied; writes nothing and makes no tables.
        tell: Told of progress, and of what cannot be copied.
    """

    def __init__(
        self,
        source: MySQLConfig,
        target: MySQLConfig,
        *,
        dry_run: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tenant = target.tenant
        self._writing = VersionOperations(target)
        self._reading = VersionOperations(target)  # remembers only what it has read, so that it reads what was written
        self._source = AsyncEngine(source)
        self._target = AsyncEngine(target)
        self._schema = self._writing.sql.schema
        self._ddl_mode = target.ddl_mode
        self._tables = SourceTables(source.database)
        self._tell = tell
        self._summary = Summary(dry_run)

    async def run(self) -> Summary:
        """Copy all there is.

        Raises:
            SchemaMismatch: The source does not have that package's tables.
            LocusMySQLError: A server cannot be used. Run it again: it goes on where it stopped.
        """
        try:
            await self._source.run(self._tables.check())
            threads = await self._source.run(self._tables.threads())
            for thread_id, count in threads:
                self._summary.threads += 1
                if self._summary.dry_run:
                    self._summary.copied += count
                    continue
                await self._copy_thread(thread_id)
                if self._summary.threads % _PROGRESS_EVERY == 0:
                    self._tell(f"{self._summary.threads} of {len(threads)} threads …")
            after = await self._source.run(self._tables.threads())
            self._summary.changed = len({thread_id for thread_id, _ in {*threads} ^ {*after}})
        finally:
            await self._source.close()
            await self._target.close()
        return self._summary

    async def _on_target(self, operation: Operation[T]) -> T:
        return await self._target.run(operation, self._schema, self._ddl_mode)

    async def _copy_thread(self, thread_id: str) -> None:
        checkpoints = await self._source.run(self._tables.checkpoints(thread_id))
        there = await self._on_target(self._reading.loading.keys(self._tenant, thread_id))
        ours = {one.key for one in checkpoints}
        if there - ours and ours - there:
            self._summary.left_alone += 1
            self._tell(f"Thread {thread_id!r} has checkpoints of its own in the target; it is left alone.")
            return
        for one in checkpoints:
            finding = self._writing.saving.find_base(self._tenant, thread_id, one.ns, one.parent_id)
            base = await self._on_target(finding)
            values = await self._values(thread_id, one, base)
            writes = await self._source.run(self._tables.writes(thread_id, one))
            if one.key not in there:
                await self._put(thread_id, one, values, base)
            found = await self._load(thread_id, one)
            await self._put_writes(thread_id, one, _missing(writes, found))
            if found is None or not _same(one, values, found):
                self._summary.differing += 1
                self._tell(f"Checkpoint {one.checkpoint_id!r} of thread {thread_id!r} is another in the target.")
            elif one.key in there:
                self._summary.present += 1
            elif not _missing(writes, await self._load(thread_id, one)):
                self._summary.copied += 1
            else:
                self._summary.differing += 1
                self._tell(f"Writes of checkpoint {one.checkpoint_id!r} of thread {thread_id!r} are not all there.")

    async def _values(self, thread_id: str, one: SourceCheckpoint, base: Base | None) -> dict[str, Encoded | None]:
        """The values of a checkpoint; None for those that its parent in the target has."""
        inline = {
            name: Encoded(*JsonPlusSerializer().dumps_typed(value))
            for name, value in (one.content.get("channel_values") or {}).items()
        }
        held = {} if base is None else base.values
        kept = {name for name, version in one.versions.items() if name in held and held[name].label == version}
        wanted = {name: _text(version) for name, version in one.versions.items() if name not in kept}
        blobs = await self._source.run(self._tables.blobs(thread_id, one.ns, wanted)) if wanted else {}
        return {**dict.fromkeys(sorted(kept)), **inline, **blobs}

    async def _put(
        self, thread_id: str, one: SourceCheckpoint, values: Mapping[str, Encoded | None], base: Base | None
    ) -> None:
        rest = {name: value for name, value in one.content.items() if name != "channel_values"}
        head, text = encode_head(JsonPlusSerializer(), rest, one.metadata)
        run_id = one.metadata.get("run_id")

        def chosen(base: Base | None) -> Sequence[NewValue]:
            return [NewValue(name, one.versions.get(name), encoded) for name, encoded in values.items()]

        present = dict.fromkeys(values)
        content: Any = {**one.content, "channel_values": present}
        new = NewVersion(
            surface=SURFACE,
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
        await self._on_target(self._writing.saving.save(self._tenant, thread_id, new, base))

    async def _load(self, thread_id: str, one: SourceCheckpoint) -> LoadedVersion | None:
        return await self._on_target(self._reading.loading.load(self._tenant, thread_id, one.ns, one.checkpoint_id))

    async def _put_writes(self, thread_id: str, one: SourceCheckpoint, writes: Sequence[LoadedWrite]) -> None:
        for task_id in dict.fromkeys(write.task_id for write in writes):
            rows = [write for write in writes if write.task_id == task_id]
            await self._on_target(
                self._writing.saving.put_writes(self._tenant, thread_id, one.key, task_id, rows, replace=False)
            )


class SourceTables:
    """Reads that package's tables.

    Args:
        database: The database they are in, to name it.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._path = "w.task_path"

    def check(self) -> Operation[None]:
        """See that the tables are there, with the columns that are read.

        Raises:
            SchemaMismatch: They are not.
        """
        (found,) = yield Batch.of(Statement(_COLUMNS.strip()))
        columns: dict[str, set[str]] = {}
        for table, column in found.rows:
            columns.setdefault(str(table).casefold(), set()).add(str(column).casefold())
        for table, needed in _NEEDED.items():
            if missing := needed - columns.get(table, set()):
                raise SchemaMismatch(
                    f"Database {self._database!r} has no table {table!r} as langgraph-checkpoint-mysql makes it "
                    f"(missing: {', '.join(sorted(missing))}). Name its database with --source-dsn."
                )
        if "task_path" not in columns["checkpoint_writes"]:
            self._path = "''"

    def threads(self) -> Operation[list[tuple[str, int]]]:
        """Ids of threads, each with how many checkpoints it has."""
        (found,) = yield Batch.of(Statement(_THREADS.strip()))
        return [(cast(str, row[0]), int(cast(int, row[1]))) for row in found.rows]

    def checkpoints(self, thread_id: str) -> Operation[list[SourceCheckpoint]]:
        """A thread's checkpoints, oldest first."""
        (found,) = yield Batch.of(Statement(_CHECKPOINTS.strip(), (thread_id, thread_id)))
        return [
            SourceCheckpoint(
                ns=cast(str, row[0]),
                checkpoint_id=cast(str, row[1]),
                parent_id=cast("str | None", row[2]) or None,
                content=json.loads(cast(str, row[3])),
                metadata=json.loads(cast(str, row[4])),
            )
            for row in found.rows
        ]

    def blobs(self, thread_id: str, ns: str, versions: Mapping[str, str]) -> Operation[dict[str, Encoded]]:
        """Values by channel, of these versions; those that are none are left out."""
        condition = " OR ".join(["(b.channel = %s AND b.version = %s)"] * len(versions))
        params = [part for pair in versions.items() for part in pair]
        text = _BLOBS.strip().replace("<versions>", condition)
        (found,) = yield Batch.of(Statement(text, (thread_id, thread_id, ns, *params)))
        return {
            cast(str, channel): Encoded(cast(str, kind), cast(bytes, blob))
            for channel, version, kind, blob in found.rows
            if kind != "empty" and blob is not None and versions.get(cast(str, channel)) == version
        }

    def writes(self, thread_id: str, one: SourceCheckpoint) -> Operation[list[LoadedWrite]]:
        """Writes at a checkpoint."""
        text = _WRITES.strip().replace("<path>", self._path)
        (found,) = yield Batch.of(Statement(text, (thread_id, thread_id, one.ns, one.checkpoint_id)))
        return [
            LoadedWrite(
                cast(str, task_id),
                cast(int, idx),
                cast(str, channel),
                cast(str, path),
                Encoded(cast("str | None", kind) or "null", cast(bytes, blob)),
            )
            for task_id, idx, channel, path, kind, blob in found.rows
        ]


def _missing(writes: Sequence[LoadedWrite], found: LoadedVersion | None) -> list[LoadedWrite]:
    """Writes that a checkpoint in the target does not have. One that was replaced there is not missing."""
    there = set() if found is None else {(write.task_id, write.idx) for write in found.writes}
    return [write for write in writes if (write.task_id, write.idx) not in there]


def _same(one: SourceCheckpoint, values: Mapping[str, Encoded | None], found: LoadedVersion) -> bool:
    """Whether the target has this checkpoint: all but values that are its parent's, of which it has the versions."""
    read = found.values()
    rest = {name: value for name, value in one.content.items() if name != "channel_values"}
    if found.head.kind != "json" or json.loads(found.head.data) != rest or found.parent_id != one.parent_id:
        return False
    if json.loads(found.metadata or "{}") != one.metadata:
        return False
    if set(read) != set(values):
        return False
    return all(
        found.labels[name] == one.versions.get(name) if encoded is None else read[name] == encoded
        for name, encoded in values.items()
    )


def _text(version: Any) -> str:
    """A version as that package writes it into its column."""
    return version if isinstance(version, str) else json.dumps(version)
