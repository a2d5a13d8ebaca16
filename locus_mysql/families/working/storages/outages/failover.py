"""Chooses the storage that serves a call, and replays queued writes, as generators that do no I/O.

They yield the steps of `steps`; `fallback` carries these out, awaited or blocking.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from typing import Any, cast

from .....engine.logs import WORKING, loggable
from .....errors import CapacityExceeded, LocusMySQLError, NotFound, Unavailable, UsageError
from ... import calls
from ..interface import OutageStatus
from .breaker import Admission, Breaker
from .journal import Journal
from .mirror import Mirror
from .replay import Replay, now_us
from .seeding import Seeding
from .session_state import SessionState, SessionStates
from .steps import OUTAGES, Acquire, Execute, ForgetTenant, Settings, StepGenerator


class Failover:
    """Serves calls from the primary or, while it is unavailable, from the fallback.

    Args:
        settings: The options.
        breaker: Decides when the primary is called.
        mirror: The copy of the data that calls wrote and read.
        states: The sessions in use.
    """

    def __init__(self, settings: Settings, breaker: Breaker, mirror: Mirror, states: SessionStates) -> None:
        self.settings, self.breaker, self.mirror, self.states = settings, breaker, mirror, states
        self._lock = threading.Lock()  # guards the states of sessions
        self._replaying = Replay(settings, mirror, states)
        self._seeding = Seeding(mirror, states, self._lock)

    def serve(self, call: calls.Call) -> StepGenerator[calls.Reply]:
        """Execute a call."""
        state = self.states.enter(call.address)
        try:
            return (yield from self._serve(state, call))
        finally:
            self.states.leave(state)

    def flush(self) -> StepGenerator[int]:
        """Replay all queued writes, as far as the primary answers; returns the number of those still queued."""
        for state in list(self.states.waiting.values()):
            if not (yield from self._admitted(state.address, at_once=True)):
                break
            yield Acquire(state.lock)
            try:
                if state.offline and not (yield from self._replay(state)):
                    break
            finally:
                state.lock.release()
        return self.states.entries

    def forget_tenant(self, tenant: str) -> StepGenerator[int]:
        """Remove all sessions of a tenant, also from this process's memory; returns how many the primary had."""
        for state in self.states.of_tenant(tenant):
            yield Acquire(state.lock)
            try:
                state.forget()
                self.states.count(state)
            finally:
                state.lock.release()
        self.mirror.forget_tenant(tenant)
        if self.settings.has_fallback:
            yield ForgetTenant("fallback", tenant)
        try:
            removed: int = yield ForgetTenant("primary", tenant)
        except OUTAGES as error:
            self._failed(self.breaker.outages, error)
            raise
        return removed

    def status(self, address: calls.Address) -> OutageStatus:
        """Return whether a session is degraded, and its queued and lost writes."""
        state = self.states.get(address)
        if state is None:
            return OutageStatus(self.breaker.open)
        return OutageStatus(self.breaker.open or state.offline, state.journal.entries, tuple(state.lost))

    def _serve(self, state: SessionState, call: calls.Call) -> StepGenerator[calls.Reply]:
        while True:
            admitted = yield from self._admitted(call.address)
            failure: Exception | None = None
            if admitted and not state.offline:
                try:
                    return (yield from self._on_primary(state, call))
                except OUTAGES as error:
                    if not self.settings.has_fallback:
                        if isinstance(error, LocusMySQLError):
                            raise
                        raise self._not_answered(error) from error
                    failure = error
            if not self.settings.has_fallback:
                raise Unavailable(
                    "The storage of this session did not answer recently, and is not tried again yet. Nothing was "
                    "changed. Try again later."
                )
            yield Acquire(state.lock)
            try:
                online = failure is None and not self.breaker.open
                if online and (not state.offline or (yield from self._replay(state))):
                    continue
                return (yield from self._on_fallback(state, call, failure))
            finally:
                state.lock.release()

    def _not_answered(self, error: Exception) -> Unavailable:
        """Return the error for a call that the primary did not answer, if there is no fallback."""
        return Unavailable(
            f"The storage of this session did not answer ({loggable(error)}; timeout_s is "
            f"{self.settings.timeout_s:g}). Whether the call was carried out is not known. Try again later."
        )

    def _admitted(self, address: calls.Address, *, at_once: bool = False) -> StepGenerator[bool]:
        """Return whether the primary may be called. One call at a time probes a primary that did not answer."""
        admission = self.breaker.admit(at_once=at_once)
        if admission is not Admission.PROBE:
            return admission is Admission.GO
        answered = None
        try:
            probe = calls.Call("probe", address, (calls.Inspect(()),))
            yield Execute("primary", probe, self.settings.timeout_s)
            answered = True
        except OUTAGES:
            answered = False
        finally:
            if answered is None:
                self.breaker.given_up()
            else:
                self.breaker.probed(answered)
        if answered:
            WORKING.info("the primary storage of working memory answers again; %d writes wait", self.states.entries)
        return answered

    def _on_primary(self, state: SessionState, call: calls.Call) -> StepGenerator[calls.Reply]:
        outages = self.breaker.outages
        with self._lock:
            generation = state.learned.begin()
        try:
            reply: calls.Reply = yield Execute("primary", call, self.settings.timeout_s)
            updates, offline = self._learn(state, call, reply)
        except OUTAGES as error:
            self._failed(outages, error)
            raise
        finally:
            with self._lock:
                state.learned.end(generation)
        if offline and updates:
            yield from self._update_fallback(state, call, updates)
        yield from self._replay_another(state)
        return reply

    def _learn(
        self, state: SessionState, call: calls.Call, reply: calls.Reply
    ) -> tuple[list[calls.Command[Any]], bool]:
        """Learn from a reply of the primary: returns the updates, and whether the fallback was seeded without them."""
        with self._lock:
            gone = not reply.stamp and not state.learned.overlapping
            state.answered_us = time.time_ns() // 1_000
            state.own.seen = 0 if gone else max(state.own.seen, reply.stamp)
            if not self.settings.has_fallback:
                return [], False
            updates = self.mirror.learn(call, reply, lambda name: state.learned.later(reply.stamp, name))
            all_notes = any(isinstance(command, calls.ReadNotes) and command.last is None for command in call.commands)
            state.note_learned(reply.stamp, updates, all_notes=all_notes)
            return updates, state.offline

    def _failed(self, outages: int, error: Exception) -> None:
        if self.breaker.failed(outages):
            WORKING.warning(
                "the primary storage of working memory does not answer (%s); %s",
                loggable(error),
                "the fallback serves meanwhile" if self.settings.has_fallback else "calls are refused meanwhile",
            )

    def _on_fallback(
        self, state: SessionState, call: calls.Call, failure: Exception | None
    ) -> StepGenerator[calls.Reply]:
        """Carry out a call on the fallback and queue its writes. The caller holds the session's lock.

        Args:
            state: The session.
            call: The call.
            failure: If the call was sent to the primary before, the error: it may have been carried out there.
        """
        if not state.offline:
            yield from self._seeding.go_offline(state, call)
        try:
            self._check(state, call)
            reply: calls.Reply = yield Execute("fallback", call)
        except UsageError as refused:
            if failure is not None and call.writes:
                raise Unavailable(
                    "The session's storage did not answer, and the fallback refuses the call, so whether it was "
                    f"carried out is not known. The fallback says: {refused}"
                ) from failure
            if isinstance(refused, NotFound) and not state.answered_us and not _restores_known(state, call):
                raise _only_on_primary(call) from None
            raise
        except calls.StampMoved:
            if failure is not None:
                state.own.may_have_written(call.commands)
            raise
        if call.writes:
            yield from self._queue(state, call, reply, uncertain=failure is not None)
        if failure is not None and _comparison_failed(call, reply):
            raise Unavailable(
                "The session's storage did not answer. According to this process's copy the comparison fails, but it "
                "may have succeeded in the storage, so it is not known whether the call was carried out. Read the "
                "variable."
            ) from failure
        return reply

    def _queue(
        self, state: SessionState, call: calls.Call, reply: calls.Reply, *, uncertain: bool
    ) -> StepGenerator[None]:
        state.last_write = call
        state.fallback_stamp = reply.stamp
        for command in call.commands:
            match command:
                case calls.CreateCheckpoint(checkpoint_id) | calls.RestoreCheckpoint(undo_id=checkpoint_id):
                    state.offline_checkpoints.add(checkpoint_id)
        record = state.journal.record_uncertain if uncertain else state.journal.record
        record(call, reply, now_us())
        self.states.count(state)
        with self._lock:
            self.mirror.learn(call, reply, lambda _: False)
        for command, result in zip(call.commands, reply.results, strict=True):
            if isinstance(command, calls.CompareAndSet) and result:  # the variable keeps the time it has left
                key = command.variable.key
                with contextlib.suppress(*OUTAGES):
                    read: calls.Reply = yield Execute(
                        "fallback", calls.Call("ttl", call.address, (calls.Read((key,)),))
                    )
                    left = cast("dict[str, calls.Found]", read.results[0]).get(key)
                    state.journal.set_ttl(key, None if left is None else left.left_us, now_us())

    def _check(self, state: SessionState, call: calls.Call) -> None:
        """Check that the writes of a call can be queued, and need no data that only the primary has."""
        if not call.writes:
            return
        if state.own.seen and not _restores_known(state, call):
            raise _only_on_primary(call)
        settings, states = self.settings, self.states
        entries, size_bytes = _size(call)
        for limit, used, allowed in (
            ("max_pending", states.entries + entries, settings.max_pending),
            ("max_pending_bytes", states.size_bytes + size_bytes, settings.max_pending_bytes),
        ):
            if used > allowed:
                raise CapacityExceeded(limit, used, allowed, call.address.session_id)

    def _update_fallback(
        self, state: SessionState, call: calls.Call, updates: list[calls.Command[Any]]
    ) -> StepGenerator[None]:
        """Send updates to the fallback, which serves the session by now, after a late answer of the primary."""
        yield Acquire(state.lock)
        try:
            commands = [kept for update in updates if (kept := _not_superseded(update, state.journal)) is not None]
            if state.offline and commands:
                with contextlib.suppress(*OUTAGES):
                    state.fallback_stamp = yield from self._seeding.send(call, commands)
        finally:
            state.lock.release()

    def _replay(self, state: SessionState) -> StepGenerator[bool]:
        """Write the queued writes; returns whether all are written. The caller holds the session's lock."""
        outages = self.breaker.outages
        return self._replaying.replay(state, lambda error: self._failed(outages, error))

    def _replay_another(self, state: SessionState) -> StepGenerator[None]:
        """Replay another session, which may have no further calls."""
        other = self.states.next_waiting()
        if other is None or other is state or not other.lock.acquire():
            return
        try:
            with contextlib.suppress(LocusMySQLError):  # raised again where that session is used
                if other.offline:
                    yield from self._replay(other)
        finally:
            other.lock.release()


def _comparison_failed(call: calls.Call, reply: calls.Reply) -> bool:
    results = zip(call.commands, reply.results, strict=True)
    return any(isinstance(command, calls.CompareAndSet) and not result for command, result in results)


def _restored(call: calls.Call) -> set[str]:
    """The checkpoints that a call restores."""
    return {command.checkpoint_id for command in call.commands if isinstance(command, calls.RestoreCheckpoint)}


def _restores_known(state: SessionState, call: calls.Call) -> bool:
    """Return whether the fallback has all checkpoints that a call restores."""
    return _restored(call) <= state.offline_checkpoints


def _only_on_primary(call: calls.Call) -> Unavailable:
    return Unavailable(
        f"Checkpoint {', '.join(map(repr, _restored(call)))} was not created since the session's storage became "
        "unavailable; it can be restored when the storage is available again. Try again later."
    )


def _size(call: calls.Call) -> tuple[int, int]:
    """The largest number of journal entries that a call makes, and their approximate bytes."""
    entries = size_bytes = 0
    for command in call.commands:
        match command:
            case calls.Write(variables):
                entries += len(variables)
                size_bytes += sum(variable.size_bytes for variable in variables)
            case calls.Remove(keys):
                entries += len(keys)
            case calls.Append(value) | calls.WriteTask(value):
                entries += 1
                size_bytes += len(value or b"")
            case _:
                entries += 1
    return entries, size_bytes


def _not_superseded(update: calls.Command[Any], journal: Journal) -> calls.Command[Any] | None:
    """The part of an update that no queued write supersedes."""
    waiting, kinds = journal.keys, journal.kinds
    match update:
        case calls.Write(variables):
            left = tuple(variable for variable in variables if variable.key not in waiting)
            return replace(update, variables=left) if left else None
        case calls.Remove(keys):
            kept = tuple(key for key in keys if key not in waiting)
            return calls.Remove(kept) if kept else None
        case calls.WriteTask():
            return None if calls.WriteTask in kinds else update
        case calls.ClearNotes():
            return None if kinds & {calls.Append, calls.ClearNotes} else update
        case calls.End():
            return None if kinds else update
    return update
