"""Decides which queued writes are still written after other processes wrote meanwhile. Does no I/O.

A variable, the task state or the notes are *newer* if their version is later than what this process last saw, and not
of a write by this process. A queued write that would overwrite or remove something newer is dropped, and reported.
Increments and notes only add, so they are always written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ... import calls
from ...values import canonical_form
from .journal import BARRIERS, Anything, JournalEntry, Part

MEANWHILE = "another process wrote meanwhile"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a session on the primary, as far as a part depends on it."""

    versions: calls.Versions
    found: Mapping[str, calls.Found]
    task: bytes | None
    last_notes: tuple[bytes, ...]
    stamp: int

    @classmethod
    def commands(cls, part: Part, own: OwnWrites) -> tuple[calls.Command[Any], ...]:
        """The commands that read a snapshot: versions, and values only where they decide something."""
        keys = dict.fromkeys(entry.key for entry in part.entries if entry.key is not None)
        whole = any(isinstance(one.command, calls.Clear | calls.End | calls.RestoreCheckpoint) for one in part.entries)
        compared = {entry.key: None for entry in part.entries if not isinstance(entry.expects, Anything)}
        decisive = (*compared, *own.values) if whole else (*compared, *(key for key in keys if key in own.values))
        valued = tuple(dict.fromkeys(cast("tuple[str, ...]", decisive)))
        commands: list[calls.Command[Any]] = [calls.Inspect(None if whole else tuple(keys))]
        if valued:
            commands.append(calls.Read(valued))
        if own.tasks:
            commands.append(calls.ReadTask())
        if own.notes:
            commands.append(calls.ReadNotes(1))
        return tuple(commands)

    @classmethod
    def of(cls, commands: tuple[calls.Command[Any], ...], reply: calls.Reply) -> Snapshot:
        """The snapshot in the reply to these commands."""
        results: dict[type, Any] = dict(zip(map(type, commands), reply.results, strict=True))
        return cls(
            results[calls.Inspect],
            results.get(calls.Read, {}),
            results.get(calls.ReadTask),
            tuple(results.get(calls.ReadNotes, ())),
            reply.stamp,
        )

    def canonical(self, key: str) -> bytes | None:
        """The canonical form of a variable; None if it does not exist."""
        return canonical_form(self.found[key].value) if key in self.found else None


@dataclass(slots=True)
class OwnWrites:
    """Versions and values of a session that are not later writes of other processes.

    Args:
        seen: All versions up to this one, which this process has seen.
        spans: Ranges of versions that this process wrote, in rising order, without overlaps: above the first number, up
            to the second.
        values: Canonical forms of variables that this process may have written at an unknown version; None: a deletion.
        tasks: The same for task states.
        notes: The same for notes.
    """

    seen: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    values: dict[str, bytes | None] = field(default_factory=dict)
    tasks: set[bytes | None] = field(default_factory=set)
    notes: set[bytes] = field(default_factory=set)

    def version(self, version: int) -> bool:
        """Return whether a version is not from a later write of another process."""
        if version <= self.seen:
            return True
        index = bisect_left(self.spans, version, key=lambda span: span[1])
        return index < len(self.spans) and self.spans[index][0] < version

    def wrote(self, before: int, stamp: int) -> None:
        """Add the versions after one stamp, up to another."""
        while self.spans and self.spans[-1][1] >= before:
            low, high = self.spans.pop()
            before, stamp = min(low, before), max(high, stamp)
        self.spans.append((before, stamp))

    def variable(self, snapshot: Snapshot, key: str) -> bool:
        """Return whether a variable is not newer."""
        if self.version(snapshot.versions.variables.get(key, 0)):
            return True
        return key in self.values and self.values[key] == snapshot.canonical(key)

    def task(self, snapshot: Snapshot) -> bool:
        """Return whether the task state is not newer."""
        return self.version(snapshot.versions.task) or snapshot.task in self.tasks

    def scratchpad(self, snapshot: Snapshot) -> bool:
        """Return whether the notes are not newer."""
        return self.version(snapshot.versions.notes) or bool(self.notes.intersection(snapshot.last_notes))

    def newer_variables(self, snapshot: Snapshot) -> set[str]:
        """The variables that are newer."""
        return {key for key in snapshot.versions.variables if not self.variable(snapshot, key)}

    def whole_session(self, snapshot: Snapshot) -> bool:
        """Return whether nothing is newer."""
        return self.task(snapshot) and self.scratchpad(snapshot) and not self.newer_variables(snapshot)

    def may_have_written(self, commands: tuple[calls.Command[Any], ...]) -> None:
        """Add the values of a call that was not answered and will not be repeated."""
        for command in commands:
            match command:
                case calls.Write(variables):
                    self.values.update((variable.key, variable.canonical) for variable in variables)
                case calls.WriteTask(value):
                    self.tasks.add(value)
                case calls.Append(note):
                    self.notes.add(note)

    def wrote_once(self, part: Part, reply: calls.Reply) -> None:
        """Add the values of a part that was sent again: it was carried out by this try or before, so at any version."""
        for entry in part.entries:
            match entry.command:
                case calls.Remove((key,)):
                    self.values[key] = None
                case calls.Increment(key) if len(part.sent) == 1:
                    self.values[key] = str(reply.results[0]).encode()
                case command:
                    self.may_have_written((command,))


@dataclass(slots=True)
class Merged:
    """The commands of a part that are still written, and descriptions of the dropped ones, without values."""

    commands: list[calls.Command[Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    lost_keys: set[str] = field(default_factory=set)


def merge(part: Part, snapshot: Snapshot, own: OwnWrites, now_us: int) -> Merged:
    """Decide which commands of a part are still written.

    Args:
        part: The queued writes.
        snapshot: The content of the primary.
        own: The versions in it that are not newer.
        now_us: The current time, by the clock of the entries.
    """
    merging = _Merging(snapshot, own, now_us)
    for entry in part.entries:
        if isinstance(entry.command, BARRIERS):
            merging.flush()
            merging.barrier(entry.command)
        else:
            merging.add(entry)
    merging.flush()
    return merging.merged


class _Merging:
    """The state of one merge: the decisions so far, and the commands since the last checkpoint.

    Between two checkpoints, commands that remove go first, so that there is room for the others.
    """

    def __init__(self, snapshot: Snapshot, own: OwnWrites, now_us: int) -> None:
        self.snapshot, self.own, self.now_us = snapshot, own, now_us
        self.merged = Merged()
        self._written: set[str] = set()
        self._new_checkpoints: set[str] = set()
        self._begin_segment()

    def _begin_segment(self) -> None:
        self._clearing: list[calls.Command[Any]] = []
        self._removed: dict[str, None] = {}
        self._variables: list[calls.Variable] = []
        self._adding: list[calls.Command[Any]] = []
        self._expired_us: dict[str, int] = {}

    def flush(self) -> None:
        """Add the commands since the last checkpoint to those decided."""
        commands = self.merged.commands
        commands += self._clearing
        if self._removed:
            commands.append(calls.Remove(tuple(self._removed)))
        if self._variables:
            commands.append(calls.Write(tuple(self._variables)))
        commands += self._adding
        self._begin_segment()

    def barrier(self, command: calls.Command[Any]) -> None:
        """Decide about a command across which nothing is coalesced."""
        match command:
            case calls.CreateCheckpoint(checkpoint_id):
                self._new_checkpoints.add(checkpoint_id)
            case calls.RestoreCheckpoint(checkpoint_id) if checkpoint_id not in self._new_checkpoints:
                if not self.own.whole_session(self.snapshot):
                    self._lose(f"restoring checkpoint {checkpoint_id}")
                    return
            case calls.End():
                if not self.own.whole_session(self.snapshot):
                    self._lose("the end of the session")
                    return
        self.merged.commands.append(command)

    def add(self, entry: JournalEntry) -> None:
        """Decide about any other command."""
        match entry.command:
            case calls.Write((variable,)):
                if not self._loses(entry, variable.key):
                    self._write(variable, entry.at_us)
            case calls.Remove((key,)):
                if not self._loses(entry, key):
                    self._removed[key] = None
            case calls.Clear():
                self._clear()
            case calls.Increment(key):
                if entry.at_us >= self._expired_us.get(key, 0):
                    self._adding.append(entry.command)
                    self._written.add(key)
            case calls.WriteTask() if not self.own.task(self.snapshot):
                self._lose("the task's state")
            case calls.ClearNotes() if not self.own.scratchpad(self.snapshot):
                self._lose("clearing the scratchpad")
            case calls.ClearNotes():
                self._clearing.append(entry.command)
            case _:
                self._adding.append(entry.command)

    def _write(self, variable: calls.Variable, at_us: int) -> None:
        left_us = None if variable.ttl_us is None else at_us + variable.ttl_us - self.now_us
        if left_us is not None and left_us <= 0:
            self._removed[variable.key] = None
            self._expired_us[variable.key] = self.now_us + left_us
        else:
            self._variables.append(calls.Variable(variable.key, variable.value, variable.canonical, left_us))
            self._written.add(variable.key)

    def _clear(self) -> None:
        newer = self.own.newer_variables(self.snapshot)
        if not newer:
            self._clearing.append(calls.Clear())
            return
        self.merged.lost.append(f"clearing: {len(newer)} variables stay, because {MEANWHILE}")
        for key in sorted((self.snapshot.versions.variables.keys() | self._written) - newer):
            self._removed[key] = None

    def _loses(self, entry: JournalEntry, key: str) -> bool:
        """Drop a write or deletion of a variable that is newer, or not what the write expects."""
        if not self.own.variable(self.snapshot, key):
            self._lose(f"variable {key!r}")
        elif not isinstance(entry.expects, Anything) and self.snapshot.canonical(key) != entry.expects:
            self._lose(f"variable {key!r}", "it did not have the value that compare_and_set expected")
        else:
            return False
        self.merged.lost_keys.add(key)
        return True

    def _lose(self, what: str, why: str = MEANWHILE) -> None:
        self.merged.lost.append(f"{what}: {why}")


def doubtful_entries(part: Part, snapshot: Snapshot, own: OwnWrites) -> tuple[list[int], list[str]]:
    """The entries of a part that must not be written twice and may have been written: indexes and descriptions.

    The part was sent so long ago that the storage may have forgotten its token. If it was carried out, there is
    something newer, and nothing shows whether that is this write or another process's.
    """
    indexes: list[int] = []
    lost: list[str] = []
    for index, entry in enumerate(part.entries):
        match entry.command:
            case calls.Increment(key, by) if not own.variable(snapshot, key):
                lost.append(f"variable {key!r}: it is no longer known whether {by} was added")
            case calls.Append() if not own.scratchpad(snapshot):
                lost.append("a note: it is no longer known whether it was added")
            case _:
                continue
        indexes.append(index)
    return indexes, lost
