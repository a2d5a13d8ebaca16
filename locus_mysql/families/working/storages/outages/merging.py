"""Which of what waited is still to be written, given what others wrote meanwhile. Values in, values out.

A variable, the task's state or the notes have a *newer row* if their version is of somebody else and later than what
this process last saw. What would be written over one, or remove it, loses. Increments and notes only add, and never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ...calls import (
    Append,
    Call,
    Clear,
    ClearNotes,
    Command,
    CreateCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    Read,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    Variable,
    Versions,
    Write,
    WriteTask,
)
from ...values import likeness
from .journal import BARRIERS, Anything, Entry, Part

MEANWHILE = "somebody else wrote meanwhile"


@dataclass(frozen=True, slots=True)
class Look:
    """What a storage that is back holds of a session, as far as it matters to a part."""

    versions: Versions
    found: Mapping[str, Found]
    task: bytes | None
    last_notes: tuple[bytes, ...]
    stamp: int

    @classmethod
    def commands(cls, part: Part, ours: Ours) -> tuple[Command[Any], ...]:
        """What asks for it: versions, and values only where they tell something."""
        keys = dict.fromkeys(entry.key for entry in part.entries if entry.key is not None)
        whole = any(isinstance(entry.command, Clear | End | RestoreCheckpoint) for entry in part.entries)
        compared = [entry.key for entry in part.entries if not isinstance(entry.expects, Anything)]
        valued = tuple(dict.fromkeys(key for key in (*compared, *ours.values) if key in keys or whole))
        asked: list[Command[Any]] = [Inspect(None if whole else tuple(keys))]
        if valued:
            asked.append(Read(cast("tuple[str, ...]", valued)))
        if ours.tasks:
            asked.append(ReadTask())
        if ours.notes:
            asked.append(ReadNotes(1))
        return tuple(asked)

    @classmethod
    def of(cls, asked: tuple[Command[Any], ...], reply: Reply) -> Look:
        """The answer."""
        results = {type(command): result for command, result in zip(asked, reply.results, strict=True)}
        versions, found = results[Inspect], results.get(Read, {})
        return cls(
            cast(Versions, versions),
            cast("dict[str, Found]", found),
            cast("bytes | None", results.get(ReadTask)),
            tuple(cast("list[bytes]", results.get(ReadNotes, []))),
            reply.stamp,
        )


@dataclass(slots=True)
class Ours:
    """What of a session this process knows to be its own doing, or to have been there before.

    Args:
        seen: All versions up to this one.
        spans: All versions in these: above the first number, up to the second.
        values: Likenesses of variables that it may have written without being told; None for a deletion.
        tasks: Likewise, the task's state.
        notes: Likewise, notes.
    """

    seen: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    values: dict[str, bytes | None] = field(default_factory=dict)
    tasks: set[bytes | None] = field(default_factory=set)
    notes: set[bytes] = field(default_factory=set)

    def version(self, version: int) -> bool:
        """Whether it is the version of nobody else's later write."""
        return version <= self.seen or any(low < version <= high for low, high in self.spans)

    def variable(self, look: Look, key: str) -> bool:
        """Whether a variable has no newer row."""
        if self.version(look.versions.variables.get(key, 0)):
            return True
        return key in self.values and self.values[key] == likeness_of(look, key)

    def task(self, look: Look) -> bool:
        """Whether the task's state has no newer row."""
        return self.version(look.versions.task) or look.task in self.tasks

    def scratchpad(self, look: Look) -> bool:
        """Whether the notes have no newer row."""
        return self.version(look.versions.notes) or bool(self.notes.intersection(look.last_notes))

    def all_of(self, look: Look) -> bool:
        """Whether nothing has a newer row."""
        return (
            self.task(look) and self.scratchpad(look) and all(self.variable(look, k) for k in look.versions.variables)
        )

    def may_have_written(self, commands: tuple[Command[Any], ...]) -> None:
        """A call was not answered, and will not be made again: of what it may have written, the values are known."""
        for command in commands:
            match command:
                case Write(variables):
                    self.values.update((variable.key, variable.likeness) for variable in variables)
                case WriteTask(value):
                    self.tasks.add(value)
                case Append(note):
                    self.notes.add(note)

    def may_be(self, part: Part, reply: Reply) -> None:
        """A part that was sent again was carried out, now or before: its versions are not known."""
        for entry in part.entries:
            match entry.command:
                case Write((variable,)):
                    self.values[variable.key] = variable.likeness
                case Remove((key,)):
                    self.values[key] = None
                case Increment(key) if len(part.sent) == 1:
                    self.values[key] = str(reply.results[0]).encode()
                case WriteTask(value):
                    self.tasks.add(value)
        self.notes.update(note for entry in part.entries for note in [getattr(entry.command, "note", None)] if note)


def likeness_of(look: Look, key: str) -> bytes | None:
    """That of a variable as it is now."""
    return likeness(look.found[key].value) if key in look.found else None


@dataclass(slots=True)
class Merged:
    """What is still to be written of a part, and what lost, in words that hold no value."""

    commands: list[Command[Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    lost_keys: set[str] = field(default_factory=set)


def merge(part: Part, look: Look, ours: Ours, now_us: int) -> Merged:
    """What is still to be written of a part.

    Args:
        part: What waited.
        look: What is there.
        ours: What of that is nobody else's.
        now_us: The time, by the clock of the entries.
    """
    merged = Merged()
    written: set[str] = set()
    segment: list[Entry] = []
    made: set[str] = set()
    for entry in part.entries:
        if not isinstance(entry.command, BARRIERS):
            segment.append(entry)
            continue
        _segment(segment, look, ours, now_us, merged, written)
        segment = []
        match entry.command:
            case CreateCheckpoint(checkpoint_id):
                made.add(checkpoint_id)
            case RestoreCheckpoint(checkpoint_id) if checkpoint_id not in made and not ours.all_of(look):
                merged.lost.append(f"restoring checkpoint {checkpoint_id}: {MEANWHILE}")
                continue
            case End() if not ours.all_of(look):
                merged.lost.append(f"the end of the session: {MEANWHILE}")
                continue
        merged.commands.append(entry.command)
    _segment(segment, look, ours, now_us, merged, written)
    return merged


def leave_out_doubtful(part: Part, look: Look, ours: Ours) -> list[str]:
    """Leave out of a part what must not be done twice and may have been done; tells it.

    What was sent so long ago that its token may be forgotten was carried out only if there is a newer row. Then that is
    somebody else's or this, which nothing tells.
    """
    places: list[int] = []
    told: list[str] = []
    for place, entry in enumerate(part.entries):
        match entry.command:
            case Increment(key, by) if not ours.variable(look, key):
                told.append(f"variable {key!r}: whether {by} was added is not known any more")
            case Append() if not ours.scratchpad(look):
                told.append("a note: whether it was added is not known any more")
            case _:
                continue
        places.append(place)
    part.drop(places)
    return told


def _segment(entries: list[Entry], look: Look, ours: Ours, now_us: int, merged: Merged, written: set[str]) -> None:
    """Merge what stands between two checkpoints: what removes comes first, so that there is place for the rest."""
    removed: list[str] = []
    variables: list[Variable] = []
    first: list[Command[Any]] = []
    behind: list[Command[Any]] = []
    ends_us: dict[str, int] = {}
    for entry in entries:
        match entry.command:
            case Write((variable,)):
                if _lost(entry, look, ours, merged):
                    continue
                left_us = None if variable.ttl_us is None else entry.at_us + variable.ttl_us - now_us
                if left_us is not None and left_us <= 0:
                    removed.append(variable.key)
                    ends_us[variable.key] = now_us + left_us
                else:
                    variables.append(Variable(variable.key, variable.value, variable.likeness, left_us))
                    written.add(variable.key)
            case Remove((key,)):
                if not _lost(entry, look, ours, merged):
                    removed.append(key)
            case Clear():
                newer = {key for key in look.versions.variables if not ours.variable(look, key)}
                if newer:
                    merged.lost.append(f"clearing: {len(newer)} variables stay, which {MEANWHILE}")
                    removed += sorted((look.versions.variables.keys() | written) - newer)
                else:
                    first.append(Clear())
            case Increment(key):
                if entry.at_us >= ends_us.get(key, 0):
                    behind.append(entry.command)
                    written.add(key)
            case WriteTask():
                if ours.task(look):
                    behind.append(entry.command)
                else:
                    merged.lost.append(f"the task's state: {MEANWHILE}")
            case ClearNotes():
                if ours.scratchpad(look):
                    first.append(entry.command)
                else:
                    merged.lost.append(f"clearing the scratchpad: {MEANWHILE}")
            case _:
                behind.append(entry.command)
    if removed:
        first.append(Remove(tuple(dict.fromkeys(removed))))
    if variables:
        first.append(Write(tuple(variables)))
    merged.commands += first + behind


def _lost(entry: Entry, look: Look, ours: Ours, merged: Merged) -> bool:
    """Whether a write or deletion of a variable loses."""
    key = cast(str, entry.key)
    if not ours.variable(look, key):
        merged.lost.append(f"variable {key!r}: {MEANWHILE}")
    elif not isinstance(entry.expects, Anything) and likeness_of(look, key) != entry.expects:
        merged.lost.append(f"variable {key!r}: it was not what compare_and_set expected")
    else:
        return False
    merged.lost_keys.add(key)
    return True


def as_call(commands: tuple[Command[Any], ...], like: Call, token: bytes, if_stamp: int | None) -> Call:
    """A call that replays commands."""
    return Call("replay", like.address, commands, like.limits, like.ttl_us, token=token, if_stamp=if_stamp)
