"""Upgrading the tables of a family to this version's layout, as operations: `plan` and `migrate`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ..config import ConnectionOptions
from ..dialect.schema import Backfill, Layout, Schema, Step, Upgrade, read_comment
from ..dialect.statement import Param, Query, Statement
from ..dialect.variants import variant_of
from ..errors import LocusMySQLError, OlderLayout, PrivilegeMissing, SchemaMismatch, Unavailable, UnsupportedServer
from .bootstrap import VERSION, check_layout, missing_tables
from .operation import Batch, Operation, Outdated, Pause, fetch
from .retry import Backoff, next_page

#: Seconds for which an ALTER waits for transactions that use the table. All later statements on the table wait behind
#: it, so the wait is short; it is repeated until ``retry_deadline_s``.
LOCK_WAIT_S = 3

#: Seconds to wait for another process that migrates the same tables.
OTHERS_S = 60

#: Takes the lock; a connection that holds it already takes it once more.
_GET_LOCK = "SELECT GET_LOCK(%s, 0) AS taken"

#: Fails with error 3141 unless the connection holds the lock, before the next statement of the packet is run.
_HOLDS_LOCK = "SELECT CAST(IF(IS_USED_LOCK(%s) = CONNECTION_ID(), '1', '') AS JSON)"

_SHORT_WAITS = Statement(f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}")


class Number(NamedTuple):
    """The answer of the functions for locks; NULL is an error."""

    number: int | None


class Done(NamedTuple):
    """A row that shows that a step was carried out."""

    done: int


class Plan(NamedTuple):
    """What a migration has to do for a family.

    Args:
        family: The family's name.
        layout: The layout of its tables; None if it has none.
        wanted: The layout of this version.
        steps: The steps that were not carried out yet, and the changes of comments that record them.
    """

    family: str
    layout: int | None
    wanted: int
    steps: tuple[Step, ...]

    @property
    def pending(self) -> bool:
        """Return whether the tables have an older layout."""
        return self.layout is not None and self.layout < self.wanted


def plan(config: ConnectionOptions, schema: Schema) -> Operation[Plan]:
    """Return the steps from the tables' layout to this version's. Changes nothing.

    Raises:
        NewerLayout: The tables are not those of an older released version.
        SchemaMismatch: They are not tables of this family, or their layout has no steps.
    """
    number = yield from _find_layout(config, schema)
    steps: list[Step] = []
    creations, created = _creations(schema), set[str]()  # names of tables that a step creates
    for upgrade in _upgrades(schema, number):
        for step in upgrade.steps:
            # A table is created in its last form, in which later steps on it are done.
            if created.isdisjoint(step.params[:1]) and not (yield from _is_done(step)):
                steps.append(step)
                if step in creations:
                    created.update(step.params)
        steps += _comments(schema, upgrade)
    return Plan(schema.family, number, schema.layout_version, (yield from _translated(steps)))


def migrate(config: ConnectionOptions, schema: Schema, report: Callable[[Step], None]) -> Operation[Plan]:
    """Carry out the steps to this version's layout, and return what was planned. May be repeated after any failure.

    Args:
        config: The options; the pool has one connection, which keeps the lock on the migration until it is closed.
        schema: The tables.
        report: Called before each step.

    Raises:
        Unavailable: Another process migrates the tables, or transactions keep them locked.
        PrivilegeMissing: The account lacks ALTER.
        UnsupportedServer: The server is OceanBase.
        SchemaMismatch: As for `plan`.
    """
    planned = yield from plan(config, schema)
    if not planned.pending:
        return planned
    try:
        yield from _check_engine(schema)
        backoff = Backoff("The lock of a migration was lost with its connection")
        while True:
            yield from _lock(config, schema)
            try:
                # Another process may have migrated meanwhile: while this one waited, or after it lost the lock.
                yield from _upgrade(config, schema, (yield from _find_layout(config, schema)), report)
                break
            except Outdated:  # the lock was lost with the connection
                yield backoff.pause()
    except PrivilegeMissing as error:
        raise PrivilegeMissing(
            f"{error} A migration also needs ALTER, CREATE and INSERT on the tables: see `python -m locus_mysql grants "
            "--migrate`. Completed steps remain; run the migration again."
        ) from error
    return planned


def _upgrade(
    config: ConnectionOptions, schema: Schema, number: int | None, report: Callable[[Step], None]
) -> Operation[None]:
    """Carry out the steps from a layout on.

    Raises:
        Outdated: The connection does not hold the lock.
    """
    held = Statement(_HOLDS_LOCK, (_lock_name(config, schema),))
    for upgrade in _upgrades(schema, number):
        for step in upgrade.steps:
            if not (yield from _is_done(step)):
                report(step)
                yield from _carry_out(step, held)
        for step in _comments(schema, upgrade):
            yield from _carry_out(step, held)


def _check_engine(schema: Schema) -> Operation[None]:
    """Check that the server's engine releases locks.

    Raises:
        UnsupportedServer: It does not: on OceanBase, a lock remains after its connection has ended.
    """
    variant = variant_of((yield from fetch(VERSION))[0].version)
    if variant is not None:
        raise UnsupportedServer(
            f"{variant.name} does not release the lock of a migration that was ended, so `migrate` changes nothing "
            f"there. Run the statements that `python -m locus_mysql migrate --sql --family {schema.family}` prints, in "
            "one session; repeat an UPDATE until it changes no row."
        )


def _translated(steps: list[Step]) -> Operation[tuple[Step, ...]]:
    """Return the steps with the statements of the server's engine, as they are printed for review."""
    variant = variant_of((yield from fetch(VERSION))[0].version) if steps else None
    if variant is None:
        return tuple(steps)
    return tuple(step._replace(sql=variant.statement(Statement(step.sql)).sql) for step in steps)


def _find_layout(config: ConnectionOptions, schema: Schema) -> Operation[int | None]:
    """Return the lowest layout among the existing tables; None if there are none."""
    tables = {table.name.casefold(): table for table in (yield from fetch(schema.describe()))}
    comments = {name: table.comment or "" for name, table in tables.items()}
    if len(missing_tables(schema, tables)) == len(schema.names):
        return None
    numbers = []
    for name in schema.names:
        if name.casefold() in comments:
            comment = comments[name.casefold()]
            with suppress(OlderLayout):
                check_layout(config, schema, name, comment)
            found = read_comment(comment)
            if isinstance(found, Layout):
                numbers.append(found.number)
    return min(numbers)


def _upgrades(schema: Schema, number: int | None) -> list[Upgrade]:
    """Return the upgrades from a layout on. The first one begins with the creation of tables, for later comments."""
    if number is None or number >= schema.layout_version:
        return []
    found = [upgrade for upgrade in schema.upgrades if upgrade.to > number]
    if [upgrade.to for upgrade in found] != list(range(number + 1, schema.layout_version + 1)):
        raise SchemaMismatch(
            f"The tables of family {schema.family!r} have layout {number}, from which this version has no steps. "
            "Migrate them with an earlier version of locus-mysql first."
        )
    first, *later = found
    return [first._replace(steps=(*_creations(schema), *first.steps)), *later]


def _creations(schema: Schema) -> list[Step]:
    """Return the steps that create the tables."""
    return [
        Step(
            f"create table {name}",
            statement.sql,
            "SELECT 1 AS done FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = %s",
            (name,),
        )
        for name, statement in zip(schema.names, schema.create(), strict=True)
    ]


def _comments(schema: Schema, upgrade: Upgrade) -> list[Step]:
    """Return the steps that record an upgrade in the comments of the tables. They change no row."""
    comment = Layout(schema.family, upgrade.to, upgrade.usable_from).comment
    return [
        Step(
            f"record layout {upgrade.to} in {name}",
            f"ALTER TABLE `{name}` COMMENT='{comment}', ALGORITHM=INPLACE, LOCK=NONE",
            "SELECT 1 AS done FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = %s"
            " AND t.TABLE_COMMENT = %s",
            (name, comment),
        )
        for name in schema.names
    ]


def _lock(config: ConnectionOptions, schema: Schema) -> Operation[None]:
    """Take the lock that keeps other migrations of these tables away. It ends with the connection."""
    query = Query(_GET_LOCK, (_lock_name(config, schema),), row=Number)
    for _ in range(OTHERS_S):
        if (yield from fetch(query))[0].number:
            return
        yield Pause(seconds=1)
    raise Unavailable(
        f"Another process migrates the tables of family {schema.family!r} in database {config.database!r}, or the "
        "server still carries out a step of one that was ended. Run the migration again when that is over."
    )


def _lock_name(config: ConnectionOptions, schema: Schema) -> str:
    where = hashlib.sha256(f"{config.database}.{schema.names[0]}".encode()).hexdigest()[:32]
    return f"locus_mysql_migrate_{where}"


def _is_done(step: Step) -> Operation[bool]:
    return bool(step.done and (yield from fetch(Query(step.done, step.params, row=Done))))


def _carry_out(step: Step, held: Statement) -> Operation[None]:
    """Carry out a step, in packets whose first statement checks that the connection holds the lock."""
    if step.backfill is not None:
        yield from _fill(step.backfill, held)
        return
    outcome_query = Query(step.done, step.params, row=Done)
    try:
        yield Batch((held, _SHORT_WAITS, Statement(step.sql)), outcome_query=outcome_query, atomic=False)
    except (PrivilegeMissing, Outdated):
        raise
    except LocusMySQLError as error:
        if (yield from _is_done(step)):  # by an earlier try, whose answer was lost, or by another process
            return
        if isinstance(error, Unavailable):
            raise Unavailable(
                f"Migration stopped at a step, {step.words}: {error} The table "
                "performance_schema.metadata_locks shows who uses it. Completed steps remain; run the migration again."
            ) from error
        raise


def _fill(change: Backfill, held: Statement) -> Operation[None]:
    """Change rows in short transactions, each up to the next key."""
    after: tuple[Param, ...] = ()
    while True:
        results = yield Batch.of(Statement(change.bound(len(after)), after))
        until = change.params(results[0].rows[0]) if results[0].rows else ()
        yield Batch((held, Statement(change.update(len(after), len(until)), (*after, *until))))
        if not until:
            return
        after = next_page(after, until)
