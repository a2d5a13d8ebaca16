"""Queued writes of one session, which wait for a primary storage that is unavailable. Does no I/O.

Writes are coalesced: of a variable only the last write is kept, increments are added up, and cleared data is not
written. Nothing is coalesced across a checkpoint, so that each checkpoint holds the state at its time.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from ... import calls

#: Commands across which nothing is coalesced.
BARRIERS = (calls.CreateCheckpoint, calls.RestoreCheckpoint, calls.DeleteCheckpoint, calls.End)

#: A part takes no further entries once it has this many entries or bytes. Each part is sent as one call.
PART_ENTRIES, PART_BYTES = 64, 1_048_576

#: The number of last calls whose repetition is recognised.
RECOGNISED_CALLS = 10_000

#: Approximate size of an entry without its content.
ENTRY_BYTES = 200


class Anything:
    """The type of `ANYTHING`."""

    def __repr__(self) -> str:
        return "ANYTHING"


#: The expectation of a write that compares nothing.
ANYTHING: Final = Anything()

Expected: TypeAlias = bytes | Anything | None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One queued write.

    Args:
        command: The command; a `Write` or `Remove` has one variable.
        at_us: When it was written, by this process's clock.
        expects: The canonical form that the variable must have; None if it must not exist.
    """

    command: calls.Command[Any]
    at_us: int
    expects: Expected = ANYTHING

    @property
    def key(self) -> str | None:
        """The variable that is written."""
        match self.command:
            case calls.Write((variable,)):
                return variable.key
            case calls.Remove((key,)) | calls.Increment(key):
                return key
        return None

    @property
    def size_bytes(self) -> int:
        """Approximate size."""
        match self.command:
            case calls.Write((variable,)):
                return ENTRY_BYTES + variable.size_bytes + len(variable.canonical)
            case calls.WriteTask(value):
                return ENTRY_BYTES + len(value or b"")
            case calls.Append(note):
                return ENTRY_BYTES + len(note)
        return ENTRY_BYTES + len((self.key or "").encode())


@dataclass(slots=True, eq=False)
class Part:
    """Entries that are sent as one call.

    Args:
        token: The token of the call.
        entries: The entries, in order.
        sent: Commands that were sent and not answered, so that it is unknown whether they were carried out.
        risky: Whether anything was ever sent with the token, and may still arrive.
        sent_us: When the part was first sent, by this process's clock.
        closed: Whether the part takes no further entries.
        lost: Descriptions of entries that were dropped when the part was merged.
    """

    token: bytes = field(default_factory=lambda: os.urandom(16))
    entries: list[JournalEntry] = field(default_factory=list)
    sent: tuple[calls.Command[Any], ...] = ()
    risky: bool = False
    sent_us: int = 0
    closed: bool = False
    lost: list[str] = field(default_factory=list)
    size_bytes: int = 0

    def append(self, entry: JournalEntry) -> None:
        """Add an entry after all others."""
        self.entries.append(entry)
        self.size_bytes += entry.size_bytes

    def last(self, key: str) -> JournalEntry | None:
        """The last entry that writes a variable."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def drop(self, indexes: Collection[int]) -> None:
        """Remove entries by their indexes."""
        dropped = set(indexes)
        self.size_bytes -= sum(self.entries[index].size_bytes for index in dropped)
        self.entries = [entry for index, entry in enumerate(self.entries) if index not in dropped]

    def coalesce(self, entry: JournalEntry) -> None:
        """Add an entry and remove those that it supersedes."""
        tail = list(enumerate(self.entries))[self._after_last_barrier() :]
        superseded: list[int] = []
        match entry.command:
            case calls.Write() | calls.Remove():
                superseded = [index for index, other in tail if other.key == entry.key]
            case calls.Increment() as increment:
                index, last = next(((at, other) for at, other in reversed(tail) if other.key == entry.key), (0, None))
                joined = None if last is None else _added(last, increment)
                if joined is not None:
                    superseded, entry = [index], joined
            case calls.Clear():
                superseded = [
                    index for index, other in tail if other.key is not None or isinstance(other.command, calls.Clear)
                ]
            case calls.ClearNotes():
                superseded = _indexes(tail, calls.Append, calls.ClearNotes)
            case calls.WriteTask():
                superseded = _indexes(tail, calls.WriteTask)
            case calls.Touch(ttl_us):
                superseded = _indexes(tail, calls.Touch)
                if ttl_us is None and superseded:
                    return
        if superseded:
            self.drop(superseded)
        self.append(entry)

    def _after_last_barrier(self) -> int:
        for index in range(len(self.entries), 0, -1):
            if isinstance(self.entries[index - 1].command, BARRIERS):
                return index
        return 0

    @property
    def full(self) -> bool:
        """Return whether further entries need another part. A part that was sent may have been executed as it was."""
        return self.closed or self.risky or len(self.entries) >= PART_ENTRIES or self.size_bytes >= PART_BYTES


class Journal:
    """The queued writes of one session, in order."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        #: Entries of all parts, and their bytes.
        self.entries = self.size_bytes = 0
        self._tokens: OrderedDict[bytes, None] = OrderedDict()

    @property
    def keys(self) -> set[str]:
        """The variables that queued writes write."""
        return {entry.key for part in self.parts for entry in part.entries if entry.key is not None}

    @property
    def kinds(self) -> set[type[calls.Command[Any]]]:
        """The types of the queued commands."""
        return {type(entry.command) for part in self.parts for entry in part.entries}

    def record(self, call: calls.Call, reply: calls.Reply, now_us: int) -> None:
        """Queue the writes of a call that the fallback carried out.

        Args:
            call: The call.
            reply: The fallback's reply.
            now_us: The current time.
        """
        if not self._recognised(call):
            for entry in entries_of(call, reply, now_us):
                self._add(entry)

    def record_uncertain(self, call: calls.Call, reply: calls.Reply, now_us: int) -> None:
        """Queue the writes of a call that was also sent to the primary, which may have carried it out."""
        if self._recognised(call):
            return
        writing = tuple(command for command in call.commands if not isinstance(command, calls.READS))
        entries = list(entries_of(call, reply, now_us))
        if not entries:  # a comparison that was not fulfilled in the fallback must not be fulfilled later
            writing, entries = (calls.Touch(),), [JournalEntry(calls.Touch(), now_us)]
        part = Part(token=call.token or os.urandom(16), sent=writing, risky=True, sent_us=now_us, closed=True)
        for entry in entries:
            part.append(entry)
        self.parts.append(part)
        self._count(part)

    def set_ttl(self, key: str, left_us: int | None, now_us: int) -> None:
        """Set the time to live that the last queued `Write` of a variable gives it."""
        for part in reversed(self.parts):
            for index in range(len(part.entries) - 1, -1, -1):
                entry = part.entries[index]
                if entry.key != key:
                    continue
                if isinstance(entry.command, calls.Write):
                    (variable,) = entry.command.variables
                    renewed = calls.Write((replace(variable, ttl_us=left_us),))
                    part.entries[index] = replace(entry, command=renewed, at_us=now_us)
                    return
                break

    def remove(self, part: Part) -> None:
        """Remove a part that was written, or is not to be."""
        self.parts.remove(part)
        self._count(part, -1)
        if not self.parts:
            self._tokens.clear()

    def split(self, part: Part) -> None:
        """Replace a part by one part for each of its entries."""
        singles = []
        for entry in part.entries:
            single = Part(closed=True)
            single.append(entry)
            singles.append(single)
        index = self.parts.index(part)
        self.parts[index : index + 1] = singles

    def drop(self, part: Part, indexes: Collection[int]) -> None:
        """Remove entries of a part by their indexes."""
        self._count(part, -1)
        part.drop(indexes)
        self._count(part)

    def _recognised(self, call: calls.Call) -> bool:
        """Return whether a call was recorded before. Its token is remembered."""
        if call.token and call.token in self._tokens:
            return True
        self._tokens[call.token] = None
        if len(self._tokens) > RECOGNISED_CALLS:
            self._tokens.popitem(last=False)
        return False

    def _add(self, entry: JournalEntry) -> None:
        if isinstance(entry.command, calls.End):
            for gone in [part for part in self.parts if not part.risky]:
                self._count(gone, -1)
            self.parts = [part for part in self.parts if part.risky]
            self.parts.append(Part(closed=True))
        elif not self.parts or self.parts[-1].full:
            self.parts.append(Part())
        part = self.parts[-1]
        if not isinstance(entry.expects, Anything) and (earlier := part.last(cast(str, entry.key))):
            entry = replace(entry, expects=earlier.expects)  # the value it was compared with is written in this part
        self._count(part, -1)
        part.coalesce(entry)
        self._count(part)

    def _count(self, part: Part, sign: int = 1) -> None:
        self.entries += sign * len(part.entries)
        self.size_bytes += sign * part.size_bytes


def entries_of(call: calls.Call, reply: calls.Reply, now_us: int) -> Iterator[JournalEntry]:
    """The writes of a call, as entries."""
    for command, result in zip(call.commands, reply.results, strict=True):
        match command:
            case calls.Write(variables):
                yield from (JournalEntry(calls.Write((variable,)), now_us) for variable in variables)
            case calls.Remove(keys):
                yield from (JournalEntry(calls.Remove((key,)), now_us) for key in keys)
            case calls.CompareAndSet(variable, canonical):
                if result:
                    yield JournalEntry(calls.Write((variable,)), now_us, canonical)
            case _ if not isinstance(command, calls.READS):
                yield JournalEntry(command, now_us)


def _indexes(entries: list[tuple[int, JournalEntry]], *kinds: type[calls.Command[Any]]) -> list[int]:
    """The indexes of the entries whose commands are of these types."""
    return [index for index, entry in entries if isinstance(entry.command, kinds)]


def _added(last: JournalEntry, increment: calls.Increment) -> JournalEntry | None:
    """The last entry of a variable with an increment added to it; None if the two cannot be joined."""
    match last.command:
        case calls.Increment(key, by) if calls.INT_LEAST <= by + increment.by <= calls.INT_MOST:
            return replace(last, command=calls.Increment(key, by + increment.by))
        case calls.Write((variable,)) if variable.ttl_us is None:  # else it might have expired before the increment
            text = str(int(variable.value) + increment.by).encode()
            return replace(last, command=calls.Write((calls.Variable(variable.key, text, text),)))
    return None
