"""Sessions in MySQL: `MySQLStorage`, and `WorkingOperations`, which reads sessions and commits changes to them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Coroutine, Generator, Iterable
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar, Unpack, cast

from ....config import ENVIRONMENT, Keywords, MySQLConfig
from ....dialect.sql import Select
from ....dialect.statement import Param, Query, Statement
from ....drivers.interface import find_driver
from ....engine.operation import Batch, Duplicate, Operation, Outdated, Pause, Results, named
from ....errors import ConfigError, CorruptCheckpoint
from ....records import ledger
from ....records.leases import Turns
from ....records.maintenance import Maintenance
from ....records.tables import Row
from ....runtime.database import Database, Where, share
from ....runtime.sealing import Sealing
from ....runtime.stores import AsyncStore, SyncStore
from .. import calls
from ..content import NOTE, TASK, VARIABLE, Changes, Entry, Head, Session, StoredCheckpoint
from ..family import Seals, tables
from ..session import Work
from ..statements import reading, writing
from ..statements.reading import CheckpointRow, EntryRow, HeadRow
from ..statements.tables import SessionKey, working_dialect
from ..statements.writing import Outcome, Use, in_portions, sql_time
from .interface import SessionLocks, TwoSided
from .optimistic import (
    EXPIRING,
    NAMES,
    NAMES_AT_FIRST,
    VALUES,
    Commit,
    Loaded,
    Need,
    OptimisticOperations,
    outcomes_of,
    token_of,
)

T = TypeVar("T")

#: Maximum number of sessions that housekeeping removes.
HOUSEKEEPING_SESSIONS = 16

_FIELDS = tuple(one.name for one in fields(Head))


class WorkingOperations(OptimisticOperations):
    """Sessions in MySQL.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__()
        self.config = config
        self.sql = working_dialect(config.table_prefix)
        self.schema = self.sql.schema
        self.sealing = Sealing(config.encryption, self.schema.family)
        self._owners = Maintenance(tables(config.table_prefix), removed=self._forget)
        self.turns = Turns(self.sql)

    def attach(self, database: Database) -> None:
        """See `HasCaches.attach`."""
        self.turns.attach(database)

    def _forget(self, session: Row) -> None:
        self.known.take(calls.Address(session["tenant"], session["session_id"]))

    def execute(self, call: calls.Call) -> Operation[calls.Reply]:
        """Execute a call; see `OptimisticOperations.execute`."""
        return named(super().execute(call), call.name)

    def sweep(self, limit: int = 1_000) -> Operation[int]:
        """Remove expired sessions, each whole, of all tenants; returns their number.

        Args:
            limit: The maximum number of sessions to remove.
        """
        return (yield from self._owners.remove_expired(limit))

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Remove all sessions of a tenant, each whole; returns their number, without expired ones.

        Args:
            tenant: The tenant.
        """
        return (yield from self._owners.forget(tenant)).owners

    def pause(self, seconds: float) -> Operation[None]:
        """Wait."""
        yield Pause(seconds=seconds)

    def find(self, call: calls.Call) -> Operation[list[int] | None]:
        """Return the recorded outcomes of a call's commands; None if it was not carried out."""
        tenant, sealing = call.address.tenant, self.sealing.of(*call.address)
        tokens = [token_of(call, index) for index in range(len(call.commands) + call.stamped)]
        queries = [ledger.FIND(self.sql, tenant=tenant, token=token) for token in tokens]
        results = yield Batch(tuple(queries), atomic=False)
        rows = [results.row(query) for query in queries]
        if rows[0] is None:
            return None
        outcomes = [None if row is None else row.outcome for row in rows]
        return [
            0 if outcome is None else sealing.mask(outcome, token)
            for outcome, token in zip(outcomes, tokens, strict=True)
        ]

    def load(self, address: calls.Address, need: Need, *, fills: bool, renews: bool) -> Operation[Loaded]:
        """See `OptimisticOperations`. One round trip."""
        key = SessionKey(*address)
        renewal = (writing.RENEW(self.sql, key),) if renews else ()
        seals = Seals(self.sealing, key)
        if not fills and (few := _few(need)) is not None:
            return (yield from self._load_few(key, seals, *few, renewal))
        head = reading.HEAD(self.sql, key)
        parts = self._parts(key, need, fills=fills)
        checkpoints = reading.CHECKPOINTS(self.sql, key) if need.checkpoints or need.contents else None
        history = {name: reading.HISTORY(self.sql, key, checkpoint_id=name) for name in sorted(need.contents)}
        queries: list[Query[Any]] = [head, *parts, *([checkpoints] if checkpoints else []), *history.values()]
        several = len(queries) > 2 and not fills
        results = yield Batch((*renewal, *queries), atomic=several or bool(need.contents))
        found = results.row(head)
        if found is None or found.sid is None:
            now_us = 0 if found is None else found.now_us
            self.clock.learn(now_us)
            return Loaded(None, now_us)
        self.clock.learn(found.now_us)
        session = Session(address.session_id, head_of(found), whole=need.whole, listed=checkpoints is not None)
        session.complete = need.whole or need.variables in {NAMES, VALUES}
        for query in parts:
            self._add(session, results.rows(query), seals, need)
        if fills and not session.complete:
            session.complete = len(results.rows(parts[-1])) <= NAMES_AT_FIRST
        if checkpoints is not None:
            rows = results.rows(checkpoints)
            session.checkpoints = [self._checkpoint(session, seals, row, results, history) for row in rows]
        return Loaded(session, found.now_us)

    def _load_few(
        self, key: SessionKey, seals: Seals, kind: int, name: str | None, limit: int, renewal: tuple[Statement, ...]
    ) -> Operation[Loaded]:
        """Read one entry, or the last notes, with the session's stamp and times."""
        if name is None:
            query = reading.LAST(self.sql, key, kind=kind, limit=limit)
        else:
            query = reading.ONE(self.sql, key, kind=kind, name=name)
        results = yield Batch((*renewal, query), atomic=False)
        rows = results.rows(query)
        if not rows:
            return Loaded(None, 0)
        first = rows[0]
        self.clock.learn(first.now_us)
        head = Head(stamp=first.stamp, ttl_us=first.ttl_us, expires_us=first.expires_us)
        session = Session(key.session_id, head, complete=False, whole=False, listed=False)
        for row in rows:
            expired = row.entry_expires_us is not None and row.entry_expires_us <= row.now_us
            if row.name is not None and row.value is not None and row.version is not None and not expired:
                value = seals.open(kind, row.name, row.version, row.value)
                session.add(kind, row.name, Entry(value, len(value), row.version, 0, row.entry_expires_us))
        return Loaded(session, first.now_us)

    def _parts(self, key: SessionKey, need: Need, *, fills: bool) -> list[Query[EntryRow]]:
        """Return the queries of entries; that of the first names is the last."""
        parts: list[Query[EntryRow]] = []

        def add(statement: Select[EntryRow], condition: str, **values: Any) -> None:
            parts.append(statement(self.sql, key, pieces={"condition": condition}, **values))

        if need.whole:
            add(reading.ENTRIES, reading.EVERYTHING)
            return parts
        if need.notes:
            add(reading.ENTRIES, reading.LAST_NOTES, limit=need.notes)
        if need.task:
            add(reading.ENTRIES, reading.NAMED, kind=TASK, names=[""])
        if need.values and need.variables != VALUES:
            add(reading.ENTRIES, reading.NAMED, kind=VARIABLE, names=sorted(need.values))
        if need.variables in {NAMES, VALUES}:
            add(reading.ENTRIES if need.variables == VALUES else reading.SIZES, reading.OF_VARIABLES)
            return parts
        if need.variables == EXPIRING:
            add(reading.SIZES, reading.EXPIRING)
        if sizes := sorted(need.sizes - need.values):
            add(reading.SIZES, reading.NAMED, kind=VARIABLE, names=sizes)
        if fills:
            add(reading.SIZES, reading.NAMES_AND_TASK, limit=NAMES_AT_FIRST + 1)
        return parts

    def _add(self, session: Session, rows: Iterable[EntryRow], seals: Seals, need: Need) -> None:
        """Add entries to a session."""
        for row in rows:
            try:
                entry = seals.entry(row)
            except CorruptCheckpoint:
                if not need.whole:
                    raise
                entry = seals.entry(row._replace(value=None))  # a restored checkpoint may replace it
            session.add(row.kind, row.name, entry)

    def _checkpoint(
        self, session: Session, seals: Seals, row: CheckpointRow, results: Results,
        history: dict[str, Query[EntryRow]],
    ) -> StoredCheckpoint:  # fmt: skip
        """Return a checkpoint, with its content if that was read."""
        query, checkpoint = history.get(row.checkpoint_id), seals.checkpoint(row)
        if query is None or checkpoint.damage is not None:
            return checkpoint
        earlier = ((one.kind, one.name, seals.entry(one)) for one in results.rows(query))
        return session.with_content(checkpoint, earlier)

    def commit(self, session: Session | None, work: Work) -> Operation[Commit]:
        """See `OptimisticOperations`. One round trip."""
        call, sql = work.call, self.sql
        key = SessionKey(*call.address)
        sealing = self.sealing.of(*key)
        first, *others = [
            Outcome(token_of(call, index), sealing.mask(outcome, token_of(call, index)))
            for index, outcome in enumerate(outcomes_of(work))
            if index == 0 or outcome
        ]
        record = writing.record(sql, key, first, others)
        steps: list[Statement] = []
        advance: Statement | None = None
        if work.found is None:
            if session is not None:  # it has expired
                sid = session.head.sid
                steps += [writing.END_EXPIRED(sql, key, sid=sid), *writing.remove(sql, key, sid)]
            work.head.sid = os.urandom(16)
            steps += [writing.BEGIN(sql, key, **columns_of(work.head)), record]
        else:
            sid, stamp, until_us = work.found.head.sid, work.found.head.stamp, work.valid_until_us
            if work.ended:
                end = writing.END(sql, key, sid=sid, stamp=stamp, valid_until_us=until_us)
                steps += [end, record, *writing.remove(sql, key, sid)]
            else:
                columns = _changed_columns(work.found.head, work.head)
                advance = writing.advance(sql, key, sid, stamp, until_us, columns)
                steps += [advance, record]
        if not work.ended:
            steps += self._entry_steps(key, work)
        batch = Batch.of(
            *steps,
            outcome_query=ledger.FIND(sql, key, token=call.token),
            lock=(self.sql.names["sessions"], *key),
        )
        try:
            results = yield from (self.turns.delete if work.ended else self.turns.write)(batch, key)
        except Outdated:
            return Commit.OUTDATED
        except Duplicate as duplicate:
            return Commit.REPEATED if duplicate.table == self.sql.names["ledger"] else Commit.OUTDATED
        if results.earlier_attempt is not None:
            return Commit.REPEATED
        if advance is not None:
            self.clock.learn(results.of(advance).last_insert_id)
        yield from ledger.in_passing(lambda: self._housekeeping(key))
        return Commit.DONE

    def _entry_steps(self, key: SessionKey, work: Work) -> list[Statement]:
        """Return the statements that write entries and checkpoints."""
        of_session = (self.sql, key, work.head.sid)
        changes, seals = work.changes(), Seals(self.sealing, key)
        steps = self._keeping(key, seals, work, changes)
        if changes.clears_notes:
            steps.append(writing.DROP_ALL(self.sql, key, sid=work.head.sid))
        steps += in_portions(writing.DROP, "names", changes.drops, *of_session)
        steps += in_portions(writing.PUT, "rows", [seals.row(*put) for put in changes.puts], *of_session)
        steps += in_portions(writing.USE, "rows", [Use(*use) for use in changes.uses], *of_session)
        steps += in_portions(writing.CREATE, "rows", [*map(seals.checkpoint_row, changes.created)], *of_session)
        if changes.removed:
            steps.append(writing.DELETE(self.sql, key, sid=work.head.sid, ids=changes.removed))
            steps.append(writing.PRUNE(self.sql, key, sid=work.head.sid))
        return steps

    def _keeping(self, key: SessionKey, seals: Seals, work: Work, changes: Changes) -> list[Statement]:
        """Return the statements that write the history."""
        steps: list[Statement] = []
        sid, kept = work.head.sid, changes.kept_notes
        of_session = (self.sql, key, sid)
        if kept:
            up_to = {"condition": writing.UP_TO}
            steps.append(writing.KEEP(self.sql, key, pieces=up_to, sid=sid, kind=NOTE, kept=kept, valid_until=kept + 1))
        grouped: dict[tuple[int, int], list[str]] = defaultdict(list)
        for kind, name, until in changes.keep:
            grouped[kind, until].append(name)
        of_names = {"condition": writing.OF_NAMES}
        for (kind, until), names in grouped.items():
            steps += in_portions(
                writing.KEEP, "names", names, *of_session, pieces=of_names, kind=kind, valid_until=until
            )
        history = [seals.row(*earlier) for earlier in changes.history]
        return [*steps, *in_portions(writing.PUT_HISTORY, "rows", history, *of_session)]

    def _housekeeping(self, key: SessionKey) -> Operation[None]:
        """Forget tokens and deleted entries, and remove expired sessions."""
        forget = ledger.FORGET_OLD(self.sql, limit=ledger.FORGOTTEN_AT_ONCE)
        yield Batch((forget, writing.forget_removed(self.sql, key)), atomic=False)
        yield from self.sweep(HOUSEKEEPING_SESSIONS)


def _few(need: Need) -> tuple[int, str | None, int] | None:
    """Return the kind, the name and the number of the entries if only one, or only notes, are needed; else None."""
    if need.task and need == Need(task=True):
        return TASK, "", 1
    if len(need.values) == 1 and need == Need(values=need.values):
        return VARIABLE, next(iter(need.values)), 1
    if need.notes and need == Need(notes=need.notes):
        return NOTE, None, need.notes
    return None


def head_of(row: HeadRow) -> Head:
    """Return the session in a row."""
    return Head(
        cast(bytes, row.sid),
        row.created_us or 0,
        row.ttl_us,
        row.stamp or 0,
        row.expires_us,
        *(number or 0 for number in row[6:]),
    )


def columns_of(head: Head) -> dict[str, Any]:
    """Return the columns of a new session, by name."""
    columns = {name: getattr(head, name) for name in _FIELDS}
    return {**columns, "created_at": sql_time(head.created_us), "expires_at": sql_time(head.expires_us)}


def _changed_columns(before: Head, after: Head) -> dict[str, Param]:
    """Return the columns of a session that a write changes, by name."""
    columns: dict[str, Param] = {
        name: value for name in _FIELDS if (value := getattr(after, name)) != getattr(before, name)
    }
    if "expires_us" in columns:
        columns["expires_at"] = sql_time(cast("int | None", columns.pop("expires_us")))
    return columns


class _Blocking(SyncStore[WorkingOperations]):
    """The blocking side."""

    _awaited_class = "WorkingMemory"


class MySQLStorage(TwoSided):
    """Keeps sessions in MySQL: durable, shared by all processes. See `Storage`.

    A read is one round trip, and so is a write to a session to which this process wrote last; otherwise a write reads
    the session first. Each session is removed whole, in a transaction of its own.

    Args:
        where: A DSN, a `MySQLConfig` or a `Database`; or give options as keywords.
        options: Options of `MySQLConfig`.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
        DriverMissing: The client library is not installed.
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        self.database, self.config, self._owned = share(type(self), where, options)
        find_driver(self.config.driver)  # a missing library is reported now, not at the first call
        if self.database.in_transaction:
            raise ConfigError(
                "Working memory writes in transactions of its own, and repeats them: give it the Database itself, not "
                "one in using(connection). A state that belongs to your transaction can be saved in a CheckpointStore."
            )
        self._operations = WorkingOperations(self.config)
        key = "locks of sessions", self.config.table_prefix
        super().__init__(self._operations, self.database.cache(key, SessionLocks))

    @cached_property
    def _awaited(self) -> AsyncStore[WorkingOperations]:
        return AsyncStore(self._operations, self.database, owned=self._owned)

    @cached_property
    def _blocking(self) -> SyncStore[WorkingOperations]:
        return _Blocking(self._operations, self.database, owned=self._owned)

    def _run(self, steps: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return self._awaited._run(steps)

    def _run_blocking(self, steps: Generator[Any, Any, T]) -> T:
        return self._blocking._run(steps)

    async def aclose(self) -> None:
        """Close all connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    def close(self) -> None:
        """Close the connections of the blocking side if this opened them; the next call opens new ones."""
        if self._owned:
            self.database.close()

    def __repr__(self) -> str:
        return f"MySQLStorage({self.database!r})"
