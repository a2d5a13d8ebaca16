"""Locus' built-in MySQL backend as a source of a copy. Its table is read directly.

The built-in backend keeps everything in one table, under keys in the column ``thread_id`` (``locus.memory.backends``,
``mysql.py`` and ``adapters.py`` of locus-sdk 3.0.1):

    {thread}:{checkpoint}     a state, with ``_checkpoint_id``, ``_checkpoint_timestamp`` and ``_metadata`` put into it
    {thread}:latest           a copy of the newest state
    {thread}:_checkpoints     a list of ids, times and metadata, newest first

Only the rows of states are read. They hold the ids of their checkpoints, so the list, which loses checkpoints when
several processes save at once, is not needed. That table compares keys without case and accents, so the
threads "user-Bob" and "user-bob" share a list and the copy of the newest state; the copy names such threads.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from locus.core.state import AgentState

from ....config import MySQLConfig
from ....dialect import Query
from ....engine.execution import AsyncEngine
from ....engine.operation import Operation, fetch, gather
from ....engine.retry import Backoff
from ....errors import ConfigError, CorruptCheckpoint, SchemaMismatch
from ....runtime.exact_json import decode_json
from ....runtime.server_rows import aware
from ....transfer.engine import Notify
from .checkpointers import time_of, why_unreadable
from .sources import AgentCheckpoint, CopySource, ListedCheckpoint, UnreadableCheckpoint

R = TypeVar("R", bound=tuple[Any, ...])

#: Keys that are read in one round trip.
KEYS_PAGE = 500

#: The maximum number of states that one round trip reads, and the maximum of their bytes together.
STATES_PAGE = 50
STATES_PAGE_BYTES = 8_000_000

_COLUMNS = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"

_COUNT = "SELECT COUNT(*) FROM {table} s WHERE s.thread_id LIKE '%%:latest'"

# The next keys in the order of the primary key, each with the id of the checkpoint under it.
_KEYS = """
SELECT s.thread_id, s.data->>'$._checkpoint_id'
  FROM {table} s
 WHERE s.thread_id > %s
 ORDER BY s.thread_id
 LIMIT %s
"""

# The checkpoints of one thread, without their states. LIKE uses the primary key, but ignores case; the
# comparison of bytes does not.
_CHECKPOINTS = """
SELECT s.thread_id, s.data->>'$._checkpoint_id', s.data->>'$._checkpoint_timestamp', s.updated_at,
       JSON_STORAGE_SIZE(s.data)
  FROM {table} s
 WHERE s.thread_id LIKE %s
   AND CAST(CONVERT(s.thread_id USING utf8mb4) AS BINARY)
     = CONCAT(CAST(%s AS BINARY), CAST(s.data->>'$._checkpoint_id' AS BINARY))
"""

# The key of a thread's list. If threads share the list, it contains the id of another thread.
_INDEX_KEY = "SELECT s.thread_id FROM {table} s WHERE s.thread_id = %s"

_STATES = "SELECT s.thread_id, s.data FROM {table} s WHERE s.thread_id IN ({keys})"


class ColumnRow(NamedTuple):
    """A column of the table."""

    column: str


class CountRow(NamedTuple):
    """A number of rows."""

    total: int


class KeyRow(NamedTuple):
    """A row's key, which is in the column ``thread_id``."""

    key: str


class IdRow(NamedTuple):
    """A row's key, and the id of the checkpoint in it, if it has one."""

    key: str
    checkpoint_id: str | None


class CheckpointRow(NamedTuple):
    """A checkpoint without its state; ``stamp`` is the time by its client's clock."""

    key: str
    checkpoint_id: str
    stamp: str | None
    updated_at: datetime
    size_bytes: int

    @property
    def saved_at(self) -> datetime:
        """When it was saved, by its client's clock, or by the server's if the client recorded no time."""
        return time_of(self.stamp) or aware(self.updated_at)


class StateRow(NamedTuple):
    """A row's key and its JSON text."""

    key: str
    data: str


class BuiltInSource(CopySource):
    """Reads the built-in backend's table.

    Args:
        config: Its server and database.
        table: Its name.
        notify: Receives a message about each pair of threads that share rows.

    Raises:
        ConfigError: A table cannot have this name.
    """

    def __init__(self, config: MySQLConfig, table: str, notify: Notify) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", table):
            raise ConfigError("The table's name must be 1 to 64 letters, digits and '_', not starting with a digit.")
        self._table = table
        self._database = config.database
        self._engine = AsyncEngine(config)
        self._notify = notify
        self._others = 0
        self.gaps = set()

    async def open(self) -> None:
        """Check the table.

        Raises:
            SchemaMismatch: It does not exist, or is not the built-in backend's.
        """
        found = await self._engine.run(self._rows(_COLUMNS, self._table, row=ColumnRow))
        columns = {row.column.casefold() for row in found}
        if not {"thread_id", "data", "updated_at"} <= columns:
            what = "is not of Locus' built-in backend" if columns else "does not exist"
            raise SchemaMismatch(
                f"Table {self._table!r} in database {self._database!r} {what}. Name the built-in backend's table and, "
                "if it is elsewhere, its database."
            )

    async def count(self, pattern: str) -> int | None:
        """Return the number of copies of newest states."""
        (counted,) = await self._engine.run(self._rows(_COUNT, row=CountRow))
        return counted.total

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads, in the order of the keys."""
        found: set[str] = set()
        after = ""
        backoff = Backoff("A page of the built-in table's keys came again")
        while page := await self._engine.run(self._rows(_KEYS, after, KEYS_PAGE, row=IdRow)):
            backoff.compare(page)
            for row in page:
                after, thread_id = row.key, _thread_of(*row)
                if thread_id is None and not after.endswith((":latest", ":_checkpoints")):
                    self._others += 1
                    rows = "row" if self._others == 1 else "rows"
                    self.gaps = {f"{self._others} {rows} of its table, not of a checkpointer"}
                if thread_id is not None and thread_id not in found:
                    found.add(thread_id)
                    yield thread_id

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        pattern = re.sub(r"([\\%_])", r"\\\1", thread_id) + ":%"
        found, index = await self._engine.run(
            gather(
                [
                    self._rows(_CHECKPOINTS, pattern, f"{thread_id}:", row=CheckpointRow),
                    self._rows(_INDEX_KEY, f"{thread_id}:_checkpoints", row=KeyRow),
                ]
            )
        )
        shared_with = index[0].key.removesuffix(":_checkpoints") if index else thread_id
        if shared_with != thread_id:
            self._notify(
                f"Thread {thread_id!r} shared its list with {shared_with!r} in the built-in backend, which takes them "
                "for one. They are two threads now; check that each has only its own checkpoints."
            )
        rows = [row for row in found if _thread_of(row.key, row.checkpoint_id) == thread_id]
        rows.sort(key=lambda row: (row.saved_at, row.updated_at, row.key))
        return [ListedCheckpoint(row.checkpoint_id, row.saved_at, row) for row in rows]

    async def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of the checkpoints, in their order."""
        for page in _pages(wanted):
            marks = ", ".join(["%s"] * len(page))
            keys = [one.locator.key for one in page]
            found = await self._engine.run(self._rows(_STATES, *keys, row=StateRow, keys=marks))
            states = {row.key: row.data for row in found}
            for one in page:
                if one.locator.key not in states:  # deleted since it was listed
                    continue
                try:
                    yield _read_data(one, decode_json(states[one.locator.key].encode()))
                except (ValueError, TypeError, AttributeError, CorruptCheckpoint) as error:
                    yield UnreadableCheckpoint(one.checkpoint_id, why_unreadable(error))

    async def close(self) -> None:
        """Close its connections."""
        await self._engine.close()

    def _rows(self, text: str, *params: str | int, row: type[R], keys: str = "") -> Operation[list[R]]:
        """Read the rows of a query."""
        return fetch(Query(text.format(table=f"`{self._table}`", keys=keys).strip(), params, row=row))


def _thread_of(key: str, checkpoint_id: str | None) -> str | None:
    """Return the thread whose checkpoint is under a key; None if the row is of another kind."""
    if not checkpoint_id or checkpoint_id in {"latest", "_checkpoints"} or not key.endswith(f":{checkpoint_id}"):
        return None
    return key[: -len(checkpoint_id) - 1] or None


def _pages(rows: Sequence[ListedCheckpoint]) -> Iterator[list[ListedCheckpoint]]:
    """Split the rows into pages, each limited in number and in size."""
    page: list[ListedCheckpoint] = []
    for row in rows:
        page.append(row)
        if len(page) >= STATES_PAGE or sum(one.locator.size_bytes for one in page) >= STATES_PAGE_BYTES:
            yield page
            page = []
    if page:
        yield page


def _read_data(listed: ListedCheckpoint, data: dict[str, Any]) -> AgentCheckpoint:
    """Return a checkpoint from the value of its key.

    Raises:
        ValueError: The value is not a state.
    """
    own = dict(data)
    metadata = own.pop("_metadata", None)
    own.pop("_checkpoint_id", None)
    stamp = time_of(own.pop("_checkpoint_timestamp", None))
    if "messages" not in own:  # Locus would make an empty state of any other dict
        raise ValueError("messages")
    state = AgentState.from_checkpoint(own)
    metadata = metadata if isinstance(metadata, dict) else {}
    return AgentCheckpoint(listed.checkpoint_id, state, metadata, listed.saved_at or stamp)
