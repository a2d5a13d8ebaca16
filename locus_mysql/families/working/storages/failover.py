"""Chooses the storage that serves a call, and replays queued writes, as generators that do no I/O.

They yield `Execute`, `Acquire` and `ForgetTenant`; `fallback` carries these out, awaited or blocking.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from ....engine.logs import WORKING, loggable
from ....errors import CapacityExceeded, LocusMySQLError, NotFound, ReadOnlyServer, Unavailable, UsageError
from .. import calls
from .breaker import Admission, Breaker
from .fair_lock import FairLock
from .interface import OutageStatus
from .mirror import Mirror, now_us

T = TypeVar("T")

#: Errors of a storage that is not available.
OUTAGES: Final = (Unavailable, TimeoutError, ConnectionError, ReadOnlyServer)

#: A part of the queue takes no further writes once it has this many, or this many bytes. Each part is sent as one call.
PART_ENTRIES, PART_BYTES = 64, 1_048_576

#: Approximate size of a queued write without its content.
ENTRY_BYTES = 200

#: The least timeout of a replayed part, which takes longer than a call. The primary has just answered then.
REPLAY_S = 10.0

#: A part that is sent again within this time is surely recognised, even if clocks differ and sending takes time.
RECOGNISED_US = calls.RECOGNISED_US * 14 // 15

#: The number of descriptions of lost writes that are kept of a session.
LOST = 100


@dataclass(frozen=True, slots=True)
class Execute:
    """Send a call to a storage. The generator is sent the reply, or the storage's error is raised in it."""

    storage: Literal["primary", "fallback"]
    call: calls.Call
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Acquire:
    """Wait until the lock is held."""

    lock: FairLock


@dataclass(frozen=True, slots=True)
class ForgetTenant:
    """Remove all sessions of a tenant from a storage. The generator is sent the number of removed sessions."""

    storage: Literal["primary", "fallback"]
    tenant: str


Step: TypeAlias = Execute | Acquire | ForgetTenant
StepGenerator: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `FallbackStorage`, as named there, and whether it has a fallback."""

    timeout_s: float
    max_pending: int
    max_pending_bytes: int
    has_fallback: bool
    on_lost: Callable[[calls.Address, tuple[str, ...]], None] | None


@dataclass(frozen=True, slots=True)
class Queued:
    """A write that waits for the primary.

    Args:
        command: The command; a `Write` or `Remove` has one variable.
        at_us: When it was made, by the clock of the primary.
        made_us: When it was made, by this process's monotonic clock.
    """

    command: calls.Command[Any]
    at_us: int
    made_us: int

    @property
    def name(self) -> str:
        """What it writes, for descriptions."""
        match self.command:
            case calls.Write((variable,)) | calls.CompareAndSet(variable):
                return f"variable {variable.key!r}"
            case calls.Remove((key,)) | calls.Increment(key):
                return f"variable {key!r}"
            case calls.WriteTask():
                return "the task's state"
            case calls.ClearNotes():
                return "clearing the scratchpad"
            case calls.Append():
                return "a note"
            case calls.Clear():
                return "clearing the variables"
            case calls.End():
                return "the end of the session"
        return type(self.command).__name__

    @property
    def size_bytes(self) -> int:
        """Approximate size."""
        match self.command:
            case calls.Write((variable,)) | calls.CompareAndSet(variable):
                return ENTRY_BYTES + variable.size_bytes
            case calls.WriteTask(value) | calls.Append(value):
                return ENTRY_BYTES + len(value or b"")
        return ENTRY_BYTES


@dataclass(slots=True, eq=False)
class Part:
    """Queued writes that are sent as one call.

    Args:
        token: The token of the call.
        entries: The writes, in order.
        sent_at_us: When it was first sent, by the clock of the primary; 0: never.
        sent_us: The same by this process's monotonic clock.
        own: What an attempt may have written that is not to be repeated, by `Queued.name`.
    """

    token: bytes
    entries: list[Queued] = field(default_factory=list)
    sent_at_us: int = 0
    sent_us: int = 0
    own: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Approximate size."""
        return sum(entry.size_bytes for entry in self.entries)

    @property
    def full(self) -> bool:
        """Return whether further writes need another part. A part that was sent may have been carried out as it was."""
        return self.sent_at_us > 0 or len(self.entries) >= PART_ENTRIES or self.size_bytes >= PART_BYTES

    def commands(self, own: dict[str, int]) -> tuple[calls.Command[Any], ...]:
        """Return the commands to send.

        Args:
            own: The stamps at which this process replayed earlier writes: these are not newer than later ones.
        """
        sent_at_us = self.sent_at_us if self.sent_at_us and now_us() - self.sent_us > RECOGNISED_US else None
        commands = []
        for entry in self.entries:
            command = entry.command
            if isinstance(command, calls.Write) and command.variables[0].ttl_us is not None:
                (variable,) = command.variables
                left_us = (variable.ttl_us or 0) - (now_us() - entry.made_us)
                command = calls.Write((replace(variable, ttl_us=left_us),))
                if left_us <= 0:
                    command = calls.Remove((variable.key,))
            at_us = max(entry.at_us, own.get(entry.name, 0), own.get("clearing the variables", 0))
            if isinstance(command, calls.End):
                at_us = max([at_us, *own.values()])
            commands.append(calls.Replayed(command, at_us, sent_at_us))
        return tuple(commands)


class SessionState:
    """The state of a session that this process used. The holder of its lock serves it from the fallback, or replays."""

    def __init__(self, address: calls.Address) -> None:
        self.address = address
        self.lock = FairLock()
        self.users = 0
        #: Whether the fallback serves the session; since which stamp of the fallback; its stamp after the last write.
        self.offline, self.seeded_stamp, self.fallback_stamp = False, 0, 0
        #: The last stamp of the primary that was seen, and when it answered last, by this machine's clock.
        self.seen, self.answered_us = 0, 0
        self.parts: list[Part] = []
        #: The stamps at which queued writes were replayed, by `Queued.name`.
        self.own: dict[str, int] = {}
        self.lost: deque[str] = deque(maxlen=LOST)
        self.loss_reported = False
        self.checkpoints: set[str] = set()
        self.last_write: calls.Call | None = None

    @property
    def entries(self) -> int:
        """The number of queued writes."""
        return sum(len(part.entries) for part in self.parts)


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
        self._max_sessions = max_sessions
        self._states: OrderedDict[calls.Address, SessionState] = OrderedDict()
        self._offline: dict[calls.Address, SessionState] = {}
        self._lock = threading.Lock()  # guards the states of sessions
        #: What the primary's clock is ahead of this machine's, in microseconds, as far as stamps tell.
        self._ahead_us = 0
        self._seen_clock = False
        #: Queued writes of all sessions, and their bytes.
        self.entries = self.size_bytes = 0

    def serve(self, call: calls.Call) -> StepGenerator[calls.Reply]:
        """Execute a call."""
        state = self._enter(call.address)
        try:
            return (yield from self._serve(state, replace(call, stamped=True) if call.writes else call))
        finally:
            with self._lock:
                state.users -= 1

    def flush(self) -> StepGenerator[int]:
        """Replay all queued writes, as far as the primary answers; returns the number of those still queued."""
        for state in list(self._offline.values()):
            if not (yield from self._admitted(state.address, at_once=True)):
                break
            yield Acquire(state.lock)
            try:
                if state.offline and not (yield from self._replay(state)):
                    break
            finally:
                state.lock.release()
        return self.entries

    def forget_tenant(self, tenant: str) -> StepGenerator[int]:
        """Remove all sessions of a tenant, also from this process's memory; returns how many the primary had."""
        with self._lock:
            states = [state for address, state in self._states.items() if address.tenant == tenant]
        for state in states:
            yield Acquire(state.lock)
            try:
                self._drop(state, state.parts)
                self._go_online(state)
                state.seen = state.answered_us = 0
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
        with self._lock:
            state = self._states.get(address)
        if state is None:
            return OutageStatus(self.breaker.open)
        return OutageStatus(self.breaker.open or state.offline, state.entries, tuple(state.lost))

    def _enter(self, address: calls.Address) -> SessionState:
        with self._lock:
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
            admitted = yield from self._admitted(call.address)
            failure: Exception | None = None
            made_us = self._primary_us(state)
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
                return (yield from self._on_fallback(state, call, failure, made_us))
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
            WORKING.info("the primary storage of working memory answers again; %d writes wait", self.entries)
        return answered

    def _failed(self, outages: int, error: Exception) -> None:
        if self.breaker.failed(outages):
            WORKING.warning(
                "the primary storage of working memory does not answer (%s); %s",
                loggable(error),
                "the fallback serves meanwhile" if self.settings.has_fallback else "calls are refused meanwhile",
            )

    def _primary_us(self, state: SessionState) -> int:
        """Return the time by the primary's clock: later than everything that this process saw of the session."""
        return max(time.time_ns() // 1_000 + self._ahead_us, state.seen + 1)

    # The primary

    def _on_primary(self, state: SessionState, call: calls.Call) -> StepGenerator[calls.Reply]:
        outages = self.breaker.outages
        try:
            reply: calls.Reply = yield Execute("primary", call, self.settings.timeout_s)
        except OUTAGES as error:
            self._failed(outages, error)
            raise
        state.answered_us = time.time_ns() // 1_000
        state.seen = max(state.seen, reply.stamp) if reply.stamp else 0
        if call.writes and reply.stamp:
            ahead_us = reply.stamp - state.answered_us
            self._ahead_us = max(ahead_us, self._ahead_us) if self._seen_clock else ahead_us
            self._seen_clock = True
        if self.settings.has_fallback:
            self.mirror.learn(call, reply)
            if state.offline and call.writes:
                yield from self._update_fallback(state, call, reply)
        yield from self._replay_another(state)
        return reply

    def _update_fallback(self, state: SessionState, call: calls.Call, reply: calls.Reply) -> StepGenerator[None]:
        """Send the writes of a call to the fallback, which serves the session by now, after a late answer."""
        commands: list[calls.Command[Any]] = []
        for command, result in zip(call.commands, reply.results, strict=True):
            match command:
                case calls.Increment(key):
                    commands.append(calls.Write((calls.Variable(key, b"%d" % cast(int, result)),)))
                case calls.CompareAndSet(variable):
                    commands += [calls.Write((replace(variable, ttl_us=None),))] if result else []
                case calls.CreateCheckpoint() | calls.RestoreCheckpoint() | calls.DeleteCheckpoint() | calls.Touch():
                    continue
                case _:
                    commands += [] if isinstance(command, calls.READS) else _single(command)
        yield Acquire(state.lock)
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
            reply: calls.Reply = yield Execute("fallback", call)
        except UsageError as refused:
            if uncertain:
                self._burn(state, call, made_us)
                raise Unavailable(
                    "The session's storage did not answer, and the fallback refuses the call, so whether it was "
                    f"carried out is not known. The fallback says: {refused}"
                ) from failure
            if isinstance(refused, NotFound) and not state.answered_us and not _restored(call) <= state.checkpoints:
                raise _only_on_primary(call) from None
            raise
        except calls.StampMoved:
            if uncertain:
                self._burn(state, call, made_us)
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
        content = self.mirror.content(state.address)
        if state.answered_us:
            content = [calls.Clear(), calls.ClearNotes(), *content]
            yield from self._on_fallback_if_older(state, call, content, state.answered_us)
        with self._lock:
            state.offline = True
            self._offline[state.address] = state
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
            reply: calls.Reply = yield Execute("fallback", asked)
            if reply.stamp:
                state.seeded_stamp = state.fallback_stamp = reply.stamp

    def _check(self, state: SessionState, call: calls.Call) -> None:
        """Check that the writes of a call can be queued, and need no data that only the primary has."""
        if not call.writes:
            return
        if state.seen and not _restored(call) <= state.checkpoints:
            raise _only_on_primary(call)
        entries = [Queued(one, 0, 0) for command in call.commands for one in _single(command)]
        for limit, used, allowed in (
            ("max_pending", self.entries + len(entries), self.settings.max_pending),
            (
                "max_pending_bytes",
                self.size_bytes + sum(entry.size_bytes for entry in entries),
                self.settings.max_pending_bytes,
            ),
        ):
            if used > allowed:
                raise CapacityExceeded(limit, used, allowed, call.address.session_id)

    def _queue(self, state: SessionState, call: calls.Call, reply: calls.Reply, sent_at_us: int) -> None:
        """Queue the writes of a call that the fallback carried out.

        Args:
            state: The session.
            call: The call.
            reply: The fallback's reply.
            sent_at_us: When the call was sent to the primary, which may have carried it out; 0: it was not.
        """
        state.last_write, state.fallback_stamp = call, reply.stamp
        at_us, made_us = sent_at_us or self._primary_us(state), now_us()
        entries: list[Queued] = []
        for command, result in zip(call.commands, reply.results, strict=True):
            match command:
                case calls.CreateCheckpoint(checkpoint_id) | calls.RestoreCheckpoint(undo_id=checkpoint_id):
                    state.checkpoints.add(checkpoint_id)
                case calls.CompareAndSet() | calls.Replayed() if not result:
                    continue
            entries += [Queued(one, at_us, made_us) for one in _single(command)]
        self.mirror.learn(call, reply)
        if not entries and not sent_at_us:
            return
        if any(isinstance(entry.command, calls.End) for entry in entries):
            self._drop(state, [part for part in state.parts if not part.sent_at_us])
        if sent_at_us:
            if not entries:  # a comparison that failed in the fallback must not succeed later
                self._burn(state, call, sent_at_us)
                return
            self._add(state, Part(call.token, entries, sent_at_us, now_us()))
            return
        for entry in entries:
            alone = isinstance(entry.command, calls.End)
            if alone or not state.parts or state.parts[-1].full:
                self._add(state, Part(os.urandom(16)))
            part = state.parts[-1]
            part.entries.append(entry)
            self.entries += 1
            self.size_bytes += entry.size_bytes

    def _burn(self, state: SessionState, call: calls.Call, sent_at_us: int) -> None:
        """Queue the use of a call's token, so that its packet has no effect if it arrives late."""
        entries = [Queued(one, sent_at_us, now_us()) for command in call.commands for one in _single(command)]
        own = tuple(entry.name for entry in entries)
        state.last_write = state.last_write or call
        self._add(state, Part(call.token, [Queued(calls.Touch(), sent_at_us, now_us())], sent_at_us, now_us(), own))

    def _add(self, state: SessionState, part: Part) -> None:
        state.parts.append(part)
        self.entries += len(part.entries)
        self.size_bytes += part.size_bytes

    def _drop(self, state: SessionState, parts: list[Part]) -> None:
        for part in list(parts):
            state.parts.remove(part)
            self.entries -= len(part.entries)
            self.size_bytes -= part.size_bytes

    # Replaying

    def _replay_another(self, state: SessionState) -> StepGenerator[None]:
        """Replay another session, which may have no further calls."""
        other = next(iter(self._offline.values()), None)
        if other is None or other is state or not other.lock.acquire():
            return
        try:
            with contextlib.suppress(LocusMySQLError):  # raised again where that session is used
                if other.offline:
                    yield from self._replay(other)
        finally:
            other.lock.release()

    def _replay(self, state: SessionState) -> StepGenerator[bool]:
        """Write the queued writes; returns whether all are written. The caller holds the session's lock."""
        outages = self.breaker.outages
        lost: list[str] = []
        lost_keys: set[str] = set()
        stamp = 0
        try:
            if state.parts:
                yield from self._check_session(state, lost)
            while state.parts:
                stamp = (yield from self._replay_part(state, state.parts[0], lost, lost_keys)) or stamp
        except OUTAGES as error:
            self._failed(outages, error)
            return False
        finally:
            self._report(state, lost)
        if state.fallback_stamp:  # it would be outdated in the next outage, unless others use it
            end = calls.Call("discard", state.address, (calls.End(),), token=os.urandom(16))
            with contextlib.suppress(calls.StampMoved, *OUTAGES):
                yield Execute("fallback", replace(end, if_stamp=state.fallback_stamp))
        if stamp:
            self.mirror.restamp(state.address, stamp, lost_keys)
            state.seen = stamp
        state.answered_us = time.time_ns() // 1_000
        self._go_online(state)
        return True

    def _go_online(self, state: SessionState) -> None:
        with self._lock:
            state.offline = False
            self._offline.pop(state.address, None)
        state.checkpoints.clear()
        state.own.clear()
        state.seeded_stamp = state.fallback_stamp = 0

    def _check_session(self, state: SessionState, lost: list[str]) -> StepGenerator[None]:
        """Report once if the primary no longer has the session."""
        ask = calls.Call("replay", state.address, (calls.Inspect(()),))
        reply: calls.Reply = yield Execute("primary", ask, self.settings.timeout_s)
        if not reply.stamp and state.seen and not state.loss_reported:
            state.loss_reported = True
            lost.append("the session had ended or expired meanwhile; the writes since then begin a new session")

    def _replay_part(self, state: SessionState, part: Part, lost: list[str], lost_keys: set[str]) -> StepGenerator[int]:
        """Write a part; returns the session's stamp."""
        commands = part.commands(state.own)
        if not part.sent_at_us:
            part.sent_at_us, part.sent_us = self._primary_us(state), now_us()
        last = cast(calls.Call, state.last_write)
        call = calls.Call("replay", state.address, commands, last.limits, last.ttl_us, token=part.token, stamped=True)
        try:
            reply: calls.Reply = yield Execute("primary", call, max(REPLAY_S, self.settings.timeout_s))
        except UsageError as refused:
            self._refused(state, part, refused, lost)
            return 0
        self._drop(state, [part])
        for name in part.own:
            state.own[name] = reply.stamp
        for entry, done in zip(part.entries, reply.results, strict=True):
            # If the call itself was carried out before, these are its results.
            if done is not False or isinstance(entry.command, calls.Touch | calls.DeleteCheckpoint):
                state.own[entry.name] = reply.stamp
                continue
            later = any(entry.name == other.name for one in state.parts for other in one.entries)
            if later and not isinstance(entry.command, calls.Increment | calls.Append):
                continue  # overwritten anyway
            lost.append(f"{entry.name}: {_reason(entry.command)}")
            match entry.command:
                case calls.Write((variable,)) | calls.CompareAndSet(variable):
                    lost_keys.add(variable.key)
                case calls.Remove((key,)):
                    lost_keys.add(key)
        return reply.stamp

    def _refused(self, state: SessionState, part: Part, refused: UsageError, lost: list[str]) -> None:
        """Send the writes of a refused part one by one, and report those that are refused."""
        self._drop(state, [part])
        parts = [Part(os.urandom(16), [entry]) for entry in part.entries] if len(part.entries) > 1 else []
        if not parts:
            lost.append(f"{part.entries[0].name}: refused with {type(refused).__name__}")
        for one in reversed(parts):
            state.parts.insert(0, one)
            self.entries += 1
            self.size_bytes += one.size_bytes

    def _report(self, state: SessionState, lost: list[str]) -> None:
        if not lost:
            return
        state.lost.extend(lost)
        WORKING.warning(
            "%d writes made while the primary storage of working memory was unavailable were not written to it, "
            "because another process had written meanwhile; stats().lost of the session lists them",
            len(lost),
        )
        if self.settings.on_lost is not None:
            try:
                self.settings.on_lost(state.address, tuple(lost))
            except Exception:
                WORKING.warning("on_lost failed", exc_info=True)


def _single(command: calls.Command[Any]) -> list[calls.Command[Any]]:
    """Return a command that writes as commands of one variable each."""
    match command:
        case calls.Write(variables):
            return [calls.Write((variable,)) for variable in variables]
        case calls.Remove(keys):
            return [calls.Remove((key,)) for key in keys]
        case calls.Replayed(inner):  # of a storage that has this one as its fallback
            return _single(inner)
    return [] if isinstance(command, calls.READS) else [command]


def _reason(command: calls.Command[Any]) -> str:
    match command:
        case calls.CompareAndSet():
            return "it did not have the value that compare_and_set expected"
        case calls.Increment() | calls.Append():
            return "it is not known whether the storage had carried it out"
    return "another process wrote meanwhile"


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
