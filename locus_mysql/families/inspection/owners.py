"""The threads of any family, derived from the declaration of its tables: `OwnerThreads` and `OwnerChanges`. No I/O.

An owner is a thread with one state: its row, and those of its parts by their tables. Lists are ordered by the time of
the last write if an index has it, else by the keys. A family whose owners are
conversations overrides what shows these: `state`, `previews` and `search`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias, cast

from ...config import MySQLConfig
from ...dialect import Query, Schema, Statement
from ...dialect.sql import SQL, Select
from ...dialect.statement import like
from ...dialect.words import patterns_of
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint, InvalidInput
from ...records.maintenance import Maintenance, Owned
from ...records.moving import Moving, OwnerRecord, PartRecord, plain
from ...records.owner_reader import OwnerReader
from ...records.row_statements import after_row
from ...records.tables import Row, Tables, path_of_key
from ...records.transfer import copy_owner
from ...runtime.arguments import check_limit, check_text, tenant_of
from ...runtime.server_rows import aware
from .item_records import EXAMINED, CreatedRow, Growth, ThreadMarker, growth_of
from .msgpack import DAMAGED, describe_bytes, finite
from .records import (
    CheckpointRow,
    Day,
    Hit,
    LargeThread,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)
from .sources import NO_CURSOR, PAGE_LIMIT, Deferred, ThreadFilter, from_cursor, hits_in, time_text, to_cursor

#: The number of largest owners in statistics, and of owners in a sample.
LARGEST, SAMPLE = 10, 2_500

#: A search reads this many of the owners written last. A search and a state read about this many sealed bytes.
SEARCHED, READ_BYTES = 50, 8_388_608

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

#: Owners, each with the number of its parts and their bytes.
OWNERS = SQL("""
SELECT {OWN_COLUMNS}, {ROWS}, {BYTES}
  FROM {TABLE} o
 WHERE o.tenant = :tenant AND {LIVE}{CONDITIONS}
 ORDER BY {BY}
 LIMIT :limit
""")

COUNT = SQL("SELECT COUNT(*) FROM {TABLE} o WHERE o.tenant = :tenant")

# A sample of the owners, by a hash of their keys.
_SAMPLED = " AND MOD(CRC32({ID}), :one_in) = 0"

TOTALS = SQL("""
SELECT COUNT(*), COALESCE(SUM({ROWS}), 0), COALESCE(SUM({BYTES}), 0)
  FROM {TABLE} o
 WHERE o.tenant = :tenant AND {LIVE}{SAMPLED}
""")

#: The owners created on each of the last 30 days.
DAYS = SQL("""
SELECT CAST(DATE(o.{CREATED}) AS CHAR), COUNT(*), COALESCE(SUM({ROWS}), 0), COALESCE(SUM({BYTES}), 0)
  FROM {TABLE} o
 WHERE o.tenant = :tenant AND o.{CREATED} > UTC_TIMESTAMP(6) - INTERVAL 30 DAY AND {LIVE}{SAMPLED}
 GROUP BY 1
 ORDER BY 1
""")

#: The same of the first ``limit`` owners along the primary key, without their parts; and a row without a day with the
#: number of these.
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

MARKERS = Select("SELECT {ID}, {VERSION} FROM {TABLE} o WHERE {WHICH} AND {LIVE}", ThreadMarker)

#: The key of an owner after the tenant.
Key: TypeAlias = tuple[str | bytes, ...]


class Naming:
    """The ids of owners as threads.

    The id is the key; one of several columns as a path, see `path_of_key`.

    Args:
        tables: The family's tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.columns = tables.owner.key
        kinds = tables.kinds(tables.owner)
        self._binary = tuple("BINARY" in kinds[one] for one in self.columns)
        #: The id in SQL.
        self.sql = path_of_key(self.columns) if len(self.columns) > 1 else f"o.{self.columns[0]}"

    def id_of(self, row: Row) -> str:
        """Return the id of an owner."""
        values = [_text(row[one]) for one in self.columns]
        if len(values) == 1:
            return values[0]
        segments = values if values[-1] else values[:-1]
        return "/".join(one.replace("~", "~0").replace("/", "~1").replace("\0", "~2") for one in segments)

    def key_of(self, thread_id: str) -> Key | None:
        """Return the key of an id; None if no owner has such an id."""
        segments = [check_text(thread_id, "Thread id")]
        if len(self.columns) > 1:
            segments = [one.replace("~2", "\0").replace("~1", "/").replace("~0", "~") for one in thread_id.split("/")]
            if len(segments) == len(self.columns) - 1:
                segments.append("")
        if len(segments) != len(self.columns):
            return None
        return tuple(one.encode() if binary else one for one, binary in zip(segments, self._binary, strict=True))


class OwnerThreads:
    """Reads the owners of a family and one tenant as threads; see `Inspector`. Methods but `markers` are operations.

    Args:
        tables: The family's tables.
        config: The options.
    """

    #: The number of turns that a page reads to find when each message was first saved.
    turns_at_once = 250

    #: The condition for owners that lists contain, such as `` AND …``.
    listed = ""

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self.tables = tables
        self.family = tables.schema.family
        self.naming = Naming(tables)
        self._moving = Moving(tables, config)
        self._tenant = tenant_of(config)
        self._parser = config.search_parser
        owner = tables.owner
        self._written = owner.stamp or owner.recent or owner.updated
        self._in_us = "INT" in tables.kinds(owner)[self._written]
        # Without an index of the times, pages are in the order of the keys.
        self._by_time = bool(owner.recent)
        self._time_types = ((int if self._in_us else datetime),) if self._by_time else ()
        version = ", ".join(f"HEX(o.{one})" for one in owner.version or owner.epoch or (self._written,))
        self._pieces = {
            "ID": self.naming.sql,
            "ROWS": f"o.{owner.rows}" if owner.rows else self._total("COUNT(*)", tables.parts[:1]),
            "BYTES": f"o.{owner.size}" if owner.size else self._total("SUM({SIZE})", tables.parts),
            "BY": ", ".join(
                [*([f"o.{self._written} DESC"] if self._by_time else []), *(f"o.{one}" for one in owner.key)]
            ),
            "CREATED": owner.created,
            "VERSION": f"CONCAT_WS('-', {version})",
        }

    def _total(self, what: str, parts: Sequence[Any]) -> str:
        """Return the SQL of a total over the parts of an owner."""
        totals = []
        for part in parts:
            size = " + ".join(f"COALESCE(LENGTH(p.{one.column}), 0)" for one in part.sealed) or "0"
            same = " AND ".join(f"p.{one} = o.{one}" for one in ("tenant", *self.tables.link))
            since = "" if part.since is None else " AND p.{} >= o.{}".format(*part.since)
            removed = f" AND p.{part.removed} = 0" if part.removed else ""
            total = what.replace("{SIZE}", size)
            totals.append(
                f"(SELECT COALESCE({total}, 0) FROM `{self.tables.names[part.role]}` p WHERE {same}{since}{removed})"  # noqa: S608 - names of tables
            )
        return " + ".join(totals) or "0"

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self.tables.schema

    def _statement(self, statement: SQL, pieces: Mapping[str, str] | None = None, **values: Any) -> Statement:
        return self._moving.sql.owners(statement, {**self._pieces, **(pieces or {})}, tenant=self._tenant, **values)

    def threads(self, wanted: ThreadFilter, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """Return a page of owners, the last written first. One round trip. A filter by metadata finds none."""
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        pattern = check_text(wanted.pattern, "Pattern")
        conditions, values = self.listed, dict[str, Any]()
        if pattern != "*":
            conditions += f" AND {self.naming.sql} LIKE :pattern"
            values["pattern"] = like(pattern)
        if wanted.min_bytes is not None:
            conditions += " AND {BYTES} >= :min_bytes"
            values["min_bytes"] = check_limit(wanted.min_bytes, "min_bytes")
        for name, sign, moment in (("since", ">=", wanted.saved_after), ("until", "<", wanted.saved_before)):
            if moment is not None:
                conditions += f" AND o.{self._written} {sign} :{name}"
                values[name] = self._time(moment)
        if cursor is not None:
            *times, thread_id = from_cursor(cursor, *self._time_types, str)
            key = self.naming.key_of(thread_id)
            if key is None:
                raise InvalidInput(NO_CURSOR)
            beyond, after = after_row(self.tables.owner, dict(zip(self.naming.columns, key, strict=True)))
            if self._by_time:
                beyond = f" AND (o.{self._written} < :written OR o.{self._written} = :written{beyond})"
                values["written"] = times[0] if self._in_us else self._time(times[0])
            conditions += beyond
            values |= after
        if wanted.metadata is not None:
            return Page([])
        rows = yield from self._owners(conditions, limit, **values)
        last = None
        if len(rows) == limit:
            written = rows[-1][self._written]
            times = [written if self._in_us else aware(written)] if self._by_time else []
            last = to_cursor(*times, self.naming.id_of(rows[-1]))
        return Page([self._thread(row) for row in rows], last)

    def _owners(self, conditions: str, limit: int, **values: Any) -> Operation[list[dict[str, Any]]]:
        """Return live owners, the last written first, with the number of their parts and their bytes."""
        pieces = {"CONDITIONS": conditions.replace("{BYTES}", self._pieces["BYTES"])}
        (found,) = yield Batch.of(self._statement(OWNERS, pieces, limit=limit, **values))
        return [self._with_totals(row) for row in found.rows]

    def _with_totals(self, row: Sequence[Any]) -> dict[str, Any]:
        return {**self._moving.sql.owners.row(row), ":rows": int(row[-2]), ":bytes": int(row[-1])}

    def _one(self, thread_id: str) -> Operation[dict[str, Any] | None]:
        key = self.naming.key_of(thread_id)
        if key is None:
            return None
        condition = "".join(f" AND o.{one} = :{one}" for one in self.naming.columns)
        rows = yield from self._owners(condition, 1, **dict(zip(self.naming.columns, key, strict=True)))
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
        rows = {self._moving.key_of(row): row for row in (yield from self._owners("", SEARCHED))}
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
        """Return numbers, sizes and growth. Parts count as checkpoints; a day counts the owners created on it.

        Exact where owners have the size of their parts; else of a sample, after a count of all.
        """
        one_in = 1
        if not self.tables.owner.size:
            (counted,) = yield Batch.of(self._statement(COUNT))
            ((count,),) = cast(Any, counted.rows)
            one_in = max(1, count // SAMPLE)
        pieces = {"SAMPLED": _SAMPLED.format(ID=self.naming.sql) if one_in > 1 else ""}
        largest = {"CONDITIONS": pieces["SAMPLED"], "BY": f"{self._pieces['BYTES']} DESC"}
        totals, by_day, large = yield Batch(
            (
                self._statement(TOTALS, pieces, one_in=one_in),
                self._statement(DAYS, pieces, one_in=one_in),
                self._statement(OWNERS, largest, one_in=one_in, limit=LARGEST),
            ),
            atomic=False,
        )
        ((threads, rows, size_bytes),) = cast(Any, totals.rows)
        days: Any = by_day.rows
        return Statistics(
            self.family,
            threads * one_in,
            int(rows) * one_in,
            int(size_bytes) * one_in,
            None,
            [Day(day, *(int(one) * one_in for one in numbers)) for day, *numbers in days],
            [LargeThread.of(self._thread(self._with_totals(row))) for row in large.rows],
            threads if one_in > 1 else None,
        )

    def growth(self) -> Operation[Growth]:
        """Return the owners created per day, of the first `EXAMINED` ones. One round trip."""
        query = cast(Query[CreatedRow], self._statement(CREATED, limit=EXAMINED))
        return growth_of(f"{self.tables.owner.noun}s", (yield from fetch(query)), EXAMINED)

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return a query of those of these threads that exist, each with a value that every write changes."""
        keys = [key for one in thread_ids if (key := self.naming.key_of(one)) is not None]
        which = f"(o.tenant, {', '.join(f'o.{one}' for one in self.naming.columns)}) IN (:keys)" if keys else "FALSE"
        values = {"keys": [(self._tenant, *key) for key in keys]} if keys else {}
        return cast(Query[ThreadMarker], self._statement(MARKERS, {"WHICH": which}, **values))

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
        written = row[self._written]
        us = int(written) if self._in_us else (aware(written) - _EPOCH) // _MICROSECOND
        return CheckpointRow("", str(us), None, _EPOCH + timedelta(microseconds=min(us, _MOST_US)), row[":bytes"])

    def _written_by(self, row: Row, at: datetime | None) -> bool:
        if at is not None:
            time_text(at)  # refuses a time without a zone
        return at is None or self._checkpoint(row).created_at <= at

    def _time(self, moment: datetime) -> int | str:
        """Return a time as the column of the last write has it."""
        text = time_text(moment)
        return max(0, (moment - _EPOCH) // _MICROSECOND) if self._in_us else text


class OwnerChanges:
    """Deletes and copies owners, for the inspector, the API and ``rm``. Each method is an operation.

    Args:
        tables: The family's tables.
        config: The options.
    """

    #: Whether a new thread can begin with a single state of another one.
    can_branch = False

    #: Whether threads have older checkpoints, which can be deleted one by one.
    has_history = False

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self.naming = Naming(tables)
        self._moving = Moving(tables, config)

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """Delete a thread or one of its checkpoints; False if it does not exist.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the whole thread.
            namespace: The checkpoint's namespace, of a graph.
        """
        key = self.naming.key_of(thread_id)
        stored = None if key is None or checkpoint_id is not None else (yield from self._moving.live(key))
        if stored is None:
            return False
        owner = Owned({"tenant": self._moving.tenant, **stored}, thread_id, live=True)
        return bool((yield from Maintenance(self._moving.tables).remove([owner])).owners)

    def copy(self, source: str, target: str) -> Operation[bool]:
        """Copy a whole thread; False if it does not exist.

        Raises:
            ThreadExists: The target exists.
        """
        key, new = self.naming.key_of(source), self.naming.key_of(target)
        owner = self._moving.tables.owner
        if new is None:
            raise InvalidInput(f"{target!r} is no id of a {owner.noun}. Write it as {'/'.join(owner.key)}.")

        def change(row: dict[str, Any], now: str) -> None:
            row.update(zip(owner.key, new, strict=True))
            if owner.updated:
                row[owner.updated] = now

        return key is not None and (yield from copy_owner(self._moving, key, new, change))

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Save a state of a thread as the first of a new one; False if it does not exist.

        Raises:
            ThreadExists: The target has checkpoints.
            InvalidInput: The family cannot branch, as its owners have one state.
        """
        raise InvalidInput(f"A {self._moving.tables.owner.noun} can only be copied as a whole.")
        yield


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


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
