"""The batch of a call that writes: its statements in order, and the reply from their results. No I/O."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from ....dialect import Statement
from ....dialect.statement import Query
from ....dialect.working.dialect import WorkingDialect
from ....dialect.working.pieces import SessionKey
from ....dialect.working.sessions import Allowed
from ....engine.operation import Batch, Results
from .. import calls
from .mysql_plans import Plan, ReadPlan, WritePlan


class Attempt(NamedTuple):
    """What an attempt of a call does before its commands.

    Args:
        makes_room: Whether room is made before the limits are checked.
        removes_expired: Whether the session has expired and is removed.
    """

    makes_room: bool
    removes_expired: bool


class WriteBatch:
    """One attempt of a call that writes.

    Args:
        sql: The statements.
        call: The call.
        plans: The plans of its commands.
        attempt: What is done before the commands.
    """

    def __init__(self, sql: WorkingDialect, call: calls.Call, plans: Sequence[Plan], attempt: Attempt) -> None:
        self.sql, self.call, self.plans, self.makes_room = sql, call, plans, attempt.makes_room
        self.key = SessionKey(*call.address)
        self._steps: list[Statement] = []
        self._locked: Statement | None = None  # the last lock, whose last insert id is the session's stamp
        self._results: list[Statement | None] = []  # for each command, the statement with its result
        self._evict: Statement | None = None
        if attempt.removes_expired:
            self._steps += remove_if_expired(sql, self.key)
        for index, plan in enumerate(plans):
            if isinstance(plan, ReadPlan):
                self._add(plan.query)
            else:
                self._add_write(plan, index)
        first = plans[0]
        if isinstance(first, ReadPlan) or first.outcome is None:
            self._steps.append(sql.ledger.record(self.key.tenant, call.token))
        self._finish()

    @property
    def batch(self) -> Batch:
        """Return the statements as one transaction, which is not repeated if its token is found."""
        return Batch.of(
            *self._steps,
            outcome_query=self.sql.ledger.find(self.key.tenant, self.call.token),
            lock=(self.sql.names["sessions"], *self.key),
        )

    def trimmed(self, results: Results) -> bool:
        """Return whether checkpoints were deleted, so that content that only they held must be pruned."""
        trims = [plan.checkpoint.trim for plan in self.plans if isinstance(plan, WritePlan) and plan.checkpoint]
        return bool(trims) and results.of(trims[-1]).affected > 0

    def reply(self, results: Results) -> calls.Reply:
        """Return the reply to the call from the results of the batch."""
        stamp = 0 if self._locked is None else results.of(self._locked).last_insert_id
        ttl_us = self.call.ttl_us
        answers: list[object] = []
        for command, plan, statement in zip(self.call.commands, self.plans, self._results, strict=True):
            if isinstance(plan, ReadPlan):
                answer, _, ttl_us = plan.read(results.of(plan.query))
                answers.append(answer)
                continue
            answers.append(_result(plan, statement, results))
            if plan.checkpoint is not None and plan.checkpoint.restores:
                stamp += 1
            match command:
                case calls.End():
                    stamp = 0
                case calls.Touch(int(own_ttl_us)):
                    ttl_us = own_ttl_us
        evicted = 0 if self._evict is None else results.of(self._evict).affected
        return calls.Reply(tuple(answers), stamp, ttl_us, evicted)

    def _add(self, statement: Statement) -> None:
        """Add a statement that returns a command's result."""
        self._steps.append(statement)
        self._results.append(statement)

    def _add_write(self, plan: WritePlan, index: int) -> None:
        lock = self._lock(plan)
        self._locked = lock[0]
        self._steps += lock
        outcome = plan.outcome
        if outcome is None:
            self._results.append(None)
            self._steps += plan.steps
        elif outcome.first:
            self._add(outcome.record)
            self._steps += plan.steps
        else:
            self._steps += [*plan.steps, outcome.record]
            self._add(self.sql.ledger.find(self.key.tenant, token_of(self.call, index)))
        if plan.addition is not None and plan.addition.count is not None:
            self._steps.append(plan.addition.count(None if self.makes_room else allowed_by(self.call)))

    def _lock(self, plan: WritePlan) -> tuple[Statement, ...]:
        """Return the statements that lock the session for a command, assign a stamp and change the counts."""
        sessions, call, key = self.sql.sessions, self.call, self.key
        counted_here = plan.addition is not None and plan.addition.count is None
        allowed = allowed_by(call) if counted_here and not self.makes_room else None
        if self._locked is not None:
            return (sessions.lock_again(key, plan.change, allowed),)
        used = len(call.used)
        if not call.if_stamp and any(isinstance(other, WritePlan) and other.begins for other in self.plans):
            lifetime_us = None if call.ttl_us is None else calls.lifetime_us(call.ttl_us)
            sid = os.urandom(16)
            begin = sessions.begin(
                key, sid, call.ttl_us, lifetime_us, plan.change, used=used, relied=call.if_stamp, allowed=allowed
            )
            lock: tuple[Statement, ...] = (begin,)
        else:
            lock = sessions.lock(key, plan.change, used=used, relied=call.if_stamp, allowed=allowed)
        if call.used:
            lock = (*lock, self.sql.entries.use(key, call.used, json.dumps(call.used, ensure_ascii=False)))
        return lock

    def _finish(self) -> None:
        """Make room, or count the session again, if necessary."""
        allowed = allowed_by(self.call)
        if self.makes_room:
            self._steps.append(self.sql.entries.remove_expired(self.key))
            if self.call.limits.on_full == "evict":
                self._evict = self.sql.entries.evict(self.key, allowed)
                self._steps.append(self._evict)
            self._steps.append(self.sql.sessions.recount(self.key, allowed))
        elif any(isinstance(plan, WritePlan) and plan.checkpoint and plan.checkpoint.restores for plan in self.plans):
            self._steps.append(self.sql.sessions.recount(self.key))


def _result(plan: WritePlan, statement: Statement | None, results: Results) -> object:
    """Return the result of a command that wrote."""
    if plan.outcome is None or statement is None:
        return plan.result
    if isinstance(statement, Query):
        (recorded,) = results.rows(statement)
        return plan.outcome.result(recorded.outcome)
    return plan.outcome.result(results.of(statement).last_insert_id)


def remove_if_expired(sql: WorkingDialect, key: SessionKey) -> tuple[Statement, ...]:
    """Return the statements that remove a session if it has expired; otherwise they undo their batch."""
    return (sql.sessions.lock_expired(key), sql.sessions.held(), *sql.sessions.remove(key))


def token_of(call: calls.Call, index: int) -> bytes:
    """Return the token of one of a call's commands. The first one has the token of the call."""
    return call.token if index == 0 else sha256(call.token + index.to_bytes(4)).digest()[:16]


def allowed_by(call: calls.Call) -> Allowed:
    """Return the limits of a call that its statements check."""
    return Allowed(call.limits.keys, call.limits.session_bytes, call.limits.scratchpad_entries)
