"""Moving over from Locus' built-in MySQL backend: `LocusImport` copies its threads and checkpoints.

The built-in backend keeps everything in one table, under keys in the column ``thread_id`` (``locus.memory.backends``,
``mysql.py`` and ``adapters.py`` of locus-sdk 3.0.1):

    {thread}:{checkpoint}     a state, with ``_checkpoint_id``, ``_checkpoint_timestamp`` and ``_metadata`` put into it
    {thread}:latest           a copy of the newest state
    {thread}:_checkpoints     a list of ids, which loses some of them when several processes save at once

Only the rows of states are read. They name their checkpoints, so the list is not needed. In that table keys are
compared without regard to case and accents, so the threads "user-Bob" and "user-bob" share the last two kinds of rows;
the import names such threads.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from locus.core.state import AgentState
from pydantic import ValidationError

from ...checkpoints.records import HistoryEntry
from ...checkpoints.rows import as_sql_time, aware
from ...config import MySQLConfig
from ...database.exact_json import decode_json
from ...dialect import Statement
from ...engine.asynchronous import AsyncEngine
from ...engine.bootstrap import has_tables
from ...engine.operation import Batch, Operation
from ...errors import ConfigError, CorruptCheckpoint, SchemaMismatch, UsageError
from .operations import LocusOperations

#: Keys looked at in one round trip.
KEYS_PAGE = 500

#: States read in one round trip: at most this many, and fewer if together they are larger than this many bytes.
STATES_PAGE = 50
STATES_PAGE_BYTES = 8_000_000

#: Seconds between two lines of progress.
_PROGRESS_EVERY_S = 5.0

_NO_LIMIT = 2**31

_COLUMNS = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"

_COUNT = "SELECT COUNT(*) FROM {table}"

# The next keys along the primary key, each with the id of the checkpoint in it.
_KEYS = """
SELECT s.thread_id, s.data->>'$._checkpoint_id'
  FROM {table} s
 WHERE s.thread_id > %s
 ORDER BY s.thread_id
 LIMIT %s
"""

# What is to be known of the states of one thread before they are read. LIKE uses the primary key, but ignores case; the
# comparison of bytes does not.
_CHECKPOINTS = """
SELECT s.thread_id, s.data->>'$._checkpoint_id', s.data->>'$._checkpoint_timestamp', s.updated_at,
       JSON_STORAGE_SIZE(s.data)
  FROM {table} s
 WHERE s.thread_id LIKE %s
   AND CAST(CONVERT(s.thread_id USING utf8mb4) AS BINARY)
     = CONCAT(CAST(%s AS BINARY), CAST(s.data->>'$._checkpoint_id' AS BINARY))
"""

# The key under which the list of a thread is. It is another thread's if threads share the list.
_INDEX_KEY = "SELECT s.thread_id FROM {table} s WHERE s.thread_id = %s"

_STATES = "SELECT s.thread_id, s.data FROM {table} s WHERE s.thread_id IN ({keys})"

# Give checkpoints the times they had.
_SET_TIMES = """
UPDATE {checkpoints} c
  JOIN JSON_TABLE(%s, '$[*]' COLUMNS (
         id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin PATH '$[0]',
         at DATETIME(6) PATH '$[1]')) AS saved ON saved.id = c.checkpoint_id
   SET c.created_at = saved.at
 WHERE c.tenant = %s AND c.thread_id = %s
"""

_SET_THREAD_TIMES = """
UPDATE {threads} t
  JOIN (SELECT MIN(c.created_at) AS first_at, MAX(c.created_at) AS last_at
          FROM {checkpoints} c
         WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL) AS saved
   SET t.created_at = saved.first_at, t.updated_at = saved.last_at
 WHERE t.tenant = %s AND t.thread_id = %s
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A checkpoint in the built-in backend's table."""

    key: str
    checkpoint_id: str
    saved_at: datetime
    size_bytes: int


@dataclass(slots=True)
class Summary:
    """What an import did, or would do."""

    dry_run: bool
    threads: int = 0
    copied: int = 0
    present: int = 0
    left_out: int = 0
    left_alone: int = 0
    other_rows: int = 0

    @property
    def complete(self) -> bool:
        """Whether everything that was found is in the target now, or would be."""
        return not self.left_out and not self.left_alone

    def __str__(self) -> str:
        done = "to copy" if self.dry_run else "copied and read back"
        parts = [f"{_counted(self.threads, 'thread')}: {_counted(self.copied, 'checkpoint')} {done}"]
        if self.present:
            parts.append(f"{self.present} there already")
        if self.left_out:
            parts.append(f"{self.left_out} left out")
        if self.left_alone:
            parts.append(f"{_counted(self.left_alone, 'thread')} left alone")
        if self.other_rows:
            parts.append(f"{_counted(self.other_rows, 'row')} not of a checkpointer")
        return ", ".join(parts) + "."


class LocusImport:
    """Copies the built-in backend's threads and checkpoints with their ids, order, times and metadata. May be repeated.

    A thread whose checkpoints are all in the target is passed over, and one that was copied in part is completed. A
    thread that has other checkpoints in the target and lacks some of these is left alone, because older states would
    become its newest. The source is only read.

    Args:
        source: The built-in backend's server and database.
        target: Where to copy to; ``tenant`` says whose the copies are.
        table: The built-in backend's table.
        dry_run: Only count what would be copied; write nothing, and make no tables.
        tell: Is called with lines about the progress, and about what cannot be copied.
    """

    def __init__(
        self,
        source: MySQLConfig,
        target: MySQLConfig,
        *,
        table: str = "checkpoints",
        dry_run: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._target_config = target
        self._rows = BuiltInTable(table, source.database)
        self._operations = LocusOperations(target, None, None, None)
        self._source = AsyncEngine(source)
        self._target = AsyncEngine(target)
        self._needed = None if dry_run else self._operations.schema
        self._tell = tell
        self._summary = Summary(dry_run)
        self._target_is_empty = False

    async def run(self) -> Summary:
        """Copy everything.

        Raises:
            SchemaMismatch: The source has no table of the built-in backend.
            LocusMySQLError: A server cannot be used. Run the import again, and it goes on where it stopped.
        """
        try:
            total = await self._source.run(self._rows.check())
            if self._summary.dry_run:
                self._target_is_empty = not await self._target.run(has_tables(self._operations.schema))
            await self._copy_all(total)
        finally:
            await self._source.close()
            await self._target.close()
        return self._summary

    async def _at_target(self, operation: Operation[T]) -> T:
        """Carry out an operation on the target, whose tables are made if anything is to be written."""
        return await self._target.run(operation, self._needed, self._target_config.ddl_mode)

    async def _copy_all(self, total: int) -> None:
        threads: set[str] = set()
        after = ""
        looked_at = 0
        told_at = time.monotonic()
        while page := await self._source.run(self._rows.keys(after, KEYS_PAGE)):
            for key, checkpoint_id in page:
                after = key
                looked_at += 1
                thread_id = _thread_of(key, checkpoint_id)
                if thread_id is None:
                    self._summary.other_rows += not key.endswith((":latest", ":_checkpoints"))
                elif thread_id not in threads:
                    threads.add(thread_id)
                    await self._copy_thread(thread_id)
                if time.monotonic() - told_at >= _PROGRESS_EVERY_S:
                    self._tell(f"{looked_at} of {total} rows; {self._summary}")
                    told_at = time.monotonic()

    async def _copy_thread(self, thread_id: str) -> None:
        rows, shared_with = await self._source.run(self._rows.checkpoints(thread_id))
        if shared_with is not None:
            self._tell(
                f"Thread {thread_id!r} shared its list with {shared_with!r} in the built-in backend, which takes them "
                "for one. They are two threads now; look whether each has only its own checkpoints."
            )
        rows = rows[-(self._target_config.keep_checkpoints or 0) :]
        self._summary.threads += 1
        there = {} if self._target_is_empty else await self._there(thread_id)
        wanted = {row.checkpoint_id for row in rows}
        if there.keys() - wanted:
            if wanted - there.keys():
                self._summary.left_alone += 1
                self._tell(f"Thread {thread_id!r} has checkpoints of its own in the target; it was left alone.")
            else:
                self._summary.present += len(rows)
            return
        copied = await self._copy_rows(thread_id, rows, there)
        if copied and not self._summary.dry_run:
            await self._at_target(self._set_times(thread_id, copied))

    async def _copy_rows(
        self, thread_id: str, rows: Sequence[SourceRow], there: dict[str, HistoryEntry]
    ) -> list[SourceRow]:
        """Copy what is missing, oldest first; returns the checkpoints whose times are to be set.

        From the first checkpoint on that is missing or differs, all are saved, so that their order is the source's.
        """
        order = list(there)
        untimed = []
        place = 0
        for page in _pages(rows):
            states = await self._source.run(self._rows.states([row.key for row in page]))
            for row in page:
                if row.key not in states:  # deleted a moment ago
                    continue
                try:
                    state, metadata = _read(states[row.key])
                    if place < len(order) and order[place] == row.checkpoint_id:
                        entry = there[row.checkpoint_id]
                        if entry["metadata"] == metadata and await self._is_there(thread_id, row.checkpoint_id, state):
                            place += 1
                            self._summary.present += 1
                            if entry["created_at"] != row.saved_at:
                                untimed.append(row)
                            continue
                    order = []
                    await self._copy(thread_id, row.checkpoint_id, state, metadata)
                except (UsageError, CorruptCheckpoint, ValidationError) as error:
                    self._summary.left_out += 1
                    why = "it is not a state of this version of Locus" if isinstance(error, ValidationError) else error
                    self._tell(f"Checkpoint {row.checkpoint_id!r} of thread {thread_id!r} was left out: {why}")
                    continue
                untimed.append(row)
        return untimed

    async def _copy(self, thread_id: str, checkpoint_id: str, state: AgentState, metadata: dict[str, Any]) -> None:
        if not self._summary.dry_run:
            await self._at_target(self._operations.save(state, thread_id, checkpoint_id, metadata))
            if not await self._is_there(thread_id, checkpoint_id, state):
                raise CorruptCheckpoint("What was read back differs from what was saved.")
        self._summary.copied += 1

    async def _there(self, thread_id: str) -> dict[str, HistoryEntry]:
        """The thread's checkpoints in the target, oldest first."""
        entries = await self._at_target(self._operations.history(thread_id, _NO_LIMIT))
        return {entry["checkpoint_id"]: entry for entry in reversed(entries)}

    async def _is_there(self, thread_id: str, checkpoint_id: str, state: AgentState) -> bool:
        return await self._at_target(self._operations.load(thread_id, checkpoint_id)) == state

    def _set_times(self, thread_id: str, rows: Sequence[SourceRow]) -> Operation[None]:
        sql = self._operations.checkpoints.sql
        names = {role: f"`{name}`" for role, name in sql.names.items()}
        key = (self._target_config.tenant, thread_id)
        times = json.dumps([[row.checkpoint_id, as_sql_time(row.saved_at)] for row in rows])
        yield Batch.of(
            sql.threads.lock(*key, os.urandom(16)),
            sql.threads.guard(),
            Statement(_SET_TIMES.format_map(names).strip(), (times, *key)),
            Statement(_SET_THREAD_TIMES.format_map(names).strip(), (*key, *key)),
        )


class BuiltInTable:
    """Reading the built-in backend's table, as operations.

    Args:
        table: Its name.
        database: The database it is in, for messages.
    """

    def __init__(self, table: str, database: str) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", table):
            raise ConfigError("The table's name must be 1 to 64 letters, digits and '_', not starting with a digit.")
        self._table = table
        self._database = database

    def check(self) -> Operation[int]:
        """Make sure that the table is there and is the built-in backend's; returns how many rows it has, roughly."""
        (found,) = yield Batch.of(Statement(_COLUMNS, (self._table,)))
        columns = {str(row[0]).casefold() for row in found.rows}
        if not {"thread_id", "data", "updated_at"} <= columns:
            what = "is not of Locus' built-in backend" if columns else "does not exist"
            raise SchemaMismatch(
                f"Table {self._table!r} in database {self._database!r} {what}. Name the built-in backend's table and, "
                "if it is elsewhere, its database."
            )
        (counted,) = yield Batch.of(self._statement(_COUNT))
        return cast(int, counted.rows[0][0])

    def keys(self, after: str, limit: int) -> Operation[list[tuple[str, str | None]]]:
        """The next keys, each with the checkpoint id in its row."""
        (found,) = yield Batch.of(self._statement(_KEYS, after, limit))
        return [(cast(str, key), cast("str | None", checkpoint_id)) for key, checkpoint_id in found.rows]

    def checkpoints(self, thread_id: str) -> Operation[tuple[list[SourceRow], str | None]]:
        """A thread's checkpoints, oldest first, and the thread with which it shares its list, if there is one."""
        pattern = re.sub(r"([\\%_])", r"\\\1", thread_id) + ":%"
        found, index = yield Batch.of(
            self._statement(_CHECKPOINTS, pattern, f"{thread_id}:"),
            self._statement(_INDEX_KEY, f"{thread_id}:_checkpoints"),
        )
        rows = [
            SourceRow(cast(str, key), cast(str, checkpoint_id), _saved_at(stamp, updated_at), cast(int, size))
            for key, checkpoint_id, stamp, updated_at, size in sorted(
                found.rows, key=lambda row: (_saved_at(row[2], row[3]), row[3], row[0])
            )
            if _thread_of(cast(str, key), cast(str, checkpoint_id)) == thread_id
        ]
        owner = cast(str, index.rows[0][0]).removesuffix(":_checkpoints") if index.rows else thread_id
        return rows, None if owner == thread_id else owner

    def states(self, keys: Sequence[str]) -> Operation[dict[str, str]]:
        """The JSON text under each key."""
        marks = ", ".join(["%s"] * len(keys))
        (found,) = yield Batch.of(Statement(_STATES.format(table=f"`{self._table}`", keys=marks), tuple(keys)))
        return {cast(str, key): cast(str, data) for key, data in found.rows}

    def _statement(self, text: str, *params: str | int) -> Statement:
        return Statement(text.format(table=f"`{self._table}`").strip(), params)


def _thread_of(key: str, checkpoint_id: str | None) -> str | None:
    """The thread whose checkpoint is under a key; None if the row is of another kind."""
    if not checkpoint_id or checkpoint_id in {"latest", "_checkpoints"} or not key.endswith(f":{checkpoint_id}"):
        return None
    return key[: -len(checkpoint_id) - 1] or None


def _saved_at(stamp: object, updated_at: object) -> datetime:
    """When a checkpoint was saved, by its client's stamp, or by the server's clock if there is no stamp."""
    try:
        moment = datetime.fromisoformat(cast(str, stamp))
    except (TypeError, ValueError):
        return aware(updated_at)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _read(text: str) -> tuple[AgentState, dict[str, Any]]:
    """The state and the metadata in a row, without what the built-in backend added to the state."""
    data = decode_json(text.encode())
    metadata = data.pop("_metadata", None) or {}
    data.pop("_checkpoint_id", None)
    data.pop("_checkpoint_timestamp", None)
    return AgentState.from_checkpoint(data), metadata


def _pages(rows: Sequence[SourceRow]) -> Iterator[list[SourceRow]]:
    """The rows in pages, each limited in number and in size."""
    page: list[SourceRow] = []
    for row in rows:
        page.append(row)
        if len(page) >= STATES_PAGE or sum(one.size_bytes for one in page) >= STATES_PAGE_BYTES:
            yield page
            page = []
    if page:
        yield page


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
