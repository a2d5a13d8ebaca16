"""Executes calls on a storage that only reads a session and commits changes to it: `OptimisticOperations`. No I/O.

A write reads what its commands need (`Need`), computes the changes in this process, and commits them under the
condition that the session still has the stamp that was read. If another process was faster, it begins again. The
process keeps what it knows of a session after a write: while no other process writes, the next write is one round trip.
"""

from __future__ import annotations

import os
import random
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Generator, Iterable
from dataclasses import replace
from enum import Enum
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from ....errors import Unavailable, UsageError
from .. import calls
from ..content import NOTE, TASK, VARIABLE, Session
from ..session import Incomplete, Work, carry_out

T = TypeVar("T")

#: What is read of variables that are not named.
NOTHING, EXPIRING, NAMES, VALUES = range(4)

#: A number of notes above any limit.
ALL_NOTES = 2**31

#: A write that reads a session also reads the names of its variables, up to this number.
NAMES_AT_FIRST = 256

#: Limits of what a process keeps of sessions that it wrote to: sessions, their variables, and the bytes of a value.
KNOWN_SESSIONS, KNOWN_VARIABLES, KNOWN_VALUE_BYTES = 1_000, 50_000, 256

#: For how long the storage's clock is derived from this process's clocks, in seconds.
CLOCK_S = 60.0

#: For how long a write is repeated while other processes write to the session; and the bounds of the waits between.
TRYING_S = 30.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.002, 0.1


#: The recorded outcome of a `Replayed` command that was left out.
LEFT_OUT = calls.INT_LEAST + 1


class Need(NamedTuple):
    """What a call needs of a session.

    Args:
        values: Variables with their values.
        sizes: Variables without their values.
        task: Whether the task state is needed.
        variables: What is needed of all variables: `NOTHING`, those that expire, all names, or all values.
        notes: The number of last notes.
        checkpoints: Whether the descriptions of checkpoints are needed.
        contents: Checkpoints whose contents are needed.
        whole: Whether everything but the contents of checkpoints is needed.
        head: Whether the session's own data is needed.
    """

    values: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    task: bool = False
    variables: int = NOTHING
    notes: int = 0
    checkpoints: bool = False
    contents: frozenset[str] = frozenset()
    whole: bool = False
    head: bool = False

    def and_also(self, other: Need) -> Need:
        """Return what either needs."""
        both: Iterable[tuple[Any, Any]] = zip(self, other, strict=True)
        return Need(*(one | two if isinstance(one, bool | frozenset) else max(one, two) for one, two in both))

    def met_by(self, session: Session) -> bool:
        """Return whether a session that was kept after a write has what is needed."""
        if self.whole or self.contents or self.notes or self.variables == VALUES:
            return False
        if (self.checkpoints and not session.listed) or (self.variables and not session.complete):
            return False
        entries, complete = session.entries[VARIABLE], session.complete
        if self.task and not complete and not session.entries[TASK]:
            return False
        for key in self.values:
            entry = entries.get(key)
            if entry is None and not (complete or key in session.deleted):
                return False
            if entry is not None and entry.value is None:
                return False
        return complete or all(key in entries or key in session.deleted for key in self.sizes)


def need_of(call: calls.Call) -> Need:
    """Return what a call needs of its session."""
    need = Need(sizes=frozenset(call.used))
    for command in call.commands:
        need = need.and_also(_need_of_command(command))
    return need


def _made(command: calls.Command[object]) -> calls.Command[object]:
    """Return the command that was made, also of one that is replayed."""
    return command.command if isinstance(command, calls.Replayed) else command


def _need_of_command(command: calls.Command[object]) -> Need:
    match command:
        case calls.Replayed(inner):
            return _need_of_command(inner).and_also(Need(head=True))
        case calls.Read(keys):
            return Need(values=frozenset(keys))
        case calls.ReadAll():
            return Need(variables=VALUES)
        case calls.ListKeys() | calls.Clear():
            return Need(variables=NAMES)
        case calls.ReadTask() | calls.WriteTask():
            return Need(task=True)
        case calls.ReadNotes(last):
            return Need(notes=ALL_NOTES if last is None else last, head=last == 0)
        case calls.ListCheckpoints() | calls.DeleteCheckpoint():
            return Need(checkpoints=True)
        case calls.Measure():
            return Need(variables=EXPIRING, head=True)
        case calls.Write(variables):
            return Need(sizes=frozenset(variable.key for variable in variables))
        case calls.Remove(keys):
            return Need(sizes=frozenset(keys))
        case calls.Increment(key):
            return Need(values=frozenset((key,)))
        case calls.CompareAndSet(variable):
            return Need(values=frozenset((variable.key,)))
        case calls.CreateCheckpoint():
            return Need(variables=EXPIRING, checkpoints=True)
        case calls.RestoreCheckpoint(checkpoint_id):
            return Need(whole=True, checkpoints=True, contents=frozenset((checkpoint_id,)))
    return Need(head=True)


class Loaded(NamedTuple):
    """What a storage read of a session.

    Args:
        session: The session, expired or not; None if there is none.
        now_us: The storage's time.
    """

    session: Session | None
    now_us: int


class Commit(Enum):
    """The outcome of writing changes."""

    DONE = "the changes were written"
    OUTDATED = "another process wrote to the session, or something expired, since it was read"
    REPEATED = "the call was carried out before"


class Clock:
    """The clock of a storage, as this process knows it. Never ahead of it."""

    def __init__(self) -> None:
        self._known: tuple[int, float, float] | None = None

    def learn(self, now_us: int) -> None:
        """Record the time in an answer."""
        if now_us:
            self._known = now_us, time.monotonic(), time.time()

    def now_us(self) -> int | None:
        """Return the storage's time; None if the last answer is too old. The process may have been suspended."""
        if self._known is None:
            return None
        then_us, monotonic, wall = self._known
        passed = time.monotonic() - monotonic
        if max(passed, abs(time.time() - wall)) > CLOCK_S:
            return None
        return then_us + int(passed * 1_000_000)


class KnownSessions:
    """What a process knows of the sessions that it wrote to last, the least recently used ones first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[calls.Address, Session] = OrderedDict()
        self._variables = 0

    def take(self, address: calls.Address) -> Session | None:
        """Return and forget a session. It is kept again after a write that succeeded."""
        session = self._sessions.pop(address, None)
        if session is not None:
            self._variables -= len(session.entries[VARIABLE])
        return session

    def keep(self, address: calls.Address, session: Session) -> None:
        """Keep a session after a write, without large values, notes and contents of checkpoints."""
        variables = session.entries[VARIABLE]
        if len(variables) > KNOWN_VARIABLES // 4:
            return
        session.whole = False
        session.entries[NOTE].clear()
        if any(checkpoint.content is not None for checkpoint in session.checkpoints):
            session.checkpoints = [replace(checkpoint, content=None) for checkpoint in session.checkpoints]
        self.take(address)
        self._sessions[address] = session
        self._variables += len(variables)
        while len(self._sessions) > KNOWN_SESSIONS or self._variables > KNOWN_VARIABLES:
            self.take(next(iter(self._sessions)))


class OptimisticOperations(ABC):
    """Executes calls, as generators of the storage's own commands."""

    #: Whether the storage removes all notes of a session that it did not read.
    clears_all_notes = True

    def __init__(self) -> None:
        self.known = KnownSessions()
        self.clock = Clock()

    @abstractmethod
    def load(self, address: calls.Address, need: Need, *, fills: bool, renews: bool) -> Generator[Any, Any, Loaded]:
        """Read a session.

        Args:
            address: The session.
            need: What is needed of it.
            fills: Whether a write follows: its head, and the names of its variables if they are few, are read too.
            renews: Whether its time to live starts again.
        """

    @abstractmethod
    def commit(self, session: Session | None, work: Work) -> Generator[Any, Any, Commit]:
        """Write the changes of a call, all or none, if the session still is as it was read.

        Args:
            session: The session as it was read, expired or not.
            work: The call and its changes.
        """

    @abstractmethod
    def find(self, call: calls.Call) -> Generator[Any, Any, list[int] | None]:
        """Return the recorded outcomes of a call's commands; None if it was not carried out."""

    @abstractmethod
    def pause(self, seconds: float) -> Generator[Any, Any, None]:
        """Wait."""

    def execute(self, call: calls.Call) -> Generator[Any, Any, calls.Reply]:
        """Execute a call; see `Storage`. The caller lets only one write to a session run at a time."""
        if call.writes:
            return (yield from self._write(call if call.token else replace(call, token=os.urandom(16))))
        loaded = yield from self.load(call.address, need_of(call), fills=False, renews=call.renew)
        return carry_out(loaded.session, replace(call, renew=False) if call.renew else call, loaded.now_us).reply

    def _write(self, call: calls.Call) -> Generator[Any, Any, calls.Reply]:
        need = need_of(call)
        if not self.clears_all_notes and any(isinstance(_made(one), calls.ClearNotes) for one in call.commands):
            need = need.and_also(Need(whole=True, checkpoints=True))
        session, now_us = self.known.take(call.address), self.clock.now_us()
        fresh = session is None or now_us is None or session.expired(now_us) or not need.met_by(session)
        deadline, wait_s = time.monotonic() + TRYING_S, FIRST_WAIT_S
        loads = fresh
        while True:
            if loads:
                session, now_us = yield from self.load(call.address, need, fills=True, renews=False)
            assert now_us is not None  # noqa: S101 - for the type checker
            loads, fresh = True, loads
            try:
                work = carry_out(session, call, now_us)
            except Incomplete:
                need = need.and_also(Need(variables=NAMES))
                continue
            except (UsageError, calls.StampMoved):
                if not fresh:  # what this process knew may be outdated
                    continue
                earlier = yield from self._earlier_reply(call)
                if earlier is None:
                    raise
                return earlier
            if not work.writes:  # there is no session, and the call begins none
                return (yield from self._earlier_reply(call)) or work.reply
            committed = yield from self.commit(session, work)
            if committed is Commit.DONE:
                after = work.apply()
                if after is not None:
                    self._keep(call.address, after)
                return work.reply
            if committed is Commit.REPEATED:
                earlier = yield from self._earlier_reply(call)
                if earlier is not None:
                    return earlier
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Other processes changed session {call.address.session_id!r} during each attempt of this call, "
                    f"for {TRYING_S:g} s. Nothing was changed. Try again."
                )
            if fresh:
                yield from self.pause(random.uniform(0, wait_s))  # noqa: S311 - spreads load, guards no secret
                wait_s = min(1.5 * wait_s, LONGEST_WAIT_S)

    def _keep(self, address: calls.Address, session: Session) -> None:
        for entries in (session.entries[VARIABLE], session.entries[TASK]):
            for name, entry in entries.items():
                if entry.value is not None and len(entry.value) > KNOWN_VALUE_BYTES:
                    entries[name] = entry._replace(value=None)
        self.known.keep(address, session)

    def _earlier_reply(self, call: calls.Call) -> Generator[Any, Any, calls.Reply | None]:
        """Return the reply to a call that was carried out before; its reads are executed now. None if it was not."""
        outcomes = yield from self.find(call)
        if outcomes is None:
            return None
        *outcomes, stamp = outcomes if call.stamped else [*outcomes, 0]
        reads = tuple(command for command in call.commands if command.reads)
        again = replace(call, commands=reads, used=(), if_stamp=None)
        loaded = yield from self.load(call.address, need_of(again).and_also(Need(head=True)), fills=False, renews=False)
        reply = carry_out(loaded.session, again, loaded.now_us).reply
        answers = iter(reply.results)
        results = (
            next(answers) if command.reads else result_of(command, outcome)
            for command, outcome in zip(call.commands, outcomes, strict=True)
        )
        return reply._replace(results=tuple(results), stamp=stamp or reply.stamp)


def outcomes_of(work: Work) -> list[int]:
    """Return the results of a call's commands as numbers, 0 for those without one; then the stamp, if asked for."""
    results = zip(work.call.commands, work.reply.results, strict=True)
    outcomes = [_outcome(command, result) for command, result in results]
    return [*outcomes, work.reply.stamp] if work.call.stamped else outcomes


def _outcome(command: calls.Command[object], result: object) -> int:
    if isinstance(command, calls.Replayed):
        return int(result is True and isinstance(command.command, calls.CompareAndSet)) if result else LEFT_OUT
    return int(result) if isinstance(result, int) and not command.reads else 0


def result_of(command: calls.Command[object], outcome: int) -> object:
    """Return the result of a command that writes from its recorded outcome."""
    if isinstance(command, calls.Replayed):  # the first time, it may have been the command itself
        return outcome not in ({LEFT_OUT, 0} if isinstance(command.command, calls.CompareAndSet) else {LEFT_OUT})
    return None if command.nothing is None else type(command.nothing)(outcome)


def token_of(call: calls.Call, index: int) -> bytes:
    """Return the token of one of a call's commands. The first one has the token of the call."""
    return call.token if index == 0 else sha256(call.token + index.to_bytes(4)).digest()[:16]
