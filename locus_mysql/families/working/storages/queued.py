"""Writes that wait for the primary, and what a process remembers of a session meanwhile. Does no I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from .. import calls
from .interface import FairLock
from .mirror import now_us

#: A part of the queue takes no further writes once it has this many, or this many bytes. Each part is sent as one call.
PART_ENTRIES, PART_BYTES = 64, 1_048_576

#: Approximate size of a queued write without its content.
ENTRY_BYTES = 200

#: A part that is sent again within this time is surely recognised, even if clocks differ and sending takes time.
RECOGNISED_US = calls.RECOGNISED_US * 14 // 15

#: The number of descriptions of lost writes that are kept of a session.
LOST = 100


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


def reason(command: calls.Command[Any]) -> str:
    """Return why a write was dropped."""
    match command:
        case calls.CompareAndSet():
            return "it did not have the value that compare_and_set expected"
        case calls.Increment() | calls.Append():
            return "it is not known whether the storage had carried it out"
    return "another process wrote meanwhile"
