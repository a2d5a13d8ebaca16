"""Executes calls on MySQL, as generators that do no I/O."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Sequence

from ....config import MySQLConfig
from ....dialect.working.dialect import WorkingDialect
from ....dialect.working.pieces import SessionKey
from ....dialect.working.sessions import StateRow
from ....engine.logs import HOUSEKEEPING, loggable
from ....engine.operation import Batch, Duplicate, Operation, Outdated, Results, fetch
from ....engine.retry import next_page
from ....errors import LocusMySQLError, Unavailable
from ....runtime.sampling import one_in
from ....runtime.sealing import Sealing
from .. import calls
from ..errors import checkpoint_exists, no_checkpoint, of_nothing
from .mysql_batches import Attempt, WriteBatch, remove_if_expired, token_of
from .mysql_known import Known, asked_names, known_of, sum_of
from .mysql_limits import Usage, begins_over_limits, raise_if_full
from .mysql_plans import Plan, Plans, ReadPlan, Target, WritePlan, damaged_checkpoint, found_variables

#: One write in this many is followed by housekeeping.
HOUSEKEEPING_EVERY = 64

#: Maximum number of sessions that housekeeping removes.
HOUSEKEEPING_SESSIONS = 16

#: The number of a forgotten tenant's sessions that one query finds. Each is removed in a transaction of its own.
SESSIONS_AT_ONCE = 500

#: Maximum number of attempts of a write while other processes change the session.
TRIES = 50


class WorkingOperations:
    """Sessions in MySQL.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self.sql = WorkingDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._sealing = Sealing(config.encryption, self.schema.family)
        self._plans = Plans(self.sql, self._sealing)

    def execute(self, call: calls.Call) -> Operation[calls.Reply]:
        """Carry out a call; see `Storage`. One round trip, unless the session is full, or has expired."""
        operation = self._write(call) if call.writes else self._read(call)
        operation.__name__ = call.name  # type: ignore[attr-defined]  # generators have one; slow calls are logged by it
        return operation

    def sweep(self, limit: int = 1_000) -> Operation[int]:
        """Remove expired sessions, each whole, of all tenants; returns their number.

        Args:
            limit: The maximum number of sessions to remove.
        """
        removed = 0
        for found in (yield from fetch(self.sql.sessions.expired(limit))):
            try:
                yield Batch(remove_if_expired(self.sql, SessionKey(found.tenant, found.session_id)))
            except Outdated:  # another process removed it, or created it again
                continue
            removed += 1
        return removed

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Remove all sessions of a tenant, each whole; returns their number, without expired ones.

        Args:
            tenant: The tenant.
        """
        sessions = self.sql.sessions
        removed, last = 0, ""
        while True:
            page = yield from fetch(sessions.of_tenant(tenant, last, SESSIONS_AT_ONCE))
            for found in page:
                key = SessionKey(tenant, found.session_id)
                with contextlib.suppress(Outdated):  # another process, or a batch whose answer was lost, removed it
                    yield Batch((sessions.lock_known(key, found.sid), sessions.held(), *sessions.remove(key)))
                removed += not found.expired
            if len(page) < SESSIONS_AT_ONCE:
                return removed
            last = next_page(last, page[-1].session_id)

    def _read(self, call: calls.Call) -> Operation[calls.Reply]:
        key = SessionKey(*call.address)
        plans = [self._plans.read(command, key) for command in call.commands]
        renewal = (self.sql.sessions.renew(key),) if call.renew else ()
        results = yield Batch((*renewal, *(plan.query for plan in plans)), atomic=len(plans) > 1)
        answers: list[object] = []
        stamp, ttl_us = 0, None
        for plan, result in zip(plans, results[len(renewal) :], strict=True):
            answer, stamp, ttl_us = plan.read(result)
            answers.append(answer)
        if call.if_stamp is not None and call.if_stamp != stamp:
            raise calls.StampMoved
        return calls.Reply(tuple(answers), stamp, ttl_us)

    def _write(self, call: calls.Call) -> Operation[calls.Reply]:
        key = SessionKey(*call.address)
        plans = yield from self._plan(call, key)
        attempt = Attempt(makes_room=begins_over_limits(call, plans), removes_expired=False)
        for _ in range(TRIES):
            try:
                reply = yield from self._try(WriteBatch(self.sql, call, plans, attempt))
            except (Outdated, Duplicate) as refused:
                refusal = _Refusal(self.sql, call, plans, refused, self._sealing)
                reaction = yield from refusal.explain(attempt)
                if isinstance(reaction, calls.Reply):
                    return reaction
                if self._sealing.is_on:
                    plans = yield from self._plan(call, key)
                attempt = reaction
                continue
            if one_in(HOUSEKEEPING_EVERY):
                yield from self._housekeeping(key)
            return reply
        raise Unavailable(
            f"Other processes changed session {key.session_id!r} during each of the {TRIES} attempts of this call. "
            "Nothing was changed. Try again."
        )

    def _plan(self, call: calls.Call, key: SessionKey) -> Operation[list[Plan]]:
        """Return the plans of a call's commands. One round trip if they need the content of an encrypted session."""
        known = Known()
        names = asked_names(call) if self._sealing.is_on else None
        if names is not None:
            known = known_of(key, self._sealing, (yield from fetch(self.sql.entries.held(key, sorted(names)))))
        return [
            self._plans.of(command, Target(key, token_of(call, index), call.limits, known))
            for index, command in enumerate(call.commands)
        ]

    def _try(self, write: WriteBatch) -> Operation[calls.Reply]:
        """Send a call that writes."""
        results: Results = yield write.batch
        if results.earlier_attempt is not None:
            return (yield from _reply_of_earlier_try(self.sql, write.call, write.plans))
        reply = write.reply(results)
        if write.trimmed(results):
            yield Batch.of(self.sql.sessions.hold(write.key), self.sql.checkpoints.prune(write.key))
        return reply

    def _housekeeping(self, key: SessionKey) -> Operation[None]:
        """Forget tokens and deleted entries, and remove expired sessions.

        The write itself is complete by then, so a failure is only logged, and a later write repeats the housekeeping.
        """
        try:
            forget = (self.sql.ledger.forget_old(), self.sql.entries.forget_removed(key))
            yield Batch(forget, atomic=False)
            yield from self.sweep(HOUSEKEEPING_SESSIONS)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("A session was written to, but the housekeeping after it failed: %s.", loggable(error))


class _Refusal:
    """A batch of a call that the server undid.

    Args:
        sql: The statements.
        call: The call.
        plans: The plans of its commands.
        refused: Why the server undid the batch.
        sealing: Encrypts values.
    """

    def __init__(
        self,
        sql: WorkingDialect,
        call: calls.Call,
        plans: list[Plan],
        refused: Outdated | Duplicate,
        sealing: Sealing,
    ) -> None:
        self.sql, self.call, self.plans, self.refused, self._sealing = sql, call, plans, refused, sealing
        self.key = SessionKey(*call.address)

    def explain(self, attempt: Attempt) -> Operation[calls.Reply | Attempt]:
        """Find out why the batch was undone.

        Args:
            attempt: What the batch did first. If it made room, the session is full.

        Returns:
            The reply if nothing is left to do, else what the next attempt does first.
        """
        call, plans = self.call, self.plans
        writes = [plan for plan in plans if isinstance(plan, WritePlan)]
        names = [name for plan in writes if plan.addition for name in plan.addition.names]
        task = any(isinstance(command, calls.WriteTask) for command in call.commands)
        token = self.sql.ledger.find(self.key.tenant, call.token)
        state = self.sql.sessions.state(self.key)
        present = self.sql.entries.has(self.key, json.dumps(names, ensure_ascii=False), task=task)
        results = yield Batch((token, state, present), atomic=False)
        if results.row(token):
            return (yield from _reply_of_earlier_try(self.sql, call, plans))
        if isinstance(self.refused, Duplicate) and self.refused.table == self.sql.names["checkpoints"]:
            raise self._checkpoint_exists()
        found = results.row(state)
        expired = found is not None and bool(found.expired)
        session = None if expired else found
        if call.if_stamp is not None and call.if_stamp != (session.stamp if session else 0):
            raise calls.StampMoved
        if session is None and not any(plan.begins for plan in writes):
            return self._nothing_to_do()
        more_bytes = yield from self._check_commands()
        if attempt.makes_room:
            (held,) = results.rows(present)
            raise_if_full(call, writes, _usage(session, int(held.variables), int(held.size_bytes)), more_bytes)
        return Attempt(any(plan.addition is not None for plan in writes), expired)

    def _nothing_to_do(self) -> calls.Reply:
        """Return the reply of a call that finds no session and creates none."""
        return calls.Reply(
            tuple(
                plan.result(()) if isinstance(plan, ReadPlan) else of_nothing(command)
                for command, plan in zip(self.call.commands, self.plans, strict=True)
            )
        )

    def _checkpoint_exists(self) -> Exception:
        commands = self.call.commands
        made = (command.checkpoint_id for command in commands if isinstance(command, calls.CreateCheckpoint))
        undone = (command.undo_id for command in commands if isinstance(command, calls.RestoreCheckpoint))
        return checkpoint_exists(next(itertools.chain(made, undone)))

    def _check_commands(self) -> Operation[int]:
        """Check that all commands can be executed; return how much longer the sums are than the added numbers."""
        more_bytes = 0
        written: dict[str, bytes] = {}
        for command in self.call.commands:
            match command:
                case calls.Write(variables):
                    written.update((variable.key, variable.value) for variable in variables)
                case calls.RestoreCheckpoint(checkpoint_id):
                    yield from self._check_checkpoint(checkpoint_id)
                case calls.Increment(key, by) if not self._sealing.is_on:
                    value = written[key] if key in written else (yield from self._value(key))
                    written[key] = sum_of(value, command)
                    more_bytes += len(written[key]) - len(str(by))
        return more_bytes

    def _check_checkpoint(self, checkpoint_id: str) -> Operation[None]:
        found = yield from fetch(self.sql.checkpoints.found(self.key, checkpoint_id))
        if not found:
            raise no_checkpoint(checkpoint_id)
        if not found[0].sound:
            raise damaged_checkpoint(self.key.session_id, checkpoint_id)

    def _value(self, key: str) -> Operation[bytes | None]:
        rows = yield from fetch(self.sql.entries.read(self.key, (key,), ""))
        variable = found_variables(self.key, self._sealing, rows).get(key)
        return None if variable is None else variable.value


def _reply_of_earlier_try(sql: WorkingDialect, call: calls.Call, plans: Sequence[Plan]) -> Operation[calls.Reply]:
    """Return the reply to a call that an earlier attempt executed. Commands that read are executed now."""
    state = sql.sessions.state(SessionKey(*call.address))
    asked = [
        plan.query if isinstance(plan, ReadPlan) else sql.ledger.find(call.address.tenant, token_of(call, index))
        for index, plan in enumerate(plans)
    ]
    results = yield Batch((state, *asked), atomic=False)
    answers: list[object] = []
    for plan, query in zip(plans, asked, strict=True):
        if isinstance(plan, ReadPlan):
            answers.append(plan.read(results.of(query))[0])
        elif plan.outcome is None:
            answers.append(plan.result)
        else:
            recorded = results.row(query)
            answers.append(plan.outcome.result(recorded.outcome or 0 if recorded else 0))
    session = results.row(state)
    return calls.Reply(tuple(answers), *((0, None) if session is None else (session.stamp, session.ttl_us)))


def _usage(session: StateRow | None, present: int, present_bytes: int) -> Usage:
    """Return the usage of a session; None is a session that does not exist yet."""
    if session is None:
        return Usage()
    size_bytes, variables, other_bytes = map(int, (session.size_bytes, session.variables, session.other_bytes))
    return Usage(session.notes, size_bytes, variables, other_bytes, present, present_bytes)
