"""What a process keeps of sessions for outages: what it has seen of them (`Mirror`), and writes that wait. No I/O."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....errors import CapacityExceeded
from .. import calls
from .in_memory import InMemoryStorage
from .interface import FairLock

#: A part of the queue takes no further writes once it has this many, or this many bytes. Each part is sent as one call.
PART_ENTRIES, PART_BYTES = 64, 1_048_576

#: Approximate size of a queued write without its content.
ENTRY_BYTES = 200

#: A part that is sent again within this time is surely recognised, even if clocks differ and sending takes time.
RECOGNISED_US = calls.RECOGNISED_US * 14 // 15

#: The number of descriptions of lost writes that are kept of a session.
LOST = 100


def single(command: calls.Command[Any]) -> list[calls.Command[Any]]:
    """Return a command that writes as commands of one variable each."""
    match command:
        case calls.Write(variables):
            return [calls.Write((variable,)) for variable in variables]
        case calls.Remove(keys):
            return [calls.Remove((key,)) for key in keys]
        case calls.Replayed(inner):  # of a storage that has this one as its fallback
            return single(inner)
    return [] if command.reads else [command]


def shown(command: calls.Command[Any], result: Any) -> list[calls.Command[Any]]:
    """Return commands of one variable each that write what a command and its result show of the session."""
    match command:
        case calls.Read(keys):
            return [_as_found(key, result.get(key)) for key in keys]
        case calls.ReadAll():
            return [calls.Clear(), *(_as_found(key, found) for key, found in result.items())]
        case calls.Increment(key):
            return [calls.Write((calls.Variable(key, b"%d" % result),))]
        case calls.CompareAndSet(variable):
            return [calls.Write((replace(variable, ttl_us=None),))] if result else []
        case calls.ReadTask():
            return [calls.WriteTask(result)]
        case calls.ReadNotes(None):
            return [calls.ClearNotes(), *map(calls.Append, result)]
        case calls.RestoreCheckpoint():
            return [calls.Clear(), calls.ClearNotes(), calls.WriteTask(None)]
        case calls.Replayed(calls.Increment(key)):
            return [calls.Remove((key,))]
        case calls.Replayed(inner):
            return shown(inner, result) if result else []
        case calls.CreateCheckpoint() | calls.DeleteCheckpoint() | calls.Touch():
            return []
    return single(command)


def _as_found(key: str, found: calls.Found | None) -> calls.Command[Any]:
    """Return the command that writes a variable as it was read."""
    return calls.Remove((key,)) if found is None else calls.Write((calls.Variable(key, found.value, found.left_us),))


#: The limits of a session in the mirror: none but the memory of all.
_UNLIMITED = calls.Limits(2**31, 2**31, 2**40, 2**31)


class Mirror:
    """What a process has seen of the sessions that it used last. Thread-safe.

    It is a storage in memory whose clock is the primary's, and whose versions are stamps of the primary. What is
    learned is written as replayed commands, so of two answers that overtook each other the later one stays.

    Args:
        max_sessions: The maximum number of sessions.
        max_bytes: The maximum number of bytes of values, with their keys.
    """

    def __init__(self, max_sessions: int, max_bytes: int) -> None:
        self._storage = InMemoryStorage(
            max_sessions=max_sessions, max_bytes=max_bytes, forgets=True, clock=lambda: self._now_us
        )
        self._now_us = 0
        self._lock = threading.Lock()

    def learn(self, call: calls.Call, reply: calls.Reply, stamp: int) -> None:
        """Record what a call and its reply show.

        Args:
            call: The call.
            reply: The reply.
            stamp: The stamp that the session had then on the primary, or the time by its clock.
        """
        address = call.address
        with self._lock:
            if not reply.stamp:  # it has ended
                self._write(address, [calls.End()], stamp)
                return
            written = [calls.Replayed(calls.Clear(), stamp)] if reply.evicted else []
            for command, result in zip(call.commands, reply.results, strict=True):
                # A note that was added is new; notes that were read may have been seen before.
                sent_us = stamp + 1 if command.reads else None
                for one in shown(command, result):
                    written.append(calls.Replayed(self._timed(address, command, one, stamp), stamp, sent_us))
            self._write(address, written, stamp)

    def restamp(self, address: calls.Address, stamp: int, lost: set[str]) -> None:
        """Count what was seen as seen at a stamp of the primary; forget some variables."""
        with self._lock:
            content = self._content(address, stamp)
            kept = [one for one in content if not (isinstance(one, calls.Write) and one.variables[0].key in lost)]
            self._write(address, [calls.End()], stamp)
            self._write(address, [calls.Replayed(one, stamp) for one in kept], stamp)

    def content(self, address: calls.Address, now_us: int) -> list[calls.Command[Any]]:
        """Return commands that write what was seen of a session, by the time of the primary."""
        with self._lock:
            return self._content(address, now_us)

    def forget_tenant(self, tenant: str) -> None:
        """Forget all sessions of a tenant."""
        self._storage.forget_tenant_blocking(tenant)

    def _content(self, address: calls.Address, now_us: int) -> list[calls.Command[Any]]:
        everything = calls.ReadAll(), calls.ReadTask(), calls.ReadNotes()
        variables, task, notes = self._ask(address, everything, now_us)
        found = [_as_found(key, one) for key, one in variables.items()]
        return [*found, *([] if task is None else [calls.WriteTask(task)]), *map(calls.Append, notes)]

    def _timed(
        self, address: calls.Address, command: calls.Command[Any], shows: calls.Command[Any], now_us: int
    ) -> calls.Command[Any]:
        """Return what a command shows with the time to live that its variable keeps."""
        match command, shows:
            case calls.Increment() | calls.CompareAndSet(), calls.Write((variable,)):
                (found,) = self._ask(address, (calls.Read((variable.key,)),), now_us)
                if variable.key in found:
                    return calls.Write((replace(variable, ttl_us=found[variable.key].left_us),))
        return shows

    def _write(self, address: calls.Address, commands: Sequence[calls.Command[Any]], now_us: int) -> None:
        try:
            self._ask(address, tuple(commands), now_us)
        except CapacityExceeded:  # the session alone is larger than the mirror may be
            self._ask(address, (calls.End(),), now_us)

    def _ask(self, address: calls.Address, commands: tuple[calls.Command[Any], ...], now_us: int) -> tuple[Any, ...]:
        self._now_us = now_us + 1
        return self._storage.execute_blocking(calls.Call("mirror", address, commands, _UNLIMITED)).results


def now_us() -> int:
    """The current time, by this process's monotonic clock."""
    return time.monotonic_ns() // 1_000


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
        #: What answers of earlier stamps show is outdated: a checkpoint was restored, or writes were replayed.
        self.shown_since = 0
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


def reason(command: calls.Command[Any]) -> str:
    """Return why a write was dropped."""
    match command:
        case calls.CompareAndSet():
            return "it did not have the value that compare_and_set expected"
        case calls.Increment() | calls.Append():
            return "it is not known whether the storage had carried it out"
    return "another process wrote meanwhile"
