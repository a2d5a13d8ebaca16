"""Locus' built-in MySQL backend as a source of a copy: its table is read as it is.

The built-in backend keeps everything in one table, under keys in the column ``thread_id`` (``locus.memory.backends``,
``mysql.py`` and ``adapters.py`` of locus-sdk 3.0.1), as told in `keyed`. Only the rows of states are read. They name
their checkpoints, so the list is not needed. In that table keys are compared without regard to case and accents, so the
threads "user-Bob" and "user-bob" share a list and the copy of the newest state; the copy names such threads.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from ....config import MySQLConfig
from ....dialect import Statement
from ....engine.asynchronous import AsyncEngine
from ....engine.operation import Batch, Operation
from ....errors import ConfigError, CorruptCheckpoint, SchemaMismatch
from ....families.checkpoints.rows import aware
from ....runtime.exact_json import decode_json
from .checkpointers import why_unreadable
from .keyed import read_data
from .sides import Given, Listed, Tell, Unreadable

#: Keys looked at in one round trip.
KEYS_PAGE = 500

#: States read in one round trip: at most this many, and fewer if together they are larger than this many bytes.
STATES_PAGE = 50
STATES_PAGE_BYTES = 8_000_000

_COLUMNS = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"

_COUNT = "SELECT COUNT(*) FROM {table} s WHERE s.thread_id LIKE '%%:latest'"

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


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A checkpoint in the built-in backend's table."""

    key: str
    checkpoint_id: str
    saved_at: datetime
    size_bytes: int


class BuiltInSource:
    """Reads the built-in backend's table.

    Args:
        config: Its server and database.
        table: Its name.
        tell: Told of threads that share rows.

    Raises:
        ConfigError: The name cannot be a table's.
    """

    def __init__(self, config: MySQLConfig, table: str, tell: Tell) -> None:
        self._table = BuiltInTable(table, config.database)
        self._engine = AsyncEngine(config)
        self._tell = tell
        self._others = 0
        self.gaps: set[str] = set()

    async def open(self) -> None:
        """Make sure that there is such a table.

        Raises:
            SchemaMismatch: There is none, or it is not of the built-in backend.
        """
        await self._engine.run(self._table.check())

    async def count(self, pattern: str) -> int | None:
        """How many copies of newest states there are."""
        return await self._engine.run(self._table.count())

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of its threads, in the order of the keys."""
        found: set[str] = set()
        after = ""
        while page := await self._engine.run(self._table.keys(after, KEYS_PAGE)):
            for after, checkpoint_id in page:
                thread_id = _thread_of(after, checkpoint_id)
                if thread_id is None and not after.endswith((":latest", ":_checkpoints")):
                    self._others += 1
                    rows = "row" if self._others == 1 else "rows"
                    self.gaps = {f"{self._others} {rows} of its table, not of a checkpointer"}
                if thread_id is not None and thread_id not in found:
                    found.add(thread_id)
                    yield thread_id

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        rows, shared_with = await self._engine.run(self._table.checkpoints(thread_id))
        if shared_with is not None:
            self._tell(
                f"Thread {thread_id!r} shared its list with {shared_with!r} in the built-in backend, which takes them "
                "for one. They are two threads now; look whether each has only its own checkpoints."
            )
        return [Listed(row.checkpoint_id, row.saved_at, row) for row in rows]

    async def given(self, thread_id: str, wanted: Sequence[Listed]) -> AsyncGenerator[Given | Unreadable, None]:
        """Some of these, in their order."""
        for page in _pages(wanted):
            states = await self._engine.run(self._table.states([one.place.key for one in page]))
            for one in page:
                if one.place.key not in states:  # deleted a moment ago
                    continue
                try:
                    yield read_data(thread_id, one, decode_json(states[one.place.key].encode()))
                except (ValueError, TypeError, AttributeError, CorruptCheckpoint) as error:
                    yield Unreadable(one.checkpoint_id, why_unreadable(error))

    async def close(self) -> None:
        """Close its connections."""
        await self._engine.close()


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

    def check(self) -> Operation[None]:
        """Make sure that the table is there and is the built-in backend's."""
        (found,) = yield Batch.of(Statement(_COLUMNS, (self._table,)))
        columns = {str(row[0]).casefold() for row in found.rows}
        if not {"thread_id", "data", "updated_at"} <= columns:
            what = "is not of Locus' built-in backend" if columns else "does not exist"
            raise SchemaMismatch(
                f"Table {self._table!r} in database {self._database!r} {what}. Name the built-in backend's table and, "
                "if it is elsewhere, its database."
            )

    def count(self) -> Operation[int]:
        """How many threads there are, as the built-in backend tells them apart."""
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


def _pages(rows: Sequence[Listed]) -> Iterator[list[Listed]]:
    """The rows in pages, each limited in number and in size."""
    page: list[Listed] = []
    for row in rows:
        page.append(row)
        if len(page) >= STATES_PAGE or sum(one.place.size_bytes for one in page) >= STATES_PAGE_BYTES:
            yield page
            page = []
    if page:
        yield page
