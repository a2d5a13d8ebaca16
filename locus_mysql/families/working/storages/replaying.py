"""Decides when the primary is called (`Breaker`), and replays queued writes (`Replayer`). Does no I/O.

Generators yield the steps that `fallback` carries out.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

from ....engine.logs import WORKING, loggable
from ....errors import CapacityExceeded, LocusMySQLError, ReadOnlyServer, Unavailable, UsageError
from .. import calls
from .interface import FairLock
from .queued import Mirror, Part, Queued, SessionState, now_us, reason, single

T = TypeVar("T")

#: Errors of a storage that is not available.
OUTAGES: Final = (Unavailable, TimeoutError, ConnectionError, ReadOnlyServer)

#: The least timeout of a replayed part, which takes longer than a call. The primary has just answered then.
REPLAY_S = 10.0


class Ask(NamedTuple):
    """Call a method of a storage. The generator is sent its result, or the storage's error is raised in it.

    Args:
        storage: The storage.
        argument: The method's argument: a call, the limit of a sweep, or a tenant.
        timeout_s: How long to wait for an answer; None: the storage has its own limit.
        method: The method, without the suffix of blocking ones.
    """

    storage: Literal["primary", "fallback"]
    argument: Any
    timeout_s: float | None = None
    method: Literal["execute", "sweep", "forget_tenant"] = "execute"


#: A step of a generator: ask a storage, or wait until a lock is held.
Step: TypeAlias = Ask | FairLock
StepGenerator: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `FallbackStorage`, as named there, and whether it has a fallback."""

    timeout_s: float
    max_pending: int
    max_pending_bytes: int
    has_fallback: bool
    on_lost: Callable[[calls.Address, tuple[str, ...]], None] | None


class Admission(Enum):
    """The breaker's decision about a call."""

    GO = "call the storage"
    PROBE = "check whether the storage answers again; no other call does so now"
    NO = "do not call the storage"


class Breaker:
    """Closed while the storage answers. A failure opens it; after each wait, one call then probes the storage.

    A storage that soon fails again, such as a server that answers but takes no writes, is probed less often than after
    a first failure.

    Args:
        first_wait_s: The first wait, in seconds; each further one is twice as long.
        longest_wait_s: The longest wait.
        jitter: Each wait is up to this part shorter or longer, so that not all processes probe at once.
        clock: Returns the time in seconds.
        uniform: Returns a random number from 0 to 1.
    """

    def __init__(
        self,
        first_wait_s: float,
        longest_wait_s: float,
        jitter: float,
        clock: Callable[[], float],
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._first_wait_s, self._longest_wait_s, self._jitter = first_wait_s, longest_wait_s, jitter
        self._clock, self._uniform = clock, uniform
        self._lock = threading.Lock()
        self._wait_s = first_wait_s
        self._until: float | None = None
        self._back_at = -math.inf
        self._probing = False
        #: The number of past outages. A call that was admitted before an outage cannot open the breaker after it.
        self.outages = 0

    @property
    def open(self) -> bool:
        """Return whether the storage is considered unavailable."""
        return self._until is not None

    def admit(self, *, at_once: bool = False) -> Admission:
        """Decide what a call may do now. The caller of a probe reports its outcome to `probed` or `given_up`.

        Args:
            at_once: Probe now, even if the wait is not over.
        """
        if self._until is None:
            return Admission.GO
        with self._lock:
            if self._until is None:
                return Admission.GO
            if self._probing or (self._clock() < self._until and not at_once):
                return Admission.NO
            self._probing = True
            return Admission.PROBE

    def failed(self, outages: int) -> bool:
        """Report that an admitted call was not answered; returns whether this begins an outage.

        Args:
            outages: The value of `outages` when the call was admitted.
        """
        with self._lock:
            if self._until is not None or outages != self.outages:
                return False
            stayed = self._clock() - self._back_at > 2 * self._wait_s
            self._wait_s = self._first_wait_s if stayed else min(2 * self._wait_s, self._longest_wait_s)
            self._set()
            return True

    def probed(self, answered: bool) -> None:
        """Report the outcome of a probe."""
        with self._lock:
            self._probing = False
            if answered:
                self._until = None
                self._back_at = self._clock()
                self.outages += 1
            else:
                self._wait_s = min(2 * self._wait_s, self._longest_wait_s)
                self._set()

    def given_up(self) -> None:
        """Report that a probe was cancelled; the next call may probe."""
        with self._lock:
            self._probing = False

    def _set(self) -> None:
        self._until = self._clock() + self._wait_s * (1 + self._jitter * (2 * self._uniform() - 1))


class Replayer:
    """The queued writes of all sessions.

    Args:
        settings: The options.
        breaker: Decides when the primary is called.
        mirror: The copy of the data that calls wrote and read.
    """

    def __init__(self, settings: Settings, breaker: Breaker, mirror: Mirror) -> None:
        self.settings, self.breaker, self.mirror = settings, breaker, mirror
        self.lock = threading.Lock()  # guards the states of sessions
        #: The sessions that the fallback serves.
        self.offline: dict[calls.Address, SessionState] = {}
        #: Queued writes of all sessions, and their bytes.
        self.entries = self.size_bytes = 0
        #: The least and the most microseconds by which the primary's clock is ahead of this machine's, by its stamps.
        self._ahead_us: tuple[int, int] | None = None

    def flush(self) -> StepGenerator[int]:
        """Replay all queued writes, as far as the primary answers; returns the number of those still queued."""
        for state in list(self.offline.values()):
            if not (yield from self.admitted(state.address, at_once=True)):
                break
            yield state.lock
            try:
                if state.offline and not (yield from self.replay(state)):
                    break
            finally:
                state.lock.release()
        return self.entries

    def flush_at_last(self) -> StepGenerator[LocusMySQLError | None]:
        """Replay all queued writes as far as the primary answers; returns an error of it."""
        try:
            if self.entries:
                yield from self.flush()
        except LocusMySQLError as error:
            return error
        return None

    def admitted(self, address: calls.Address, *, at_once: bool = False) -> StepGenerator[bool]:
        """Return whether the primary may be called. One call at a time probes a primary that did not answer."""
        admission = self.breaker.admit(at_once=at_once)
        if admission is not Admission.PROBE:
            return admission is Admission.GO
        answered = None
        try:
            probe = calls.Call("probe", address, (calls.Read(()),))
            yield Ask("primary", probe, self.settings.timeout_s)
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

    def failed(self, outages: int, error: Exception) -> None:
        """Record that the primary did not answer."""
        if self.breaker.failed(outages):
            WORKING.warning(
                "the primary storage of working memory does not answer (%s); %s",
                loggable(error),
                "the fallback serves meanwhile" if self.settings.has_fallback else "calls are refused meanwhile",
            )

    def primary_us(self, state: SessionState) -> int:
        """Return the time by the primary's clock: later than everything that this process saw of the session."""
        least, most = self._ahead_us or (0, 0)
        return max(time.time_ns() // 1_000 + min(max(0, least), most), state.seen + 1)

    def learn_clock(self, stamp: int, sent_us: int, answered_us: int) -> None:
        """Record the stamp of a write, and this machine's times around it.

        The clocks count as equal unless stamps show that they are not: an answer may have been long on its way.
        """
        least, most = stamp - answered_us, stamp - sent_us
        if self._ahead_us is not None:
            least, most = max(least, self._ahead_us[0]), min(most, self._ahead_us[1])
        self._ahead_us = least, most

    def check(self, call: calls.Call) -> None:
        """Raise if the writes of a call cannot be queued."""
        entries = [Queued(one, 0, 0) for command in call.commands for one in single(command)]
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

    def append(self, state: SessionState, entry: Queued) -> None:
        """Queue a write behind those of its session."""
        if isinstance(entry.command, calls.End) or not state.parts or state.parts[-1].full:
            self.add(state, Part(os.urandom(16)))
        state.parts[-1].entries.append(entry)
        self.entries += 1
        self.size_bytes += entry.size_bytes

    def burn(self, state: SessionState, call: calls.Call, sent_at_us: int) -> None:
        """Queue the use of a call's token, so that its packet has no effect if it arrives late."""
        entries = [Queued(one, sent_at_us, now_us()) for command in call.commands for one in single(command)]
        own = tuple(entry.name for entry in entries)
        state.last_write = state.last_write or call
        self.add(state, Part(call.token, [Queued(calls.Touch(), sent_at_us, now_us())], sent_at_us, now_us(), own))

    def add(self, state: SessionState, part: Part) -> None:
        """Queue a part of a session's writes."""
        state.parts.append(part)
        self.entries += len(part.entries)
        self.size_bytes += part.size_bytes

    def drop(self, state: SessionState, parts: list[Part]) -> None:
        """Remove parts from the queue of a session."""
        for part in list(parts):
            state.parts.remove(part)
            self.entries -= len(part.entries)
            self.size_bytes -= part.size_bytes

    def replay_another(self, state: SessionState) -> StepGenerator[None]:
        """Replay another session, which may have no further calls."""
        other = next(iter(self.offline.values()), None)
        if other is None or other is state or not other.lock.acquire():
            return
        try:
            with contextlib.suppress(LocusMySQLError):  # raised again where that session is used
                if other.offline:
                    yield from self.replay(other)
        finally:
            other.lock.release()

    def replay(self, state: SessionState) -> StepGenerator[bool]:
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
            self.failed(outages, error)
            return False
        finally:
            self._report(state, lost)
        if state.fallback_stamp:  # it would be outdated in the next outage, unless others use it
            end = calls.Call("discard", state.address, (calls.End(),), token=os.urandom(16))
            with contextlib.suppress(calls.StampMoved, *OUTAGES):
                yield Ask("fallback", replace(end, if_stamp=state.fallback_stamp))
        if stamp:
            self.mirror.restamp(state.address, stamp, lost_keys)
            state.seen = state.shown_since = stamp
        state.answered_us = time.time_ns() // 1_000
        self.go_online(state)
        return True

    def go_online(self, state: SessionState) -> None:
        """Let the primary serve a session again."""
        with self.lock:
            state.offline = False
            self.offline.pop(state.address, None)
        state.checkpoints.clear()
        state.own.clear()
        state.seeded_stamp = state.fallback_stamp = 0

    def _check_session(self, state: SessionState, lost: list[str]) -> StepGenerator[None]:
        """Report once if the primary no longer has the session."""
        ask = calls.Call("replay", state.address, (calls.Read(()),))
        reply: calls.Reply = yield Ask("primary", ask, self.settings.timeout_s)
        if not reply.stamp and state.seen and not state.loss_reported:
            state.loss_reported = True
            lost.append("the session had ended or expired meanwhile; the writes since then begin a new session")

    def _replay_part(self, state: SessionState, part: Part, lost: list[str], lost_keys: set[str]) -> StepGenerator[int]:
        """Write a part; returns the session's stamp."""
        commands = part.commands(state.own)
        if not part.sent_at_us:
            part.sent_at_us, part.sent_us = self.primary_us(state), now_us()
        last = cast(calls.Call, state.last_write)
        call = calls.Call("replay", state.address, commands, last.limits, last.ttl_us, token=part.token, stamped=True)
        try:
            reply: calls.Reply = yield Ask("primary", call, max(REPLAY_S, self.settings.timeout_s))
        except UsageError as refused:
            self._refused(state, part, refused, lost)
            return 0
        self.drop(state, [part])
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
            lost.append(f"{entry.name}: {reason(entry.command)}")
            match entry.command:
                case calls.Write((variable,)) | calls.CompareAndSet(variable):
                    lost_keys.add(variable.key)
                case calls.Remove((key,)):
                    lost_keys.add(key)
        return reply.stamp

    def _refused(self, state: SessionState, part: Part, refused: UsageError, lost: list[str]) -> None:
        """Send the writes of a refused part one by one, and report those that are refused."""
        self.drop(state, [part])
        parts = [Part(os.urandom(16), [entry]) for entry in part.entries] if len(part.entries) > 1 else []
        if not parts:
            lost.append(f"{part.entries[0].name}: refused with {type(refused).__name__}")
        others, state.parts = state.parts, []
        for one in parts:
            self.add(state, one)
        state.parts += others

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
