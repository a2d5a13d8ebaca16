"""What was written while a storage was away, and waits to be written to it. Does no I/O.

Of a variable only the last write counts, increments are added up, and what was cleared need not be written. Checkpoints
keep their place: nothing is joined across one, so that each holds what it held.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from ...calls import (
    INT_LEAST,
    INT_MOST,
    READS,
    Append,
    Call,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Increment,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Variable,
    Write,
    WriteTask,
)

#: Commands across which nothing is joined.
BARRIERS = (CreateCheckpoint, RestoreCheckpoint, DeleteCheckpoint, End)

#: A part has at most so many entries and, but for one that is larger, bytes; it is sent as one call.
PART_ENTRIES, PART_BYTES = 64, 1_048_576

#: So many of the last calls are recognised when they are repeated.
RECOGNISED_CALLS = 10_000

#: What an entry takes beside its content, roughly.
ENTRY_BYTES = 200


class Anything:
    """The type of `ANYTHING`."""

    def __repr__(self) -> str:
        return "ANYTHING"


#: What a write expects that is no comparison.
ANYTHING: Final = Anything()

Expected: TypeAlias = bytes | Anything | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to write.

    Args:
        command: As a command; `Write` and `Remove` of one variable each.
        at_us: When it was written, by this process's clock.
        expects: The likeness that the variable must have, None if it must not be there.
    """

    command: Command[Any]
    at_us: int
    expects: Expected = ANYTHING

    @property
    def key(self) -> str | None:
        """The variable it writes."""
        match self.command:
            case Write((variable,)):
                return variable.key
            case Remove((key,)) | Increment(key):
                return key
        return None

    @property
    def size_bytes(self) -> int:
        """What it takes, roughly."""
        match self.command:
            case Write((variable,)):
                return ENTRY_BYTES + variable.size_bytes + len(variable.likeness)
            case WriteTask(value):
                return ENTRY_BYTES + len(value or b"")
            case Append(note):
                return ENTRY_BYTES + len(note)
        return ENTRY_BYTES + len((self.key or "").encode())


@dataclass(slots=True)
class Part:
    """Entries that are sent as one call.

    Args:
        token: The call's.
        entries: In order.
        sent: What was sent without an answer: whether it was carried out is not known.
        risky: Whether anything was ever sent with the token, and may still arrive.
        sent_us: When it was first sent, by this process's clock.
        closed: Whether nothing more is added.
        lost: What of it lost when it was sent, in words.
    """

    token: bytes = field(default_factory=lambda: os.urandom(16))
    entries: list[Entry] = field(default_factory=list)
    sent: tuple[Command[Any], ...] = ()
    risky: bool = False
    sent_us: int = 0
    closed: bool = False
    lost: list[str] = field(default_factory=list)
    size_bytes: int = 0

    def append(self, entry: Entry) -> None:
        """Add an entry behind all others."""
        self.entries.append(entry)
        self.size_bytes += entry.size_bytes

    def last(self, key: str) -> Entry | None:
        """The last entry of a variable."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def drop(self, places: list[int]) -> None:
        """Remove entries by their places, which rise."""
        for place in reversed(places):
            self.size_bytes -= self.entries.pop(place).size_bytes

    def segment(self) -> int:
        """Where the entries begin that come behind the last checkpoint."""
        for place in range(len(self.entries), 0, -1):
            if isinstance(self.entries[place - 1].command, BARRIERS):
                return place
        return 0

    @property
    def full(self) -> bool:
        """Whether further entries go into another part. What was sent once may be carried out, as it was sent."""
        return self.closed or self.risky or len(self.entries) >= PART_ENTRIES or self.size_bytes >= PART_BYTES


class Journal:
    """What of one session waits to be written, in order."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._tokens: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(part.entries) for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """What it takes, roughly."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def keys(self) -> set[str]:
        """The variables of which something waits."""
        return {entry.key for part in self.parts for entry in part.entries if entry.key is not None}

    @property
    def kinds(self) -> set[type[Command[Any]]]:
        """Of which kinds the commands are that wait."""
        return {type(entry.command) for part in self.parts for entry in part.entries}

    def note(self, call: Call, reply: Reply, now_us: int, *, uncertain: bool = False) -> None:
        """Remember a call that another storage carried out.

        Args:
            call: The call.
            reply: What came of it there.
            now_us: The time.
            uncertain: Whether it was sent to the storage that is away, and may have been carried out there.
        """
        if call.token and call.token in self._tokens:
            return
        entries = list(entries_of(call, reply, now_us))
        self._tokens[call.token] = None
        if len(self._tokens) > RECOGNISED_CALLS:
            self._tokens.popitem(last=False)
        if uncertain:
            writing = tuple(command for command in call.commands if not isinstance(command, READS))
            if not entries:  # a comparison that did not hold here is not to hold there later
                writing, entries = (Touch(),), [Entry(Touch(), now_us)]
            token = call.token or os.urandom(16)
            part = Part(token=token, sent=writing, risky=True, sent_us=now_us, closed=True)
            for entry in entries:
                part.append(entry)
            self.parts.append(part)
            return
        for entry in entries:
            self._add(entry)

    def expires(self, key: str, left_us: int | None, now_us: int) -> None:
        """The time to live that a variable has left which was written last."""
        for part in reversed(self.parts):
            for place, entry in enumerate(part.entries):
                if entry.key == key and isinstance(entry.command, Write) and entry is part.last(key):
                    (variable,) = entry.command.variables
                    part.entries[place] = replace(
                        entry, command=Write((replace(variable, ttl_us=left_us),)), at_us=now_us
                    )
                    return

    def done(self, part: Part) -> None:
        """A part was written, or is not to be."""
        self.parts.remove(part)
        if not self.parts:
            self._tokens.clear()

    def split(self, part: Part) -> None:
        """Send each entry of a part by itself."""
        place = self.parts.index(part)
        singles = []
        for entry in part.entries:
            single = Part(closed=True)
            single.append(entry)
            singles.append(single)
        self.parts[place : place + 1] = singles

    def _add(self, entry: Entry) -> None:
        if isinstance(entry.command, End):
            self.parts = [part for part in self.parts if part.risky]
            ending = Part(closed=True)
            ending.append(entry)
            self.parts.append(ending)
            return
        if not self.parts or self.parts[-1].full:
            self.parts.append(Part())
        part = self.parts[-1]
        if not isinstance(entry.expects, Anything) and (earlier := part.last(cast(str, entry.key))):
            entry = replace(entry, expects=earlier.expects)  # what it was compared with is written with it
        join(part, entry)


def entries_of(call: Call, reply: Reply, now_us: int) -> Iterator[Entry]:
    """What a call wrote."""
    for command, result in zip(call.commands, reply.results, strict=True):
        match command:
            case Write(variables):
                yield from (Entry(Write((variable,)), now_us) for variable in variables)
            case Remove(keys):
                yield from (Entry(Remove((key,)), now_us) for key in keys)
            case CompareAndSet(variable, likeness):
                if result:
                    yield Entry(Write((variable,)), now_us, likeness)
            case _ if not isinstance(command, READS):
                yield Entry(command, now_us)


def join(part: Part, entry: Entry) -> None:
    """Add an entry to a part, in the place of those that it makes superfluous."""
    start = part.segment()
    tail = list(enumerate(part.entries))[start:]
    match entry.command:
        case Write() | Remove():
            places = [place for place, other in tail if other.key == entry.key]
            part.drop(places)
        case Increment():
            same = [(place, other) for place, other in tail if other.key == entry.key]
            if same:
                place, last = same[-1]
                joined = added(last, entry.command)
                if joined is not None:
                    part.drop([place])
                    part.append(joined)
                    return
        case Clear():
            part.drop([place for place, other in tail if other.key is not None or isinstance(other.command, Clear)])
        case ClearNotes():
            part.drop([place for place, other in tail if isinstance(other.command, Append | ClearNotes)])
        case WriteTask():
            part.drop([place for place, other in tail if isinstance(other.command, WriteTask)])
        case Touch(ttl_us):
            touches = [place for place, other in tail if isinstance(other.command, Touch)]
            if ttl_us is None and touches:
                return
            part.drop(touches)
    part.append(entry)


def added(last: Entry, increment: Increment) -> Entry | None:
    """An increment joined to what stands before it on the same variable; None if they cannot be."""
    match last.command:
        case Increment(key, by) if INT_LEAST <= by + increment.by <= INT_MOST:
            return replace(last, command=Increment(key, by + increment.by))
        case Write((variable,)) if variable.ttl_us is None:  # else it might have expired in between
            text = str(int(variable.value) + increment.by).encode()
            return replace(last, command=Write((Variable(variable.key, text, text),)))
    return None
