"""What this process knows of sessions, as it passed through: what another storage begins with when theirs is away."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from .....errors import UsageError
from ...calls import (
    READS,
    Address,
    Append,
    Call,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    End,
    Found,
    Increment,
    Limits,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Variable,
    Write,
    WriteTask,
)
from ...values import likeness
from ..in_memory import InMemoryStorage

#: The mirror itself limits nothing but its bytes.
UNLIMITED = Limits(2**31, 2**30, 2**40, 2**31, 1)

#: A variable's time to live is learned anew when it differs by so many microseconds.
NEAR_US = 1_000_000

TASK, NOTES, ALL_NOTES = "task", "notes", "all notes"


class Known(NamedTuple):
    """What is known of a session."""

    variables: dict[str, Found]
    task: bytes | None
    notes: list[bytes]


class Mirror:
    """Remembers what calls wrote and read; forgets the sessions used least recently.

    Args:
        max_bytes: At most so many bytes of all sessions together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept = InMemoryStorage(forgets=True, max_bytes=max_bytes)

    def known(self, address: Address) -> Known:
        """What is known of a session."""
        return Known(*cast(Any, self._ask(address, ReadAll(), ReadTask(), ReadNotes())))

    def learn(self, call: Call, reply: Reply, later: Callable[[str], bool]) -> list[Command[Any]]:
        """Learn of a call that was answered; what it said of the session, as commands that write.

        Args:
            call: The call.
            reply: The answer.
            later: Whether something later was learned already of a variable, as ``v`` and its key, of the task's state
                or of the notes.
        """
        learned: list[Command[Any]] = []
        alone = sum(not isinstance(command, READS) for command in call.commands) < 2
        for command, result in zip(call.commands, reply.results, strict=True):
            steps = [
                step
                for step in self._told(call.address, command, result, alone)
                if not _outdated(step, isinstance(command, READS), later)
            ]
            if steps:
                self.do(call, *steps)
                learned += steps
        return learned

    def do(self, call: Call, *commands: Command[Any]) -> None:
        """Carry out commands on what is known, with the time to live of a call."""
        groups = [(command,) for command in commands] if End() in commands else [commands]  # it stands alone
        for group in groups:
            asked = Call("learn", call.address, group, UNLIMITED, call.ttl_us, token=os.urandom(16))
            try:
                self._kept.execute_blocking(asked)
            except UsageError:  # too large for the mirror, or not what it believed: better nothing than half of it
                self._kept.execute_blocking(Call("forget", call.address, (End(),)))

    def forget_tenant(self, tenant: str) -> None:
        """Forget all sessions of a tenant."""
        self._kept.forget_tenant_blocking(tenant)

    def sweep(self) -> None:
        """Forget what has expired."""
        self._kept.sweep_blocking()

    def _ask(self, address: Address, *commands: Command[Any]) -> tuple[object, ...]:
        return self._kept.execute_blocking(Call("recall", address, commands)).results

    def _told(self, address: Address, command: Command[Any], result: Any, alone: bool) -> list[Command[Any]]:
        """What a command and its result tell."""
        match command:
            case Read(keys):
                (now,) = cast("tuple[dict[str, Found]]", self._ask(address, Read(keys)))
                return _differences(now, result)
            case ReadAll():
                (now,) = cast("tuple[dict[str, Found]]", self._ask(address, ReadAll()))
                return _differences(now, result)
            case ReadTask():
                return [WriteTask(result)] if self._ask(address, ReadTask()) != (result,) else []
            case ReadNotes(last):
                (notes,) = cast("tuple[list[bytes]]", self._ask(address, ReadNotes()))
                return _notes(notes, result, last)
            case Increment(key) if alone:
                return [self._in_place(address, key, str(result).encode())]
            case Increment(key):
                return [Remove((key,))]
            case CompareAndSet(variable):
                return [self._in_place(address, variable.key, variable.value)] if result else []
            case RestoreCheckpoint():
                return [End()]  # what it brought back is not known
            case Write() | Remove() | Clear() | WriteTask() | Append() | ClearNotes() | Touch() | End():
                return [command]
        return []

    def _in_place(self, address: Address, key: str, value: bytes) -> Write:
        """A variable that keeps its time to live."""
        (now,) = cast("tuple[dict[str, Found]]", self._ask(address, Read((key,))))
        return Write((Variable(key, value, likeness(value), now[key].left_us if key in now else None),))


def _differences(now: dict[str, Found], then: dict[str, Found]) -> list[Command[Any]]:
    """What makes variables what they were found to be."""
    gone = tuple(key for key in now if key not in then)
    other = tuple(
        Variable(key, found.value, likeness(found.value), found.left_us)
        for key, found in then.items()
        if key not in now or now[key].value != found.value or not _near(now[key].left_us, found.left_us)
    )
    return [*([Remove(gone)] if gone else []), *([Write(other)] if other else [])]


def _near(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < NEAR_US


def _notes(now: list[bytes], then: list[bytes], last: int | None) -> list[Command[Any]]:
    """What makes notes what they were found to be, of which perhaps only the last were read."""
    if now == then:
        return []
    if last is None or len(then) < last:
        common = len(then) if now[: len(then)] == then else len(now) if then[: len(now)] == now else -1
        if common == len(now):
            return [Append(note) for note in then[common:]]
        return [ClearNotes(), *(Append(note) for note in then)]
    overlap = next((size for size in range(min(len(now), len(then)), 0, -1) if now[-size:] == then[:size]), 0)
    return [Append(note) for note in then[overlap:]]


def _outdated(step: Command[Any], read: bool, later: Callable[[str], bool]) -> bool:
    """Whether something later was learned of what a command tells."""
    match step:
        case Write(variables):
            return any(later("v" + variable.key) for variable in variables)
        case Remove(keys):
            return any(later("v" + key) for key in keys)
        case WriteTask():
            return later(TASK)
        case Append() | ClearNotes():
            return later(NOTES if read else ALL_NOTES)
    return False
