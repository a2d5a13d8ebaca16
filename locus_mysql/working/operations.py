"""Carrying out calls on MySQL, as generators that do no I/O."""

from __future__ import annotations

import itertools
import json
import os
from typing import cast

from ..config import MySQLConfig
from ..dialect import Statement
from ..dialect.working.dialect import WorkingDialect
from ..dialect.working.sessions import Allowed
from ..dialect.working.template import SessionKey
from ..engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ..errors import CapacityExceeded, Unavailable
from .calls import (
    INT_LEAST,
    INT_MOST,
    Append,
    Call,
    CreateCheckpoint,
    Increment,
    Reply,
    RestoreCheckpoint,
    StampMoved,
    lifetime_us,
)
from .plans import Plans, Reading, Writing, session_of
from .refusals import checkpoint_there, no_checkpoint, not_a_whole_number, of_nothing, out_of_range

#: One write in so many is followed by some housekeeping.
HOUSEKEEPING_EVERY = 64

#: Housekeeping removes at most so many sessions.
HOUSEKEEPING_SESSIONS = 16

#: So often a write is tried again because somebody else changed the session at the same time.
TRIES = 50


class WorkingOperations:
    """What MySQL keeps of sessions.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self.sql = WorkingDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._plans = Plans(self.sql)
        self._writes = itertools.count(1)

    def execute(self, call: Call) -> Operation[Reply]:
        """Carry out a call; see `Storage`. One round trip, unless the session is full, or has expired."""
        operation = self._write(call) if call.writes else self._read(call)
        operation.__name__ = call.name  # type: ignore[attr-defined]  # generators have one; by it slow calls are logged
        return operation

    def sweep(self, limit: int = 1_000) -> Operation[int]:
        """Remove sessions that have expired, each whole, those of all tenants; how many.

        Args:
            limit: At most this many.
        """
        (found,) = yield Batch.of(self.sql.sessions.expired(limit))
        removed = 0
        for tenant, session_id in found.rows:
            try:
                yield Batch(self._bury(SessionKey(cast(str, tenant), cast(str, session_id))))
            except Outdated:  # somebody else removed it, or began it anew
                continue
            removed += 1
        return removed

    def _read(self, call: Call) -> Operation[Reply]:
        key = SessionKey(*call.address)
        readings = [self._plans.reading(command, key) for command in call.commands]
        renewing = (self.sql.sessions.renew(key),) if call.renew else ()
        statements = (*renewing, *(reading.statement for reading in readings))
        results = (yield Batch(statements, atomic=len(readings) > 1))[len(renewing) :]
        answers = tuple(reading.answer(result.rows) for reading, result in zip(readings, results, strict=True))
        return Reply(answers, *session_of(results[0]))

    def _write(self, call: Call) -> Operation[Reply]:
        key = SessionKey(*call.address)
        plans = [self._plans.of(command, key, call.token, call.limits) for command in call.commands]
        room, bury = False, False
        for _ in range(TRIES):
            try:
                reply = yield from self._try(call, key, plans, room=room, bury=bury)
            except (Outdated, Duplicate) as refused:
                why = yield from self._why_refused(call, key, plans, refused, room=room)
                if isinstance(why, Reply):
                    return why
                room, bury = why
                continue
            yield from self._housekeeping(key)
            return reply
        raise Unavailable(
            f"Others changed session {key.session_id!r} each of the {TRIES} times that this call was tried. Nothing "
            "was changed. Try again."
        )

    def _try(
        self, call: Call, key: SessionKey, plans: list[Reading | Writing], *, room: bool, bury: bool
    ) -> Operation[Reply]:
        """Send a call that writes.

        Args:
            call: The call.
            key: Which session.
            plans: What its commands send.
            room: Whether room is made before the limits are checked.
            bury: Whether the session has expired, and is removed before.
        """
        outcome = self.sql.entries.outcome(key.tenant, call.token)
        steps: list[Statement] = list(self._bury(key)) if bury else []
        results: dict[str, Statement] = {}
        alone = len(plans) == 1
        for place, plan in enumerate(plans):
            if isinstance(plan, Reading):
                results[f"read{place}"] = plan.statement
                steps.append(plan.statement)
                continue
            lock = self._lock(call, key, plans, plan, first="lock" not in results, checked=not room)
            results["lock"] = lock[0]
            settle = plan.settle if alone else None
            before, after = ((settle,), ()) if plan.settled_first else ((), (settle, outcome))
            steps += lock
            if settle is not None:
                results["outcome"] = settle if plan.settled_first else outcome
                steps += [*before, *plan.steps, *after]
            else:
                steps += plan.steps
            if plan.trim is not None:
                results["trim"] = plan.trim
            if plan.counts is not None:
                steps += plan.counts(None if room else _allowed(call))
        if "outcome" not in results:
            steps.append(self.sql.entries.settle(key.tenant, call.token))
        if room:
            steps += self._make_room(call, key, results)
        elif any(isinstance(plan, Writing) and plan.recounts for plan in plans):
            steps.append(self.sql.sessions.recount(key))
        came = yield Batch.named(*steps, landed=outcome, **results)
        if came.landed is not None:
            return (yield from self._landed(call, key, plans, cast("int | None", came.landed[0])))
        if "trim" in results and came.named("trim").affected:
            yield Batch.of(self.sql.sessions.hold(key), self.sql.checkpoints.prune(key))
        return _reply(call, plans, came, results)

    def _lock(
        self, call: Call, key: SessionKey, plans: list[Reading | Writing], plan: Writing, *, first: bool, checked: bool
    ) -> tuple[Statement, ...]:
        """What locks the session for a command, draws a stamp and counts."""
        sessions = self.sql.sessions
        allowed = _allowed(call) if checked and plan.adds and plan.counts is None else None
        if not first:
            return (sessions.lock_again(key, plan.change, allowed),)
        used, relied = len(call.used), call.if_stamp
        if any(isinstance(other, Writing) and other.begins for other in plans):
            lifetime = None if call.ttl_us is None else lifetime_us(call.ttl_us)
            begin = sessions.begin(
                key, os.urandom(16), call.ttl_us, lifetime, plan.change, used=used, relied=relied, allowed=allowed
            )
            lock: tuple[Statement, ...] = (begin,)
        else:
            lock = sessions.lock(key, plan.change, used=used, relied=relied, allowed=allowed)
        if call.used:
            lock = (*lock, self.sql.entries.use(key, call.used, json.dumps(call.used, ensure_ascii=False)))
        return lock

    def _make_room(self, call: Call, key: SessionKey, results: dict[str, Statement]) -> list[Statement]:
        """Remove what has expired, and what may be evicted; then count anew and check the limits."""
        allowed = _allowed(call)
        steps = [self.sql.entries.remove_expired(key)]
        if call.limits.on_full == "evict":
            results["evict"] = self.sql.entries.evict(key, allowed)
            steps.append(results["evict"])
        return [*steps, self.sql.sessions.recount(key, allowed)]

    def _landed(
        self, call: Call, key: SessionKey, plans: list[Reading | Writing], outcome: int | None
    ) -> Operation[Reply]:
        """The reply to a call that was carried out before."""
        (state,) = yield Batch.of(self.sql.sessions.state(key))
        answers = tuple(plan.answer(outcome) if isinstance(plan, Writing) else None for plan in plans)
        stamp, ttl_us = cast("tuple[int, int | None]", tuple(state.rows[0][1:3])) if state.rows else (0, None)
        return Reply(answers, stamp, ttl_us)

    def _why_refused(
        self,
        call: Call,
        key: SessionKey,
        plans: list[Reading | Writing],
        refused: Outdated | Duplicate,
        *,
        room: bool,
    ) -> Operation[Reply | tuple[bool, bool]]:
        """Why a batch was undone: the reply if nothing is left to do, or whether room and a burial are needed."""
        sessions, entries = self.sql.sessions, self.sql.entries
        names = tuple(name for plan in plans if isinstance(plan, Writing) for name in plan.names) or ("",)
        as_json = json.dumps(names, ensure_ascii=False)
        asked = (
            entries.outcome(key.tenant, call.token),
            sessions.state(key),
            entries.has(key, names, as_json),
        )
        settled, found, has = yield Batch(asked, atomic=False)
        if settled.rows:
            return (yield from self._landed(call, key, plans, cast("int | None", settled.rows[0][0])))
        if isinstance(refused, Duplicate) and refused.table == self.sql.names["checkpoints"]:
            raise _checkpoint_there(call)
        expired = bool(found.rows and found.rows[0][3])
        there = bool(found.rows) and not expired
        if call.if_stamp is not None and call.if_stamp != (found.rows[0][1] if there else 0):
            raise StampMoved
        if not there:
            if any(isinstance(plan, Writing) and plan.begins for plan in plans):
                return room, expired
            return Reply(tuple(of_nothing(command) for command in call.commands))
        yield from self._check_commands(call, key)
        if room:
            state, present = found.rows[0], has.rows[0]
            held = tuple(int(cast(int, count)) for count in (*state[4:7], *present))
            _raise_if_full(call, plans, held)
        return any(isinstance(plan, Writing) and plan.adds for plan in plans), False

    def _check_commands(self, call: Call, key: SessionKey) -> Operation[None]:
        """Raise what a command asks for that cannot be."""
        for command in call.commands:
            if isinstance(command, RestoreCheckpoint):
                (found,) = yield Batch.of(self.sql.checkpoints.found(key, command.checkpoint_id))
                if not found.rows:
                    raise no_checkpoint(command.checkpoint_id)
            elif isinstance(command, Increment):
                (found,) = yield Batch.of(self.sql.entries.read(key, (command.key,), ""))
                value = cast("bytes | None", found.rows[0][1]) if found.rows else None
                if value is not None:
                    _check_sum(value, command)

    def _bury(self, key: SessionKey) -> tuple[Statement, ...]:
        """Remove a session that has expired, all of it; undone if it has not."""
        sessions = self.sql.sessions
        return (sessions.lock_expired(key), sessions.held(), *sessions.remove(key))

    def _housekeeping(self, key: SessionKey) -> Operation[None]:
        """Now and then: forget some tokens and deleted entries, remove some sessions that have expired."""
        if next(self._writes) % HOUSEKEEPING_EVERY:
            return
        entries = self.sql.entries
        yield Batch((entries.forget_settled(), entries.forget_removed(key)), atomic=False)
        yield from self.sweep(HOUSEKEEPING_SESSIONS)


def _allowed(call: Call) -> Allowed:
    return Allowed(call.limits.keys, call.limits.session_bytes, call.limits.scratchpad_entries)


def _reply(call: Call, plans: list[Reading | Writing], came: Results, named: dict[str, Statement]) -> Reply:
    answers: list[object] = []
    stamp = came.named("lock").last_insert_id
    for place, plan in enumerate(plans):
        if isinstance(plan, Reading):
            answers.append(plan.answer(came.named(f"read{place}").rows))
            continue
        stamp += plan.more_stamps
        if "outcome" in named:
            outcome = came.named("outcome")
            answers.append(plan.answer(cast(int, outcome.rows[0][0]) if outcome.rows else outcome.last_insert_id))
        elif plan.settle is None:
            answers.append(plan.answer(None))
        else:
            answers.append(None)
    evicted = came.named("evict").affected if "evict" in named else 0
    return Reply(tuple(answers), stamp, call.ttl_us, evicted)


def _checkpoint_there(call: Call) -> Exception:
    made = (command.checkpoint_id for command in call.commands if isinstance(command, CreateCheckpoint))
    undone = (command.undo_id for command in call.commands if isinstance(command, RestoreCheckpoint))
    return checkpoint_there(next(itertools.chain(made, undone)))


def _check_sum(value: bytes, command: Increment) -> None:
    """Raise if a number cannot be added to a value."""
    try:
        number = int(value)
    except ValueError:
        raise not_a_whole_number(command.key) from None
    if str(number).encode() != value or not INT_LEAST <= number <= INT_MOST:
        raise not_a_whole_number(command.key)
    if not INT_LEAST <= number + command.by <= INT_MOST:
        raise out_of_range(command.key, command.by)


def _raise_if_full(call: Call, plans: list[Reading | Writing], held: tuple[int, ...]) -> None:
    """Raise if a call does not fit.

    Args:
        call: The call.
        plans: What its commands send.
        held: Notes, bytes and variables of the session; of the variables that the call writes, how many are there, and
            their bytes.
    """
    notes, size_bytes, variables, present, present_bytes = held
    writing = [plan for plan in plans if isinstance(plan, Writing) and plan.adds]
    limits = call.limits
    notes += sum(isinstance(command, Append) for command in call.commands)
    if notes > limits.scratchpad_entries:
        raise CapacityExceeded("max_scratchpad_entries", notes, limits.scratchpad_entries, call.address.session_id)
    variables += len({name for plan in writing for name in plan.names}) - present
    if variables > limits.keys and (limits.on_full == "refuse" or present == variables):
        raise CapacityExceeded("max_keys", variables, limits.keys, call.address.session_id)
    size_bytes += sum(plan.size_bytes for plan in writing) - present_bytes
    if size_bytes > limits.session_bytes:
        raise CapacityExceeded("max_session_bytes", size_bytes, limits.session_bytes, call.address.session_id)
