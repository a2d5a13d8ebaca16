"""The threads of any family, derived from the declaration of its tables: `OwnerThreads`. No I/O.

An owner is a thread with one state: its row, and those of its parts by their tables. Lists are ordered by the time of
the last write if an index has it, else by the keys. A family whose owners are
conversations overrides what shows these: `state`, `previews` and `search`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, cast

from ...config import MySQLConfig
from ...dialect import Query, Schema
from ...dialect.sql import Select
from ...dialect.statement import like
from ...dialect.words import patterns_of
from ...engine.operation import Operation, fetch
from ...errors import CorruptCheckpoint, InvalidInput
from ...records.moving import OwnerRecord, PartRecord, plain
from ...records.owner_reader import OwnerReader
from ...records.tables import Row, Tables
from ...runtime.arguments import check_limit, check_text
from ...runtime.matching import Containment
from ...runtime.server_rows import aware
from .item_records import EXAMINED, CreatedRow, Growth, ThreadMarker, growth_of
from .msgpack import DAMAGED, describe_bytes, finite
from .owner_rows import Key, OwnerRows
from .records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)
from .sources import NO_CURSOR, PAGE_LIMIT, Deferred, ThreadFilter, from_cursor, hits_in, time_text, to_cursor
from .statistics import Measured, statistics_of

#: The maximum number of owners that a page examines: by the ids of an index; and if the sizes of their parts are added.
STEP, STEP_BY_SIZE = 50_000, 2_000

#: A search reads this many of the owners written last. A search and a state read about this many sealed bytes.
SEARCHED, READ_BYTES = 50, 8_388_608

#: The first ``limit`` owners along the primary key that were created on each of the last 30 days; and a row without a
#: day with the number of all that were examined.
CREATED = Select(
    """
WITH first AS (SELECT o.{CREATED} AS created_at FROM {TABLE} o WHERE o.tenant = :tenant AND {LIVE} LIMIT :limit)
(SELECT CAST(DATE(created_at) AS CHAR) AS day, COUNT(*) AS items
   FROM first
  WHERE created_at > UTC_TIMESTAMP(6) - INTERVAL 30 DAY
  GROUP BY day)
UNION ALL
(SELECT NULL, COUNT(*) FROM first)
""",
    CreatedRow,
)

MARKERS = Select("SELECT {ID}, {VERSION} FROM {TABLE} o WHERE o.tenant = :tenant AND {LIVE}{CONDITIONS}", ThreadMarker)


class Having(NamedTuple):
    """What a filter by metadata adds to the statement of a page.

    Args:
        condition: The condition of owners.
        values: Its parameters.
        step: The number of owners that a page examines; 0 if an index finds them.
        read: The least number of owners to read, as their metadata is compared here.
        pieces: Further pieces.
    """

    condition: str = ""
    values: Mapping[str, Any] = {}
    step: int = 0
    read: int = 0
    pieces: Mapping[str, str] = {}


class OwnerThreads:
    """Reads the owners of a family and one tenant as threads; see `Inspector`. Methods but `markers` are operations.

    Args:
        tables: The family's tables.
        config: The options.
        newest: See `OwnerRows`.
        index: See `OwnerRows`.
    """

    #: The number of turns that a page reads to find when each message was first saved.
    turns_at_once = 250

    #: The condition for owners that lists contain, such as `` AND …``.
    listed = ""

    #: The time by which the time in an owner's row may be older than its last write.
    lag = timedelta(0)

    def __init__(
        self, tables: Tables, config: MySQLConfig, newest: tuple[str, str] = ("", ""), index: str = ""
    ) -> None:
        self.tables = tables
        self.family = tables.schema.family
        self.owners = OwnerRows(tables, config, newest, index)
        self.naming = self.owners.naming
        self._moving = self.owners.moving
        self._tenant = self.owners.tenant
        self._parser = config.search_parser

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self.tables.schema

    def threads(self, wanted: ThreadFilter, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """Return a page of owners, the last written first.

        One round trip; another one for a filter that no index has, as a page examines a bounded number of owners. The
        next page continues after them.
        """
        limit = size = min(check_limit(limit, least=1), PAGE_LIMIT)
        owners, steps = self.owners, list[int]()
        within, values, filters, pieces = "", dict[str, Any](), self.listed, dict[str, str]()
        for name, sign, moment in (("since", ">=", wanted.saved_after), ("until", "<", wanted.saved_before)):
            if moment is not None:
                within += f" AND o.{owners.written} {sign} :{name}"
                values[name] = owners.time(moment, self.lag if name == "since" else timedelta(0))
        if cursor is not None:
            condition, more = owners.after(self._position(cursor))
            within, values = within + condition, values | more
        pattern = check_text(wanted.pattern, "Pattern")
        if pattern.strip("*") or not pattern:
            filters += f" AND {self.naming.sql} LIKE :pattern"
            values["pattern"] = like(pattern)
            if len(self.naming.columns) > 1 or pattern.startswith(("*", "?")):
                steps.append(STEP)
            else:
                pieces["INDEX"] = ""  # the primary key may find fewer
        if wanted.min_bytes is not None:
            filters += " AND {BYTES} >= :min_bytes"
            values["min_bytes"] = check_limit(wanted.min_bytes, "min_bytes")
            steps.append(STEP_BY_SIZE)
        if wanted.metadata is not None:
            having = yield from self._having(*wanted.metadata)
            if having is None:
                return Page([])
            filters += having.condition
            values.update(having.values)
            pieces.update(having.pieces)
            size = max(limit, having.read)
            steps += [having.step] if having.step else []
        end = (yield from owners.end(within, min(steps), **values)) if steps else None
        if end is not None:
            condition, more = owners.until(end)
            within, values = within + condition, values | more
        rows = yield from owners.fetch(within + filters, size, pieces, **values)
        containment = None if wanted.metadata is None else Containment(wanted.metadata[1])
        threads, last = list[ThreadRow](), rows[-1] if len(rows) == size else end
        for row in rows:
            thread = self._thread(row)
            if _fits(thread, wanted, containment):
                threads.append(thread)
                if len(threads) == limit:
                    last = row
                    break
        if self.lag:
            threads.sort(key=lambda thread: (thread.updated_at, thread.thread_id), reverse=True)
        return Page(threads, None if last is None else self._cursor(last))

    def _having(self, name: str, value: Any) -> Operation[Having | None]:
        """Return what a filter by metadata adds to a page; None if owners have no metadata."""
        return None
        yield

    def _cursor(self, row: Row) -> str:
        written = row[self.owners.written] if self.owners.by_time else None
        times = [] if written is None else [written if self.owners.in_us else aware(written)]
        return to_cursor(*times, self.naming.id_of(row))

    def _position(self, cursor: str) -> Row:
        """Return the position in a cursor.

        Raises:
            InvalidInput: It is of another list.
        """
        owners = self.owners
        times = ((int if owners.in_us else datetime),) if owners.by_time else ()
        *written, thread_id = from_cursor(cursor, *times, str)
        try:
            key = self.naming.key_of(thread_id)
        except InvalidInput:
            key = None
        if key is None:
            raise InvalidInput(NO_CURSOR)
        return dict(zip(owners.position, (*written, *key), strict=True))

    def _one(self, thread_id: str) -> Operation[dict[str, Any] | None]:
        key = self.naming.key_of(thread_id)
        if key is None:
            return None
        condition, values = self.owners.among([key])
        rows = yield from self.owners.fetch(condition, 1, {"INDEX": ""}, **values)
        return rows[0] if rows else None

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """Return an owner; None if it does not exist. One round trip."""
        row = yield from self._one(thread_id)
        return None if row is None else self._thread(row)

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """Return a page of the checkpoints: the one state or its branches, if written by then. One round trip."""
        check_limit(limit, least=1)
        if cursor is not None:
            from_cursor(cursor, int)
        row = yield from self._one(thread_id)
        if row is None or cursor is not None or not self._written_by(row, at):
            return Page([])
        return Page(self._checkpoints(row))

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """Return a state, without its messages: the rows of the owner. Two round trips, and one for each page.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the newest.
            namespace: The checkpoint namespace of a graph.
            at: Only what was saved by then.
            partly: Whether long lists may be `Items`, whose items are decoded on access.
        """
        row = yield from self._one(thread_id)
        if row is None or namespace or not self._written_by(row, at):
            return None
        checkpoint = self._checkpoint(row)
        if checkpoint_id not in {None, checkpoint.checkpoint_id}:
            return None
        states, damage = yield from self._states([row])
        state = next(iter(states.values()), {})
        view = StateView(self.family, thread_id, checkpoint, (), state, damage="\n".join(damage) or None)
        return lambda: view

    def _states(self, rows: Sequence[Row]) -> Operation[tuple[dict[Key, dict[str, Any]], list[str]]]:
        """Return the rows of owners by their keys, as JSON, up to `READ_BYTES`; and messages about damage."""
        moving, left = self._moving, READ_BYTES
        names = {role: table.columns for role, table in moving.sql.parts.items()}
        states: dict[Key, dict[str, Any]] = {}
        key: Key = ()
        damage: list[str] = []
        reader = OwnerReader(moving, among=sorted(map(dict, rows), key=moving.key_of))
        while left > 0:
            page = yield from reader.page()
            damage += page.damaged
            if page.last is None:
                break
            for record in page.records:
                if isinstance(record, OwnerRecord):
                    row = dict(zip(moving.sql.owners.columns, record.values, strict=True))
                    key = moving.key_of(row)
                    states[key] = {self.tables.owner.noun: self._shown(self.tables.owner.role, row)}
                elif isinstance(record, PartRecord):
                    row = dict(zip(names[record.role], record.values, strict=False))
                    states[key].setdefault(record.role, []).append(self._shown(record.role, row))
                    left -= sum(len(one) for one in record.values if isinstance(one, bytes | str))
                else:
                    states.pop(key, None)
        return states, damage

    def _shown(self, role: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as JSON. Sealed bytes begin with their format."""
        table = self.tables.owner if role == self.tables.owner.role else self._moving.statements(role).table
        sealed = {one.column for one in table.sealed}
        return {
            name: _json(value[1:] if name in sealed and isinstance(value, bytes) else value)
            for name, value in row.items()
        }

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """Return confidence, tokens and iterations of the newest states, oldest first: none, as there is one state."""
        check_text(thread_id, "Thread id")
        check_limit(limit)
        return list
        yield

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """Return status, first and last message of threads, for a list: none, as owners need not be conversations.

        In one or two round trips. Reads a bounded number of bytes of each thread, and no whole state. What lies beyond
        is missing in the preview.
        """
        return dict
        yield

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """Return the states with these words: of the owners written last, as there is no full-text index."""
        words = patterns_of(check_text(query, "Query"), self._parser)
        limit = check_limit(limit)
        if not words or not limit:
            return list
        rows = {self._moving.key_of(row): row for row in (yield from self.owners.fetch("", SEARCHED))}
        states, _ = yield from self._states([*rows.values()])

        def hit(key: Key, around: str, score: float) -> Hit:
            checkpoint = self._checkpoint(rows[key])
            thread_id = self.naming.id_of(rows[key])
            return Hit(self.family, thread_id, checkpoint.checkpoint_id, around, score, checkpoint.created_at)

        texts = [(key, json.dumps(state, ensure_ascii=False)) for key, state in states.items()]
        return partial(hits_in, texts, words, limit, hit)

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """Return checkpoints by their metadata: none, as owners have none."""
        check_text(key, "Metadata key")
        check_limit(limit)
        return []
        yield

    def statistics(self) -> Operation[Statistics]:
        """Return numbers, sizes and growth. Parts count as checkpoints; see `statistics_of`."""
        return (yield from statistics_of(self.owners, self._thread, self._whole_size))

    def _whole_size(self, measured: Sequence[Measured]) -> Operation[float | None]:
        """Return the average size of whole states; None as an owner has one state."""
        return None
        yield

    def growth(self) -> Operation[Growth]:
        """Return the owners created per day, of the first `EXAMINED` ones. One round trip."""
        query = cast(Query[CreatedRow], self.owners.statement(CREATED, limit=EXAMINED))
        return growth_of(f"{self.tables.owner.noun}s", (yield from fetch(query)), EXAMINED)

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return a query of those of these threads that exist, each with a value that every write changes."""
        keys = [key for one in thread_ids if (key := self.naming.key_of(one)) is not None]
        condition, values = self.owners.among(keys)
        return cast(Query[ThreadMarker], self.owners.statement(MARKERS, {"CONDITIONS": condition}, **values))

    def _thread(self, row: Row) -> ThreadRow:
        damage = None
        try:
            self._moving.open(self._moving.sql.owners, row, row)
        except CorruptCheckpoint as error:
            damage = str(error)
        checkpoint = self._checkpoint(row)
        return ThreadRow(
            family=self.family,
            thread_id=self.naming.id_of(row),
            created_at=aware(row[self.tables.owner.created]),
            updated_at=checkpoint.created_at,
            checkpoints=row[":rows"],
            size_bytes=row[":bytes"],
            checkpoint_id=checkpoint.checkpoint_id,
            damage=damage,
        )

    def _checkpoints(self, row: Row) -> Sequence[CheckpointRow]:
        """Return the one state; a family may add others, whose ids begin with its id and ``/``."""
        return [self._checkpoint(row)]

    def _checkpoint(self, row: Row) -> CheckpointRow:
        """Return the one state, whose id is the time of the last write in microseconds."""
        us, at = self.owners.written_us(row), self.owners.written_at(row)
        return CheckpointRow("", str(us), None, at, row[":bytes"])

    def _written_by(self, row: Row, at: datetime | None) -> bool:
        if at is not None:
            time_text(at)  # refuses a time without a zone
        return at is None or self._checkpoint(row).created_at <= at


def _fits(thread: ThreadRow, wanted: ThreadFilter, containment: Containment | None) -> bool:
    """Return whether a thread passes what the statement decides only nearly: its times and its metadata."""
    if wanted.saved_after is not None and thread.updated_at < wanted.saved_after:
        return False
    if wanted.saved_before is not None and thread.updated_at >= wanted.saved_before:
        return False
    if wanted.metadata is None or containment is None or thread.damage:  # damage is shown
        return True
    name, _ = wanted.metadata
    return name in thread.metadata and containment.within(thread.metadata[name])


def _json(value: Any) -> Any:
    """Return a stored value as JSON: of bytes, the JSON or the text in them."""
    value = plain(value)
    if not isinstance(value, bytes):
        return value if value is None or isinstance(value, str | int | float) else str(value)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return describe_bytes("bytes", len(value))
    if text[:1] not in {"{", "["}:
        return text
    try:
        return finite(json.loads(text))
    except (ValueError, RecursionError):
        return DAMAGED if not text.isprintable() else text
