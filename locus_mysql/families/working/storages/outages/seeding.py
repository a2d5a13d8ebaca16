"""Sends the known content of a session to the fallback, as generators that do no I/O."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, cast

from .....engine.logs import WORKING
from .....errors import UsageError
from ... import calls
from ...values import canonical_form
from .mirror import UNLIMITED, Known, Mirror
from .session_state import SessionState, SessionStates
from .steps import Execute, StepGenerator

#: The number of notes that are sent to the fallback at a time.
NOTES_AT_ONCE = 200


class Seeding:
    """Begins outages of sessions.

    Args:
        mirror: The copy of the data that calls wrote and read.
        states: The sessions in use.
        lock: Guards the states of sessions.
    """

    def __init__(self, mirror: Mirror, states: SessionStates, lock: threading.Lock) -> None:
        self.mirror, self.states, self._lock = mirror, states, lock

    def go_offline(self, state: SessionState, call: calls.Call) -> StepGenerator[None]:
        """Switch a session to the fallback. The caller holds the session's lock."""
        seeded = False
        try:
            versions = yield from self._versions(state)
            with self._lock:  # every process that reads something from here on sends it to the fallback
                known = self.mirror.known(state.address)
                state.offline = True
            self.states.count(state)
            for commands in _missing(known, versions):
                state.fallback_stamp = yield from self.send(call, commands)
            seeded = True
        finally:
            if not seeded:
                state.offline = False
                self.states.count(state)

    def send(self, call: calls.Call, commands: list[calls.Command[Any]]) -> StepGenerator[int]:
        """Execute commands on the fallback; returns the session's stamp. If there is no room, they are skipped."""
        seed = calls.Call("seed", call.address, tuple(commands), UNLIMITED, call.ttl_us, token=os.urandom(16))
        try:
            reply: calls.Reply = yield Execute("fallback", seed)
        except UsageError:
            WORKING.info("the fallback of working memory has no room for all that is known of a session")
            return 0
        return reply.stamp

    def _versions(self, state: SessionState) -> StepGenerator[calls.Versions]:
        """The versions that the fallback holds of the session, of this outage.

        They are of this outage if a process wrote there since the primary last answered this process. Otherwise they
        are of an earlier one, and are removed.
        """
        inspect = calls.Call("seed", state.address, (calls.Inspect(),))
        reply: calls.Reply = yield Execute("fallback", inspect)
        if 0 < reply.stamp < state.answered_us:
            end = calls.Call("seed", state.address, (calls.End(),), token=os.urandom(16), if_stamp=reply.stamp)
            with contextlib.suppress(calls.StampMoved):
                yield Execute("fallback", end)
                return calls.Versions({})
        return cast(calls.Versions, reply.results[0])


def _missing(known: Known, versions: calls.Versions) -> list[list[calls.Command[Any]]]:
    """Return the commands, call by call, that send the fallback known content of a session that it lacks."""
    commands: list[calls.Command[Any]] = []
    variables = tuple(
        calls.Variable(key, found.value, canonical_form(found.value), found.left_us)
        for key, found in known.variables.items()
        if key not in versions.variables
    )
    if variables:
        commands.append(calls.Write(variables))
    if known.task is not None and not versions.task:
        commands.append(calls.WriteTask(known.task))
    notes: list[calls.Command[Any]] = [] if versions.notes else [calls.Append(note) for note in known.notes]
    batches = [[*commands, *notes[:NOTES_AT_ONCE]]]
    batches += [notes[start : start + NOTES_AT_ONCE] for start in range(NOTES_AT_ONCE, len(notes), NOTES_AT_ONCE)]
    return [batch for batch in batches if batch]
