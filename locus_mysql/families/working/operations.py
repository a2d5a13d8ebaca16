"""Carrying out calls on MySQL, as generators that do no I/O."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from hashlib import sha256
from typing import cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.working.dialect import WorkingDialect
from ...dialect.working.sessions import Allowed
from ...dialect.working.template import SessionKey
from ...drivers.interface import Result
from ...engine.logs import HOUSEKEEPING, told
from ...engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ...errors import CapacityExceeded, LocusMySQLError, Unavailable
from ...runtime.sampling import one_in
from .calls import (
    INT_LEAST,
    INT_MOST,
    Append,
    Call,
    CreateCheckpoint,
    End,
    Increment,
    Reply,
    RestoreCheckpoint,
    StampMoved,
    Touch,
    Write,
    WriteTask,
    lifetime_us,
)
from .plans import Plans, Reading, Writing, damaged_checkpoint, found_among
from .refusals import (
    checkpoint_there,
    no_checkpoint,
    not_a_whole_number,
    of_nothing,
    out_of_range,
)

#: One write in so many is followed by some housekeeping.
HOUSEKEEPING_EVERY = 64

#: Housekeeping removes at most so many sessions.
HOUSEKEEPING_SESSIONS = 16

#: So many sessions of a tenant that is forgotten are looked for at once; each is removed by itself.
SESSIONS_AT_ONCE = 500

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

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Remove all sessions of a tenant, each whole; how many there were, without expired ones.

        Args:
            tenant: Whose.
        """
        removed, last = 0, ""
        while True:
            (page,) = yield Batch.of(self.sql.sessions.of_tenant(tenant, last, SESSIONS_AT_ONCE))
            for session_id, sid, expired in page.rows:
                key = SessionKey(tenant, last := cast(str, session_id))
                sessions = self.sql.sessions
                known = sessions.lock_known(key, cast(bytes, sid))
                with contextlib.suppress(Outdated):  # somebody else removed it, or this did, and the answer was lost
                    yield Batch((known, sessions.held(), *sessions.remove(key)))
                removed += not expired
            if len(page.rows) < SESSIONS_AT_ONCE:
                return removed

    def _read(self, call: Call) -> Operation[Reply]:
        key = SessionKey(*call.address)
        readings = [self._plans.reading(command, key) for command in call.commands]
        statements = [reading.statement for reading in readings]
        if call.renew:
            statements.insert(0, self.sql.sessions.renew(key))
        results = yield Batch(tuple(statements), atomic=len(readings) > 1)
        if call.renew:
            del results[0]
        answers: list[object] = []
        stamp, ttl_us = 0, None
        for reading, result in zip(readings, results, strict=True):
            answer, stamp, ttl_us = reading.told(result.rows)
            answers.append(answer)
        if call.if_stamp is not None and call.if_stamp != stamp:
            raise StampMoved
        return Reply(tuple(answers), stamp, ttl_us)

    def _write(self, call: Call) -> Operation[Reply]:
        key = SessionKey(*call.address)
        plans = [
            self._plans.of(command, key, _token_of(call, place), call.limits)
            for place, command in enumerate(call.commands)
        ]
        room, bury = _is_more(call, plans), False
        for _ in range(TRIES):
            try:
                reply = yield from self._try(call, key, plans, room=room, bury=bury)
            except (Outdated, Duplicate) as refused:
                try:
                    why = yield from self._why_refused(call, key, plans, refused, room=room)
                except (LocusMySQLError, StampMoved):
                    yield from self._settle_late(call, key, refused)
                    raise
                if isinstance(why, Reply):
                    yield from self._settle_late(call, key, refused)
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
        steps: list[Statement] = list(self._bury(key)) if bury else []
        results: dict[str, Statement] = {}
        ledger = False
        for place, plan in enumerate(plans):
            if isinstance(plan, Reading):
                results[f"answer{place}"] = plan.statement
                steps.append(plan.statement)
                continue
            lock = self._lock(call, key, plans, plan, first="lock" not in results, checked=not room)
            results["lock"] = lock[0]
            steps += lock
            if plan.settle is None:
                steps += plan.steps
            elif plan.settled_first:
                results[f"answer{place}"] = plan.settle
                steps += [plan.settle, *plan.steps]
            else:
                results[f"answer{place}"] = self.sql.entries.outcome(key.tenant, _token_of(call, place))
                steps += [*plan.steps, plan.settle, results[f"answer{place}"]]
            ledger = ledger or (plan.settle is not None and place == 0)
            if plan.trim is not None:
                results["trim"] = plan.trim
            if plan.counts is not None:
                steps += plan.counts(None if room else _allowed(call))
        if not ledger:
            steps.append(self.sql.entries.settle(key.tenant, call.token))
        if room:
            steps += self._make_room(call, key, results)
        elif any(isinstance(plan, Writing) and plan.recounts for plan in plans):
            steps.append(self.sql.sessions.recount(key))
        came = yield Batch.named(*steps, landed=self.sql.entries.outcome(key.tenant, call.token), **results)
        if came.landed is not None:
            return (yield from self._landed(call, key, plans))
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
        if not relied and any(isinstance(other, Writing) and other.begins for other in plans):
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

    def _landed(self, call: Call, key: SessionKey, plans: list[Reading | Writing]) -> Operation[Reply]:
        """The reply to a call that was carried out before. What it reads, it reads now."""
        outcomes = (
            plan.statement
            if isinstance(plan, Reading)
            else self.sql.entries.outcome(key.tenant, _token_of(call, place))
            for place, plan in enumerate(plans)
        )
        state, *came = yield Batch((self.sql.sessions.state(key), *outcomes), atomic=False)
        answers = tuple(
            plan.told(result.rows)[0]
            if isinstance(plan, Reading)
            else plan.answer(cast("int | None", result.rows[0][0]) if result.rows else None)
            for plan, result in zip(plans, came, strict=True)
        )
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
        names = tuple(name for plan in plans if isinstance(plan, Writing) for name in plan.names)
        task = any(isinstance(command, WriteTask) for command in call.commands)
        asked = (
            entries.outcome(key.tenant, call.token),
            sessions.state(key),
            entries.has(key, json.dumps(names, ensure_ascii=False), task=task),
        )
        ledger, found, has = yield Batch(asked, atomic=False)
        if ledger.rows:
            return (yield from self._landed(call, key, plans))
        if isinstance(refused, Duplicate) and refused.table == self.sql.names["checkpoints"]:
            raise _checkpoint_there(call)
        expired = bool(found.rows and found.rows[0][3])
        there = bool(found.rows) and not expired
        if call.if_stamp is not None and call.if_stamp != (found.rows[0][1] if there else 0):
            raise StampMoved
        begins = any(isinstance(plan, Writing) and plan.begins for plan in plans)
        if not there and not begins:
            return Reply(
                tuple(
                    plan.answer(()) if isinstance(plan, Reading) else of_nothing(command)
                    for command, plan in zip(call.commands, plans, strict=True)
                )
            )
        more_bytes = yield from self._check_commands(call, key)
        if room:
            held = (*found.rows[0][4:8], *has.rows[0]) if there else (0,) * 6
            _raise_if_full(call, plans, tuple(int(cast(int, count)) for count in held), more_bytes)
        return any(isinstance(plan, Writing) and plan.adds for plan in plans), expired

    def _settle_late(self, call: Call, key: SessionKey, refused: Outdated | Duplicate) -> Operation[None]:
        """After a call that was refused, or found nothing to do: have a first try that arrives late do nothing too."""
        if refused.fate_unknown:
            entries = self.sql.entries
            yield Batch((entries.settle(key.tenant, call.token),), entries.outcome(key.tenant, call.token))

    def _check_commands(self, call: Call, key: SessionKey) -> Operation[int]:
        """Raise what a command asks for that cannot be.

        Returns:
            How many bytes more sums have than what was added.
        """
        more_bytes = 0
        written: dict[str, bytes] = {}
        for command in call.commands:
            if isinstance(command, Write):
                written.update((variable.key, variable.value) for variable in command.variables)
            elif isinstance(command, RestoreCheckpoint):
                (found,) = yield Batch.of(self.sql.checkpoints.found(key, command.checkpoint_id))
                if not found.rows:
                    raise no_checkpoint(command.checkpoint_id)
                if not found.rows[0][0]:
                    raise damaged_checkpoint(key.session_id, command.checkpoint_id)
            elif isinstance(command, Increment):
                value = written.get(command.key)
                if value is None:
                    (found,) = yield Batch.of(self.sql.entries.read(key, (command.key,), ""))
                    there = found_among(key, found.rows).get(command.key)
                    value = None if there is None else there.value
                written[command.key] = _sum(value, command)
                more_bytes += len(written[command.key]) - len(str(command.by))
        return more_bytes

    def _bury(self, key: SessionKey) -> tuple[Statement, ...]:
        """Remove a session that has expired, all of it; undone if it has not."""
        sessions = self.sql.sessions
        return (sessions.lock_expired(key), sessions.held(), *sessions.remove(key))

    def _housekeeping(self, key: SessionKey) -> Operation[None]:
        """Now and then: forget some tokens and deleted entries, remove some sessions that have expired.

        When that is, is left to chance, as a process may end after a few writes. The write itself has been carried out
        by then, so a failure is only logged, and another write does what was not done.
        """
        if not one_in(HOUSEKEEPING_EVERY):
            return
        entries = self.sql.entries
        try:
            yield Batch((entries.forget_settled(), entries.forget_removed(key)), atomic=False)
            yield from self.sweep(HOUSEKEEPING_SESSIONS)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("A session was written to, but the housekeeping after it failed: %s.", told(error))


def _allowed(call: Call) -> Allowed:
    return Allowed(call.limits.keys, call.limits.session_bytes, call.limits.scratchpad_entries)


def _token_of(call: Call, place: int) -> bytes:
    """The token of one of a call's commands: the first has that of the call."""
    return call.token if place == 0 else sha256(call.token + place.to_bytes(4)).digest()[:16]


def _is_more(call: Call, plans: list[Reading | Writing]) -> bool:
    """Whether a call writes more than a whole session may hold; checked behind what it writes, then."""
    variables = notes = size_bytes = 0
    for plan in plans:
        if isinstance(plan, Writing):
            more_variables, more_notes, more_bytes = plan.change.begun
            variables, notes, size_bytes = variables + more_variables, notes + more_notes, size_bytes + more_bytes
    limits = call.limits
    return variables > limits.keys or notes > limits.scratchpad_entries or size_bytes > limits.session_bytes


def _reply(call: Call, plans: list[Reading | Writing], came: Results, named: dict[str, Statement]) -> Reply:
    stamp, ttl_us = came.named("lock").last_insert_id, call.ttl_us
    answers: list[object] = []
    for place, (command, plan) in enumerate(zip(call.commands, plans, strict=True)):
        result = came.named(f"answer{place}") if f"answer{place}" in named else Result()
        if isinstance(plan, Reading):
            answer, _, ttl_us = plan.told(result.rows)
            answers.append(answer)
            continue
        answers.append(plan.answer(cast(int, result.rows[0][0]) if result.rows else result.last_insert_id))
        stamp = 0 if isinstance(command, End) else stamp + plan.more_stamps
        if isinstance(command, Touch) and command.ttl_us is not None:
            ttl_us = command.ttl_us
    evicted = came.named("evict").affected if "evict" in named else 0
    return Reply(tuple(answers), stamp, ttl_us, evicted)


def _checkpoint_there(call: Call) -> Exception:
    made = (command.checkpoint_id for command in call.commands if isinstance(command, CreateCheckpoint))
    undone = (command.undo_id for command in call.commands if isinstance(command, RestoreCheckpoint))
    return checkpoint_there(next(itertools.chain(made, undone)))


def _sum(value: bytes | None, command: Increment) -> bytes:
    """What an increment makes of a value.

    Raises:
        InvalidInput: Nothing can be added to it, or not so much.
    """
    try:
        number = int(value or b"0")
    except ValueError:
        raise not_a_whole_number(command.key) from None
    if str(number).encode() != (value or b"0") or not INT_LEAST <= number <= INT_MOST:
        raise not_a_whole_number(command.key)
    if not INT_LEAST <= number + command.by <= INT_MOST:
        raise out_of_range(command.key, command.by)
    return str(number + command.by).encode()


def _raise_if_full(call: Call, plans: list[Reading | Writing], held: tuple[int, ...], more_bytes: int) -> None:
    """Raise if a call does not fit.

    Args:
        call: The call.
        plans: What its commands send.
        held: Notes, bytes and variables of the session, and bytes without any variables; of the variables that the
            call writes, how many are there, and their bytes, with those of the task state if it writes that.
        more_bytes: What it adds beside what its plans say.
    """
    notes, size_bytes, variables, other_bytes, present, present_bytes = held
    limits, session_id = call.limits, call.address.session_id
    writing = [plan for plan in plans if isinstance(plan, Writing) and plan.adds]
    names = {name for plan in writing for name in plan.names}
    if limits.on_full == "evict":  # all others have to go first
        variables, size_bytes, present, present_bytes = 0, other_bytes, 0, min(present_bytes, other_bytes)
        if not any(isinstance(command, WriteTask) for command in call.commands):
            present_bytes = 0
    notes += sum(isinstance(command, Append) for command in call.commands)
    if notes > limits.scratchpad_entries:
        raise CapacityExceeded("max_scratchpad_entries", notes, limits.scratchpad_entries, session_id)
    variables += len(names) - present
    if variables > limits.keys:
        raise CapacityExceeded("max_keys", variables, limits.keys, session_id)
    size_bytes += more_bytes + sum(plan.size_bytes for plan in writing) - present_bytes
    if size_bytes > limits.session_bytes:
        raise CapacityExceeded("max_session_bytes", size_bytes, limits.session_bytes, session_id)
