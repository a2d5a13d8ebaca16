"""Chooses the storage that serves a call: `Failover`. Its generators yield the steps that `fallback` carries out."""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from ....engine.logs import loggable
from ....errors import LocusMySQLError, NotFound, Unavailable, UsageError
from .. import calls
from .interface import OutageStatus
from .queued import Mirror, Part, Queued, SessionState, now_us, shown, single
from .replaying import OUTAGES, Ask, Breaker, Replayer, Settings, StepGenerator


class Failover:
    """Serves calls from the primary or, while it is unavailable, from the fallback.

    Args:
        settings: The options.
        breaker: Decides when the primary is called.
        mirror: The copy of the data that calls wrote and read.
        max_sessions: The number of sessions whose states are kept, besides those with queued writes.
    """

    def __init__(self, settings: Settings, breaker: Breaker, mirror: Mirror, max_sessions: int) -> None:
        self.settings, self.breaker, self.mirror = settings, breaker, mirror
        self.replayer = Replayer(settings, breaker, mirror)
        self._max_sessions = max_sessions
        self._states: OrderedDict[calls.Address, SessionState] = OrderedDict()

    def execute(self, call: calls.Call) -> StepGenerator[calls.Reply]:
        """Execute a call."""
        state = self._enter(call.address)
        try:
            return (yield from self._serve(state, replace(call, stamped=True) if call.writes else call))
        finally:
            with self.replayer.lock:
                state.users -= 1

    def sweep(self, limit: int) -> StepGenerator[int]:
        """Remove expired sessions from the primary, unless it is unavailable; returns their number."""
        if self.settings.has_fallback:
            yield Ask("fallback", limit, method="sweep")
        removed: int = 0 if self.breaker.open else (yield Ask("primary", limit, method="sweep"))
        return removed

    def forget_tenant(self, tenant: str) -> StepGenerator[int]:
        """Remove all sessions of a tenant, also from this process's memory; returns how many the primary had."""
        with self.replayer.lock:
            states = [state for address, state in self._states.items() if address.tenant == tenant]
        for state in states:
            yield state.lock
            try:
                self.replayer.drop(state, state.parts)
                self.replayer.go_online(state)
                state.seen = state.answered_us = 0
            finally:
                state.lock.release()
        self.mirror.forget_tenant(tenant)
        if self.settings.has_fallback:
            yield Ask("fallback", tenant, method="forget_tenant")
        try:
            removed: int = yield Ask("primary", tenant, method="forget_tenant")
        except OUTAGES as error:
            self.replayer.failed(self.breaker.outages, error)
            raise
        return removed

    def status(self, address: calls.Address) -> OutageStatus:
        """Return whether a session is degraded, and its queued and lost writes."""
        with self.replayer.lock:
            state = self._states.get(address)
        if state is None:
            return OutageStatus(self.breaker.open)
        return OutageStatus(self.breaker.open or state.offline, state.entries, tuple(state.lost))

    def _enter(self, address: calls.Address) -> SessionState:
        with self.replayer.lock:
            state = self._states.get(address)
            if state is None:
                state = self._states[address] = SessionState(address)
            state.users += 1
            self._states.move_to_end(address)
            if len(self._states) > self._max_sessions:
                unused = (one for one in self._states.values() if not (one.users or one.offline))
                if (oldest := next(unused, None)) is not None:
                    del self._states[oldest.address]
            return state

    def _serve(self, state: SessionState, call: calls.Call) -> StepGenerator[calls.Reply]:
        while True:
            admitted = yield from self.replayer.admitted(call.address)
            failure: Exception | None = None
            made_us = self.replayer.primary_us(state)
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
            yield state.lock
            try:
                online = failure is None and not self.breaker.open
                if online and (not state.offline or (yield from self.replayer.replay(state))):
                    continue
                return (yield from self._on_fallback(state, call, failure, made_us))
            finally:
                state.lock.release()

    def _not_answered(self, error: Exception) -> Unavailable:
        """Return the error for a call that the primary did not answer, if there is no fallback."""
        return Unavailable(
            f"The storage of this session did not answer ({loggable(error)}; timeout_s is "
            f"{self.settings.timeout_s:g}). Whether the call was carried out is not known. Try again later."
        )

    # The primary

    def _on_primary(self, state: SessionState, call: calls.Call) -> StepGenerator[calls.Reply]:
        outages, sent_us = self.breaker.outages, time.time_ns() // 1_000
        try:
            reply: calls.Reply = yield Ask("primary", call, self.settings.timeout_s)
        except OUTAGES as error:
            self.replayer.failed(outages, error)
            raise
        state.answered_us = time.time_ns() // 1_000
        state.seen = max(state.seen, reply.stamp) if reply.stamp else 0
        if call.writes and reply.stamp:
            self.replayer.learn_clock(reply.stamp, sent_us, state.answered_us)
        if self.settings.has_fallback:
            if _restored(call):
                state.shown_since = reply.stamp
            if reply.stamp >= state.shown_since or not reply.stamp:
                self.mirror.learn(call, reply, reply.stamp)
            if state.offline and call.writes:
                yield from self._update_fallback(state, call, reply)
        yield from self.replayer.replay_another(state)
        return reply

    def _update_fallback(self, state: SessionState, call: calls.Call, reply: calls.Reply) -> StepGenerator[None]:
        """Send the writes of a call to the fallback, which serves the session by now, after a late answer."""
        results = zip(call.commands, reply.results, strict=True)
        written = [pair for pair in results if not (pair[0].reads or isinstance(pair[0], calls.RestoreCheckpoint))]
        commands = list[calls.Command[Any]]()
        for command, result in written:
            commands += single(command) if isinstance(command, calls.Replayed) else shown(command, result)
        yield state.lock
        try:
            if state.offline and commands:
                with contextlib.suppress(*OUTAGES):
                    yield from self._on_fallback_if_older(state, call, commands, state.seeded_stamp)
        finally:
            state.lock.release()

    # The fallback

    def _on_fallback(
        self, state: SessionState, call: calls.Call, failure: Exception | None, made_us: int
    ) -> StepGenerator[calls.Reply]:
        """Carry out a call on the fallback and queue its writes. The caller holds the session's lock.

        Args:
            state: The session.
            call: The call.
            failure: If the call was sent to the primary before, the error: it may have been carried out there.
            made_us: When it was made, by the clock of the primary.
        """
        uncertain = failure is not None and call.writes
        try:
            if not state.offline:
                yield from self._go_offline(state, call)
            self._check(state, call)
            reply: calls.Reply = yield Ask("fallback", call)
        except UsageError as refused:
            if uncertain:
                self.replayer.burn(state, call, made_us)
                raise Unavailable(
                    "The session's storage did not answer, and the fallback refuses the call, so whether it was "
                    f"carried out is not known. The fallback says: {refused}"
                ) from failure
            if isinstance(refused, NotFound) and not state.answered_us and not _restored(call) <= state.checkpoints:
                raise _only_on_primary(call) from None
            raise
        except calls.StampMoved:
            if uncertain:
                self.replayer.burn(state, call, made_us)
            raise
        if call.writes:
            self._queue(state, call, reply, made_us if uncertain else 0)
        if uncertain and _comparison_failed(call, reply):
            raise Unavailable(
                "The session's storage did not answer. According to this process's copy the comparison fails, but it "
                "may have succeeded in the storage, so it is not known whether the call was carried out. Read the "
                "variable."
            ) from failure
        return reply

    def _go_offline(self, state: SessionState, call: calls.Call) -> StepGenerator[None]:
        """Write what was seen of the session to the fallback, except where that has something newer."""
        content = self.mirror.content(state.address, self.replayer.primary_us(state))
        if state.answered_us:
            content = [calls.Clear(), calls.ClearNotes(), *content]
            yield from self._on_fallback_if_older(state, call, content, state.answered_us)
        with self.replayer.lock:
            state.offline = True
            self.replayer.offline[state.address] = state
        state.loss_reported = False

    def _on_fallback_if_older(
        self, state: SessionState, call: calls.Call, commands: list[calls.Command[Any]], at_us: int
    ) -> StepGenerator[None]:
        """Carry out commands on the fallback, except where it has something newer."""
        conditional = tuple(calls.Replayed(command, at_us, at_us + 1) for command in commands)
        for start in range(0, len(conditional), 1_000):
            some = conditional[start : start + 1_000]
            asked = replace(
                call, name="seed", commands=some, limits=calls.Limits(), used=(), token=os.urandom(16), if_stamp=None
            )
            reply: calls.Reply = yield Ask("fallback", asked)
            if reply.stamp:
                state.seeded_stamp = state.fallback_stamp = reply.stamp

    def _check(self, state: SessionState, call: calls.Call) -> None:
        """Check that the writes of a call can be queued, and need no data that only the primary has."""
        if not call.writes:
            return
        if state.seen and not _restored(call) <= state.checkpoints:
            raise _only_on_primary(call)
        self.replayer.check(call)

    def _queue(self, state: SessionState, call: calls.Call, reply: calls.Reply, sent_at_us: int) -> None:
        """Queue the writes of a call that the fallback carried out.

        Args:
            state: The session.
            call: The call.
            reply: The fallback's reply.
            sent_at_us: When the call was sent to the primary, which may have carried it out; 0: it was not.
        """
        state.last_write, state.fallback_stamp = call, reply.stamp
        at_us, made_us = sent_at_us or self.replayer.primary_us(state), now_us()
        entries: list[Queued] = []
        for command, result in zip(call.commands, reply.results, strict=True):
            match command:
                case calls.CreateCheckpoint(checkpoint_id) | calls.RestoreCheckpoint(undo_id=checkpoint_id):
                    state.checkpoints.add(checkpoint_id)
                case calls.CompareAndSet() | calls.Replayed() if not result:
                    continue
            entries += [Queued(one, at_us, made_us) for one in single(command)]
        self.mirror.learn(call, reply, self.replayer.primary_us(state))
        if not entries and not sent_at_us:
            return
        if any(isinstance(entry.command, calls.End) for entry in entries):
            self.replayer.drop(state, [part for part in state.parts if not part.sent_at_us])
        if sent_at_us:
            if not entries:  # a comparison that failed in the fallback must not succeed later
                self.replayer.burn(state, call, sent_at_us)
                return
            self.replayer.add(state, Part(call.token, entries, sent_at_us, now_us()))
            return
        for entry in entries:
            self.replayer.append(state, entry)


def _comparison_failed(call: calls.Call, reply: calls.Reply) -> bool:
    results = zip(call.commands, reply.results, strict=True)
    return any(isinstance(command, calls.CompareAndSet) and not result for command, result in results)


def _restored(call: calls.Call) -> set[str]:
    """The checkpoints that a call restores."""
    return {command.checkpoint_id for command in call.commands if isinstance(command, calls.RestoreCheckpoint)}


def _only_on_primary(call: calls.Call) -> Unavailable:
    return Unavailable(
        f"Checkpoint {', '.join(map(repr, _restored(call)))} was not created since the session's storage became "
        "unavailable; it can be restored when the storage is available again. Try again later."
    )
