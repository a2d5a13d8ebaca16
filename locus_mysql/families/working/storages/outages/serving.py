"""Serving sessions from a primary or, while that is away, from a fallback: as generators, which do no I/O.

They yield what is to be asked of which storage, or for which turn to wait; `fallback` does it, asynchronously or not.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from typing import Any, TypeVar, cast

from .....engine.logs import WORKING, told
from .....errors import (
    CapacityExceeded,
    LocusMySQLError,
    NotFound,
    Unavailable,
    UsageError,
)
from ...calls import (
    Address,
    Append,
    Call,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    End,
    Found,
    Inspect,
    Read,
    ReadNotes,
    Remove,
    Reply,
    RestoreCheckpoint,
    StampMoved,
    Variable,
    Versions,
    Write,
    WriteTask,
)
from ...values import likeness
from ..interface import Condition
from .breaker import Admission, Breaker
from .journal import Journal
from .mirror import UNLIMITED, Mirror
from .replaying import Replaying, now_us
from .session_state import Lines, SessionState
from .steps import AWAY, Ask, Forget, Settings, Steps, Wait

T = TypeVar("T")

#: So many notes are given to the fallback at a time.
NOTES_AT_ONCE = 200


class Serving:
    """Decides which storage serves a call, and replays what waited.

    Args:
        settings: The options.
        breaker: When the primary is asked.
        mirror: What is known of sessions.
        lines: The sessions in use.
    """

    def __init__(self, settings: Settings, breaker: Breaker, mirror: Mirror, lines: Lines) -> None:
        self.settings, self.breaker, self.mirror, self.lines = settings, breaker, mirror, lines
        self._replaying = Replaying(settings, mirror, lines)
        self._lock = threading.Lock()

    def serve(self, call: Call) -> Steps[Reply]:
        """Carry out a call."""
        line = self.lines.take(call.address)
        try:
            return (yield from self._serve(line, call))
        finally:
            self.lines.leave(line)

    def flush(self) -> Steps[int]:
        """Replay all that waits, as far as the primary is there; how many writes still wait."""
        for line in list(self.lines.waiting.values()):
            if not (yield from self._back(line.address, at_once=True)):
                break
            yield Wait(line.turn)
            try:
                if line.offline and not (yield from self._replay(line)):
                    break
            finally:
                line.turn.give()
        return self.lines.entries

    def forget_tenant(self, tenant: str) -> Steps[int]:
        """Remove all sessions of a tenant, and what is known of them here; how many the primary had."""
        for line in self.lines.of_tenant(tenant):
            yield Wait(line.turn)
            try:
                line.forget()
                self.lines.count(line)
            finally:
                line.turn.give()
        self.mirror.forget_tenant(tenant)
        if self.settings.serves:
            yield Forget("fallback", tenant)
        try:
            removed: int = yield Forget("primary", tenant)
        except AWAY as error:
            self._failed(self.breaker.outages, error)
            raise
        return removed

    def condition(self, address: Address) -> Condition:
        """How it is with a session."""
        line = self.lines.get(address)
        if line is None:
            return Condition(self.breaker.open)
        return Condition(self.breaker.open or line.offline, len(line.journal), tuple(line.lost))

    def _serve(self, line: SessionState, call: Call) -> Steps[Reply]:
        while True:
            there = yield from self._back(call.address)
            failure: Exception | None = None
            if there and not line.offline:
                try:
                    return (yield from self._on_primary(line, call))
                except AWAY as error:
                    if not self.settings.serves:
                        if isinstance(error, LocusMySQLError):
                            raise
                        raise self._silence(error) from error
                    failure = error
            if not self.settings.serves:
                raise Unavailable(
                    "The storage of this session did not answer lately, and is not asked again yet. Nothing was "
                    "changed. Try again later."
                )
            yield Wait(line.turn)
            try:
                there = failure is None and not self.breaker.open
                if there and (not line.offline or (yield from self._replay(line))):
                    continue
                return (yield from self._on_fallback(line, call, failure))
            finally:
                line.turn.give()

    def _silence(self, error: Exception) -> Unavailable:
        """What the caller is told of a primary that did not answer, where nobody serves instead."""
        return Unavailable(
            f"The storage of this session did not answer ({told(error)}; timeout_s is {self.settings.timeout_s:g}). "
            "Whether the call was carried out is not known. Try again later."
        )

    def _back(self, address: Address, *, at_once: bool = False) -> Steps[bool]:
        """Whether the primary may be asked; one call at a time finds out whether it is back."""
        admission = self.breaker.admit(at_once=at_once)
        if admission is not Admission.PROBE:
            return admission is Admission.GO
        answered = None
        try:
            yield Ask("primary", Call("probe", address, (Inspect(()),)), self.settings.timeout_s)
            answered = True
        except AWAY:
            answered = False
        finally:
            if answered is None:
                self.breaker.given_up()
            else:
                self.breaker.probed(answered)
        if answered:
            WORKING.info("the primary storage of working memory answers again; %d writes wait", self.lines.entries)
        return answered

    def _on_primary(self, line: SessionState, call: Call) -> Steps[Reply]:
        outages = self.breaker.outages
        with self._lock:
            line.in_flight += 1
        try:
            reply: Reply = yield Ask("primary", call, self.settings.timeout_s)
            learned, stood_in = self._learn(line, call, reply)
        except AWAY as error:
            self._failed(outages, error)
            raise
        finally:
            with self._lock:
                line.in_flight -= 1
        if stood_in and learned:
            yield from self._tell_fallback(line, call, learned)
        yield from self._replay_another(line)
        return reply

    def _learn(self, line: SessionState, call: Call, reply: Reply) -> tuple[list[Command[Any]], bool]:
        """Learn of a reply: what it told, and whether the fallback was given what was known before that."""
        with self._lock:
            gone = not reply.stamp and line.in_flight < 2
            line.answered_us = time.time_ns() // 1_000
            line.ours.seen = 0 if gone else max(line.ours.seen, reply.stamp)
            if not self.settings.serves:
                return [], False
            learned = self.mirror.learn(call, reply, lambda what: line.later(reply.stamp, what))
            whole = any(isinstance(command, ReadNotes) and command.last is None for command in call.commands)
            line.note_learned(reply.stamp, learned, all_notes=whole)
            return learned, line.offline

    def _failed(self, outages: int, error: Exception) -> None:
        if self.breaker.failed(outages):
            WORKING.warning(
                "the primary storage of working memory does not answer (%s); %s",
                told(error),
                "the fallback serves meanwhile" if self.settings.serves else "calls are refused meanwhile",
            )

    def _on_fallback(self, line: SessionState, call: Call, failure: Exception | None) -> Steps[Reply]:
        """Carry out a call on the fallback, and remember what it wrote. This call has the turn."""
        if not line.offline:
            yield from self._begin(line, call)
        try:
            self._check(line, call)
            reply: Reply = yield Ask("fallback", call)
        except UsageError as refused:
            if failure is not None and call.writes:
                raise Unavailable(
                    "The session's storage did not answer, and the fallback refuses the call, so whether it was "
                    f"carried out is not known. The fallback says: {refused}"
                ) from failure
            if isinstance(refused, NotFound) and not line.answered_us and not _restored(call) <= line.made:
                raise _only_there(call) from None
            raise
        except StampMoved:
            if failure is not None:
                line.ours.may_have_written(call.commands)
            raise
        if call.writes:
            yield from self._note(line, call, reply, failure)
        if failure is not None and _compared_in_vain(call, reply):
            raise Unavailable(
                "The session's storage did not answer. By what is known of the session the comparison does not hold, "
                "but it may have held there, so whether the call was carried out is not known. Read the variable."
            ) from failure
        return reply

    def _note(self, line: SessionState, call: Call, reply: Reply, failure: Exception | None) -> Steps[None]:
        line.like = call
        line.stood_in = reply.stamp
        line.made.update(c.checkpoint_id for c in call.commands if isinstance(c, CreateCheckpoint))
        line.made.update(c.undo_id for c in call.commands if isinstance(c, RestoreCheckpoint))
        line.journal.note(call, reply, now_us(), uncertain=failure is not None)
        self.lines.count(line)
        with self._lock:
            self.mirror.learn(call, reply, lambda _: False)
        for command, result in zip(call.commands, reply.results, strict=True):
            if isinstance(command, CompareAndSet) and result:  # it keeps the time that it has left
                key = command.variable.key
                with contextlib.suppress(*AWAY):
                    found: Reply = yield Ask("fallback", Call("ttl", call.address, (Read((key,)),)))
                    left = cast("dict[str, Found]", found.results[0]).get(key)
                    line.journal.expires(key, None if left is None else left.left_us, now_us())

    def _check(self, line: SessionState, call: Call) -> None:
        """Raise if what a call writes cannot be remembered, or needs what only the primary has."""
        if not call.writes:
            return
        if line.ours.seen and not _restored(call) <= line.made:
            raise _only_there(call)
        settings, lines = self.settings, self.lines
        entries, size_bytes = _size(call)
        for limit, used, allowed in (
            ("max_pending", lines.entries + entries, settings.max_pending),
            ("max_pending_bytes", lines.size_bytes + size_bytes, settings.max_pending_bytes),
        ):
            if used > allowed:
                raise CapacityExceeded(limit, used, allowed, call.address.session_id)

    def _begin(self, line: SessionState, call: Call) -> Steps[None]:
        """Have the fallback serve a session."""
        begun = False
        try:
            yield from self._seed(line, call)
            begun = True
        finally:
            if not begun:
                line.offline = False
                self.lines.count(line)

    def _seed(self, line: SessionState, call: Call) -> Steps[None]:
        """Give the fallback what is known of a session.

        What it holds is of this outage if somebody wrote there since the primary last answered this process: then only
        what is missing is added. Else it is of an outage before, and removed.
        """
        look: Reply = yield Ask("fallback", Call("seed", line.address, (Inspect(),)))
        versions = cast(Versions, look.results[0])
        if 0 < look.stamp < line.answered_us:
            ending = Call("seed", line.address, (End(),), token=os.urandom(16), if_stamp=look.stamp)
            with contextlib.suppress(StampMoved):
                yield Ask("fallback", ending)
                versions = Versions({})
        with self._lock:  # what is learned from here on, the fallback is told by whoever learns it
            known = self.mirror.known(line.address)
            line.offline = True
        self.lines.count(line)
        commands: list[Command[Any]] = []
        variables = tuple(
            Variable(key, found.value, likeness(found.value), found.left_us)
            for key, found in known.variables.items()
            if key not in versions.variables
        )
        if variables:
            commands.append(Write(variables))
        if known.task is not None and not versions.task:
            commands.append(WriteTask(known.task))
        notes = [] if versions.notes else known.notes
        for start in range(0, len(notes), NOTES_AT_ONCE):
            commands += [Append(note) for note in notes[start : start + NOTES_AT_ONCE]]
            line.stood_in = yield from self._tell(call, commands)
            commands = []
        if commands:
            line.stood_in = yield from self._tell(call, commands)

    def _tell(self, call: Call, commands: list[Command[Any]]) -> Steps[int]:
        """Have the fallback carry out commands; the stamp then. What has no place there is left out."""
        try:
            reply: Reply = yield Ask(
                "fallback",
                Call("seed", call.address, tuple(commands), UNLIMITED, call.ttl_us, token=os.urandom(16)),
            )
        except UsageError:
            WORKING.info("the fallback of working memory has no place for all that is known of a session")
            return 0
        return reply.stamp

    def _tell_fallback(self, line: SessionState, call: Call, learned: list[Command[Any]]) -> Steps[None]:
        """The primary answered after all, but the fallback serves the session by now: it learns of it."""
        yield Wait(line.turn)
        try:
            commands = [kept for command in learned if (kept := _without(command, line.journal)) is not None]
            if line.offline and commands:
                with contextlib.suppress(*AWAY):
                    line.stood_in = yield from self._tell(call, commands)
        finally:
            line.turn.give()

    def _replay(self, line: SessionState) -> Steps[bool]:
        """Write what waited; whether it is all there. This call has the turn."""
        outages = self.breaker.outages
        return self._replaying.replay(line, lambda error: self._failed(outages, error))

    def _replay_another(self, line: SessionState) -> Steps[None]:
        """Replay a session that may have no further calls."""
        other = self.lines.next_waiting()
        if other is None or other is line or not other.turn.take():
            return
        try:
            with contextlib.suppress(LocusMySQLError):  # whoever uses that session is told
                if other.offline:
                    yield from self._replay(other)
        finally:
            other.turn.give()


def _compared_in_vain(call: Call, reply: Reply) -> bool:
    """Whether a comparison did not hold."""
    results = zip(call.commands, reply.results, strict=True)
    return any(isinstance(command, CompareAndSet) and not result for command, result in results)


def _only_there(call: Call) -> Unavailable:
    """A checkpoint is to be restored that only the primary can have."""
    return Unavailable(
        f"Checkpoint {', '.join(map(repr, _restored(call)))} is not among those made since the session's storage went "
        "away; it can be restored when that is back. Try again later."
    )


def _restored(call: Call) -> set[str]:
    """The checkpoints that a call restores."""
    return {command.checkpoint_id for command in call.commands if isinstance(command, RestoreCheckpoint)}


def _size(call: Call) -> tuple[int, int]:
    """How many entries of a journal a call makes at most, and their bytes, roughly."""
    entries = size_bytes = 0
    for command in call.commands:
        match command:
            case Write(variables):
                entries += len(variables)
                size_bytes += sum(variable.size_bytes for variable in variables)
            case Remove(keys):
                entries += len(keys)
            case Append(note):
                entries += 1
                size_bytes += len(note)
            case WriteTask(value):
                entries += 1
                size_bytes += len(value or b"")
            case _:
                entries += 1
    return entries, size_bytes


def _without(command: Command[Any], journal: Journal) -> Command[Any] | None:
    """A command but for what something later waits of."""
    waiting, kinds = journal.keys, journal.kinds
    match command:
        case Write(variables):
            left = tuple(variable for variable in variables if variable.key not in waiting)
            return replace(command, variables=left) if left else None
        case Remove(keys):
            kept = tuple(key for key in keys if key not in waiting)
            return Remove(kept) if kept else None
        case WriteTask():
            return None if WriteTask in kinds else command
        case ClearNotes():
            return None if kinds & {Append, ClearNotes} else command
        case End():
            return None if kinds else command
    return command
