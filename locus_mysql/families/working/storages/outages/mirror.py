"""A copy of the data that calls wrote and read, from which the fallback starts when the primary is unavailable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from .....errors import UsageError
from ... import calls
from ...values import canonical_form
from ..in_memory import InMemoryStorage

#: The mirror has no limits except on its total size.
UNLIMITED = calls.Limits(2**31, 2**30, 2**40, 2**31, 1)

#: A variable is written again when its time to live differs by at least this many microseconds.
TTL_TOLERANCE_US = 1_000_000

#: Names of parts of a session; those of variables begin with VARIABLE. A read of all notes is also named ALL_NOTES.
VARIABLE, TASK, NOTES, ALL_NOTES = "v", "task", "notes", "all notes"


class Known(NamedTuple):
    """The content of a session, as far as it is known."""

    variables: dict[str, calls.Found]
    task: bytes | None
    notes: list[bytes]


class Mirror:
    """Remembers the data that calls wrote and read; drops the least recently used sessions.

    Args:
        max_bytes: The size of all sessions together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept = InMemoryStorage(forgets=True, max_bytes=max_bytes)

    def known(self, address: calls.Address) -> Known:
        """The content of a session, as far as it is known."""
        return Known(*cast(Any, self._ask(address, calls.ReadAll(), calls.ReadTask(), calls.ReadNotes())))

    def learn(self, call: calls.Call, reply: calls.Reply, later: Callable[[str], bool]) -> list[calls.Command[Any]]:
        """Update the copy by a call that was answered.

        Args:
            call: The call.
            reply: The reply.
            later: Returns whether something later is known already of a part of the session, by its name.

        Returns:
            The update, as commands that write.
        """
        learned: list[calls.Command[Any]] = []
        alone = sum(not isinstance(command, calls.READS) for command in call.commands) < 2
        for command, result in zip(call.commands, reply.results, strict=True):
            read = isinstance(command, calls.READS)
            updates = [
                update
                for update in self._updates(call.address, command, result, alone)
                if not any(later(name) for name in names_of(update, NOTES if read else ALL_NOTES))
            ]
            if updates:
                self.write(call, *updates)
                learned += updates
        return learned

    def write(self, call: calls.Call, *commands: calls.Command[Any]) -> None:
        """Carry out commands on the copy, with the time to live of a call."""
        groups = (
            [(command,) for command in commands] if calls.End() in commands else [commands]
        )  # End is the only command
        for group in groups:
            update = calls.Call("learn", call.address, group, UNLIMITED, call.ttl_us, token=os.urandom(16))
            try:
                self._kept.execute_blocking(update)
            except UsageError:  # too large for the mirror, or in conflict with the copy: no copy is better than half
                self._kept.execute_blocking(calls.Call("forget", call.address, (calls.End(),)))

    def forget_tenant(self, tenant: str) -> None:
        """Drop all sessions of a tenant."""
        self._kept.forget_tenant_blocking(tenant)

    def sweep(self) -> None:
        """Drop sessions that have expired."""
        self._kept.sweep_blocking()

    def _ask(self, address: calls.Address, *commands: calls.Command[Any]) -> tuple[Any, ...]:
        return self._kept.execute_blocking(calls.Call("recall", address, commands)).results

    def _updates(
        self, address: calls.Address, command: calls.Command[Any], result: Any, alone: bool
    ) -> list[calls.Command[Any]]:
        """Return the commands that update the copy by a command and its result."""
        match command:
            case calls.Read() | calls.ReadAll():
                (variables,) = self._ask(address, command)
                return _differences(variables, result)
            case calls.ReadTask():
                return [calls.WriteTask(result)] if self._ask(address, command) != (result,) else []
            case calls.ReadNotes(last):
                (notes,) = self._ask(address, calls.ReadNotes())
                return _differing_notes(notes, result, last)
            case calls.Increment(key) if alone:
                return [self._with_same_ttl(address, key, str(result).encode())]
            case calls.Increment(key):
                return [calls.Remove((key,))]
            case calls.CompareAndSet(variable):
                return [self._with_same_ttl(address, variable.key, variable.value)] if result else []
            case calls.RestoreCheckpoint():
                return [calls.End()]  # the restored content is not known
            case calls.CreateCheckpoint() | calls.DeleteCheckpoint():
                return []
        return [] if isinstance(command, calls.READS) else [command]

    def _with_same_ttl(self, address: calls.Address, key: str, value: bytes) -> calls.Write:
        """A write of a variable that keeps its time to live."""
        (now,) = self._ask(address, calls.Read((key,)))
        left_us = now[key].left_us if key in now else None
        return calls.Write((calls.Variable(key, value, canonical_form(value), left_us),))


def names_of(update: calls.Command[Any], notes: str = NOTES) -> list[str]:
    """The names of the parts of a session that a command writes.

    Args:
        update: The command.
        notes: The name of the notes.
    """
    match update:
        case calls.Write(variables):
            return [VARIABLE + variable.key for variable in variables]
        case calls.Remove(keys):
            return [VARIABLE + key for key in keys]
        case calls.WriteTask():
            return [TASK]
        case calls.Append() | calls.ClearNotes():
            return [notes]
    return []


def _differences(now: dict[str, calls.Found], then: dict[str, calls.Found]) -> list[calls.Command[Any]]:
    """The commands that turn one set of variables into another."""
    gone = tuple(key for key in now if key not in then)
    other = tuple(
        calls.Variable(key, found.value, canonical_form(found.value), found.left_us)
        for key, found in then.items()
        if key not in now or now[key].value != found.value or not _same_ttl(now[key].left_us, found.left_us)
    )
    return [*([calls.Remove(gone)] if gone else []), *([calls.Write(other)] if other else [])]


def _same_ttl(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < TTL_TOLERANCE_US


def _differing_notes(now: list[bytes], then: list[bytes], last: int | None) -> list[calls.Command[Any]]:
    """The commands that turn notes into others, of which perhaps only the last ones were read."""
    if now == then:
        return []
    if last is None or len(then) < last:  # all notes were read
        if then[: len(now)] == now:
            return [calls.Append(note) for note in then[len(now) :]]
        return [calls.ClearNotes(), *(calls.Append(note) for note in then)]
    return [calls.Append(note) for note in then[_overlap(now, then) :]]


def _overlap(now: list[bytes], then: list[bytes]) -> int:
    """The largest number of notes with which the first list ends and the second begins; in linear time."""
    # The length of the longest proper prefix of `then` that ends at each position of it (Knuth, Morris and Pratt).
    prefixes, size = [0] * len(then), 0
    for index in range(1, len(then)):
        while size and then[index] != then[size]:
            size = prefixes[size - 1]
        size += then[index] == then[size]
        prefixes[index] = size
    size = 0
    for note in now[-len(then) :] if then else []:
        while size and (size == len(then) or note != then[size]):
            size = prefixes[size - 1]
        size += note == then[size]
    return size
