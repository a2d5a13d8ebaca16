"""Writes the queued writes of a session to a primary that is available again, as generators that do no I/O."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import cast

from .....engine.logs import WORKING
from .....errors import UsageError
from ... import calls
from .journal import Part
from .merging import OwnWrites, Snapshot, doubtful_entries, merge
from .mirror import Mirror
from .session_state import SessionState, SessionStates
from .steps import OUTAGES, Execute, Settings, StepGenerator

#: The least timeout of a replayed part, which takes longer than a call. The primary has just answered then.
REPLAY_S = 10.0

#: A part that is sent again within this time is recognised, even if clocks differ and sending takes time.
SURELY_RECOGNISED_US = calls.RECOGNISED_US * 14 // 15

#: The number of times that a part is merged again because other processes write at the same time.
TRIES = 20


class Replay:
    """Replays sessions.

    Args:
        settings: The options.
        mirror: The copy of the data that calls wrote and read.
        states: The sessions in use.
    """

    def __init__(self, settings: Settings, mirror: Mirror, states: SessionStates) -> None:
        self.settings, self.mirror, self.states = settings, mirror, states

    def replay(self, state: SessionState, failed: Callable[[Exception], None]) -> StepGenerator[bool]:
        """Write all queued writes of a session; returns whether that succeeded. Then the primary serves the session.

        Args:
            state: The session, whose lock the caller holds.
            failed: Called if the primary does not answer.
        """
        lost: list[str] = []
        stamp = 0
        try:
            while state.journal.parts:
                stamp = yield from self._replay_part(state, state.journal.parts[0], lost)
        except calls.StampMoved:
            return False
        except OUTAGES as error:
            failed(error)
            return False
        finally:
            self.states.count(state)
            self._report(state, lost)
        yield from self._discard(state)
        state.go_online(stamp)
        self.states.count(state)
        return True

    def _replay_part(self, state: SessionState, part: Part, lost: list[str]) -> StepGenerator[int]:
        """Write a part; returns the session's stamp.

        Raises:
            StampMoved: Other processes wrote each time that it was tried.
        """
        for _ in range(TRIES):
            snapshot = yield from self._read_snapshot(state, part, lost)
            if_stamp, again = snapshot.stamp, bool(part.sent)
            if not again:
                self._merge(state, part, snapshot)
            elif not state.own.version(if_stamp):
                if_stamp = state.own.seen  # if it was carried out before, its token is recognised whatever the stamp
            try:
                reply = yield from self._send(state, part, if_stamp)
            except calls.StampMoved:
                part.sent = ()  # it was not carried out, unless its token is forgotten
                if again and now_us() - part.sent_us > SURELY_RECOGNISED_US:
                    doubtful, why = doubtful_entries(part, snapshot, state.own)
                    state.journal.drop(part, doubtful)
                    lost += why
            except UsageError as refused:
                self._refused(state, part, refused, lost)
                return snapshot.stamp
            else:
                self._written(state, part, snapshot, reply, again, lost)
                return reply.stamp
        raise calls.StampMoved

    def _read_snapshot(self, state: SessionState, part: Part, lost: list[str]) -> StepGenerator[Snapshot]:
        """Read the session's content on the primary. If it no longer has the session, report that once."""
        commands = Snapshot.commands(part, state.own)
        reply = yield Execute("primary", calls.Call("replay", state.address, commands), self.settings.timeout_s)
        if not reply.stamp and state.own.seen and not state.loss_reported:
            state.loss_reported = True
            lost.append("the session had ended or expired meanwhile; the writes since then begin a new session")
        return Snapshot.of(commands, reply)

    def _merge(self, state: SessionState, part: Part, snapshot: Snapshot) -> None:
        """Decide which commands of a part are sent."""
        merged = merge(part, snapshot, state.own, now_us())
        part.lost, part.sent = merged.lost, tuple(merged.commands)
        if merged.lost_keys:
            self.mirror.write(cast(calls.Call, state.last_write), calls.Remove(tuple(merged.lost_keys)))
        # records the token, so that a packet that was sent before and arrives late has no effect
        if not part.sent and part.risky:
            part.sent = (calls.Touch(),)

    def _send(self, state: SessionState, part: Part, if_stamp: int) -> StepGenerator[calls.Reply]:
        """Send the commands of a part, if there are any."""
        if not part.sent:
            return calls.Reply((), if_stamp)
        part.sent_us = part.sent_us or now_us()
        part.risky = True
        last = cast(calls.Call, state.last_write)
        call = calls.Call(
            "replay", last.address, part.sent, last.limits, last.ttl_us, token=part.token, if_stamp=if_stamp
        )
        reply: calls.Reply = yield Execute("primary", call, max(REPLAY_S, self.settings.timeout_s))
        return reply

    def _written(
        self, state: SessionState, part: Part, snapshot: Snapshot, reply: calls.Reply, again: bool, lost: list[str]
    ) -> None:
        """Record the versions that a written part made, and remove the part."""
        if calls.End() in part.sent:
            state.own = OwnWrites()
        elif again:
            state.own.wrote_once(part, reply)
            match part.sent[0], reply.results[0]:
                case calls.CompareAndSet(variable), False:
                    lost.append(f"variable {variable.key!r}: it was not what compare_and_set expected")
        elif reply.stamp > snapshot.stamp:
            state.own.wrote(snapshot.stamp, reply.stamp)
        lost += part.lost
        state.journal.remove(part)

    def _refused(self, state: SessionState, part: Part, refused: UsageError, lost: list[str]) -> None:
        """Send the entries of a refused part one by one, and report those that are refused."""
        if len(part.entries) > 1:
            state.journal.split(part)
            return
        entry = part.entries[0]
        what = type(entry.command).__name__ if entry.key is None else f"variable {entry.key!r}"
        lost.append(f"{what}: refused with {type(refused).__name__}")
        state.journal.remove(part)

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

    def _discard(self, state: SessionState) -> StepGenerator[None]:
        """Remove the session from the fallback, where it would be outdated in the next outage, unless others use it."""
        if state.fallback_stamp:
            end = (calls.End(),)
            call = calls.Call("discard", state.address, end, token=os.urandom(16), if_stamp=state.fallback_stamp)
            with contextlib.suppress(calls.StampMoved, *OUTAGES):
                yield Execute("fallback", call)


def now_us() -> int:
    """The current time, by the clock of journal entries."""
    return time.monotonic_ns() // 1_000
