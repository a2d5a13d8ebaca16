"""Commands on a session and calls of them, as values that every storage carries out in the same way.

A *call* is one or more commands on one session, carried out together or not at all. The commands are specified here and
tested by `tests/storage_contract`; `session` carries them out, for every storage.

A storage has a clock, in microseconds, which all processes share. Each command that writes draws a *stamp* of its
session, which is larger than any before and at least the clock; so stamps keep rising when a session is ended and begun
again. A variable's *version* is the stamp of its last write or deletion. Its *use* is the stamp of its last write, or
just before the stamp of the call that recorded that it was read.

A session exists from the first call that may store something in it until it is ended or expires. Nothing of an expired
session is visible, and the next write begins a new one. Expired variables are never visible either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
TCovariant = TypeVar("TCovariant", covariant=True)

#: The treatment of a write that does not fit.
OnFull: TypeAlias = Literal["refuse", "evict"]

#: The range of numbers that can be incremented: 64 bits, as in MySQL and Redis.
INT_LEAST, INT_MOST = -(2**63), 2**63 - 1


class Address(NamedTuple):
    """The name of a session: its tenant and its id."""

    tenant: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a session. A variable has the bytes of its key and of its value's JSON.

    Args:
        keys: Variables.
        value_bytes: JSON of one variable, of the task state, or of one note. Checked before a storage is called.
        session_bytes: Variables, task state and notes together; checkpoints are not counted.
        scratchpad_entries: Notes.
        checkpoints: Checkpoints; the oldest are deleted.
        on_full: ``refuse`` raises `CapacityExceeded`; ``evict`` removes the variables that were used least recently
            (of those equally old, first by key), never those of the same call, the task state or notes, and refuses
            a write for which there is still no room.
    """

    keys: int = 10_000
    value_bytes: int = 1_048_576
    session_bytes: int = 67_108_864
    scratchpad_entries: int = 10_000
    checkpoints: int = 100
    on_full: OnFull = "refuse"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable to write.

    Args:
        key: Its key.
        value: Its JSON.
        ttl_us: It expires after this many microseconds.
    """

    key: str
    value: bytes
    ttl_us: int | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes that count for the session."""
        return len(self.key.encode()) + len(self.value)


class Found(NamedTuple):
    """A variable as read: its JSON, and the microseconds it has left; None if it does not expire by itself."""

    value: bytes
    left_us: int | None


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint of a session, without its content.

    Args:
        checkpoint_id: Its id.
        label: The caller's label.
        created_at: When, by the storage's clock; aware, in UTC.
        keys: Variables in it.
        scratchpad_entries: Notes in it.
        size_bytes: The bytes of the session at that time.
    """

    checkpoint_id: str
    label: str | None
    created_at: datetime
    keys: int
    scratchpad_entries: int
    size_bytes: int


class Measured(NamedTuple):
    """The content of a session, in numbers.

    Args:
        keys: Variables.
        bytes: Bytes of variables, task state and notes.
        scratchpad_entries: Notes.
        checkpoints: Checkpoints.
        left_us: Microseconds until it expires if it is not used; None if it never expires.
    """

    keys: int = 0
    bytes: int = 0
    scratchpad_entries: int = 0
    checkpoints: int = 0
    left_us: int | None = None


class Command(Generic[TCovariant]):
    """One step of a call, and the type of its result."""

    __slots__ = ()

    #: Whether it changes nothing.
    reads: ClassVar[bool] = False
    #: Whether it begins a session where there is none. Other commands that write then have nothing to do.
    begins: ClassVar[bool] = False
    #: Its result where there is nothing to do. Results that storages record have this type.
    nothing: ClassVar[int | None] = None


@dataclass(frozen=True, slots=True)
class Read(Command[dict[str, Found]]):
    """Variables by their keys; keys without a variable are left out."""

    reads = True
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadAll(Command[dict[str, Found]]):
    """All variables, in the order of their keys by code point."""

    reads = True


@dataclass(frozen=True, slots=True)
class ListKeys(Command[list[str]]):
    """Keys that match a glob (``*`` any text, ``?`` one character), in order by code point."""

    reads = True
    pattern: str


@dataclass(frozen=True, slots=True)
class ReadTask(Command[bytes | None]):
    """The task state's JSON."""

    reads = True


@dataclass(frozen=True, slots=True)
class ReadNotes(Command[list[bytes]]):
    """The notes of the scratchpad, or only this many of the last, oldest first."""

    reads = True
    last: int | None = None


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Command[list[CheckpointInfo]]):
    """Checkpoints, newest first."""

    reads = True


@dataclass(frozen=True, slots=True)
class Measure(Command[Measured]):
    """The content of the session in numbers, without expired variables."""

    reads = True


@dataclass(frozen=True, slots=True)
class Write(Command[None]):
    """Write variables; each replaces the variable with its key and has its own time to live."""

    begins = True
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Remove(Command[int]):
    """Delete variables; the number of those that existed."""

    nothing = 0
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clear(Command[int]):
    """Delete all variables; the number of those that existed."""

    nothing = 0


@dataclass(frozen=True, slots=True)
class Increment(Command[int]):
    """Add to a whole number; a missing variable counts as 0.

    Keeps the time to live. Raises `InvalidInput` if the variable is no whole number, or the sum exceeds 64 bits.
    """

    begins, nothing = True, 0
    key: str
    by: int


@dataclass(frozen=True, slots=True)
class CompareAndSet(Command[bool]):
    """Write a variable if it has an expected value; whether it had. Keeps the time to live.

    Args:
        variable: What to write.
        canonical: The canonical form that its value must have (`values.canonical_form`); None: it must not exist.
    """

    begins, nothing = True, False
    variable: Variable
    canonical: bytes | None


@dataclass(frozen=True, slots=True)
class WriteTask(Command[None]):
    """Write the task state, or remove it."""

    begins = True
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Append(Command[None]):
    """Add a note after all others."""

    begins = True
    note: bytes


@dataclass(frozen=True, slots=True)
class ClearNotes(Command[int]):
    """Remove all notes; the number of them."""

    nothing = 0


@dataclass(frozen=True, slots=True)
class Touch(Command[bool]):
    """Start the session's time to live again; whether the session exists.

    Args:
        ttl_us: The new time to live; None: as before.
    """

    nothing = False
    ttl_us: int | None = None


@dataclass(frozen=True, slots=True)
class CreateCheckpoint(Command[None]):
    """Store the session as it is now. Raises `InvalidInput` if there is a checkpoint with this id."""

    begins = True
    checkpoint_id: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RestoreCheckpoint(Command[None]):
    """Restore variables, task state and notes; variables that expire have the time left that they had then.

    First, the session is stored as a checkpoint. If there are too many then, the oldest is deleted, but never the one
    that is restored. Raises `NotFound`.
    """

    checkpoint_id: str
    undo_id: str


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint(Command[bool]):
    """Delete a checkpoint; whether it existed."""

    nothing = False
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class End(Command[bool]):
    """Remove the session with all its content; whether it existed. It must be the only command of its call."""

    nothing = False


@dataclass(frozen=True, slots=True)
class Replayed(Command[bool]):
    """Carry out a command that was queued during an outage; whether it had its effect.

    Nothing newer is overwritten: variables, the task state, the notes and the session are only replaced or removed
    where their versions are not above ``at_us``. Increments and notes are always added. ``Write`` and ``Remove`` name
    one variable.

    Args:
        command: The command.
        at_us: When it was made, by the clock of the storage.
        sent_us: When it was first sent, if the storage may have carried it out and no longer recognises it: an
            increment or a note is left out if something was written there since.
    """

    command: Command[Any]
    at_us: int
    sent_us: int | None = None


#: A storage recognises a repeated call for this long, in microseconds.
RECOGNISED_US = 900_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """Commands on one session, carried out together or not at all.

    Args:
        name: The method that makes the call, for logs.
        address: The session.
        commands: The commands, in order.
        limits: The limits of the session.
        ttl_us: The time to live of a session that this call begins. Each write starts it again.
        renew: Whether reads start it again too.
        used: Variables read before, in this order, each once: they count as used before those of this call. Given only
            with writes, where ``on_full`` is ``evict``.
        token: 16 random bytes by which a repeated call is recognised if the first one was carried out.
        if_stamp: The stamp that the session must have (0: it must not exist). Otherwise nothing is done: `StampMoved`.
        stamped: Whether the reply to a repetition has the stamp of the first time.
    """

    name: str
    address: Address
    commands: tuple[Command[object], ...]
    limits: Limits = field(default_factory=Limits)
    ttl_us: int | None = None
    renew: bool = False
    used: tuple[str, ...] = ()
    token: bytes = b""
    if_stamp: int | None = None
    stamped: bool = False

    @property
    def writes(self) -> bool:
        """Return whether it may change something."""
        for command in self.commands:  # noqa: SIM110 - every call does this several times, and a generator is slower
            if not command.reads:
                return True
        return False

    @property
    def begins(self) -> bool:
        """Return whether it begins a session where there is none."""
        return any((one.command if isinstance(one, Replayed) else one).begins for one in self.commands)


class Reply(NamedTuple):
    """The reply to a call.

    Args:
        results: One for each command. For a repeated call, the results of its writes are those of the first time, and
            its reads are carried out now.
        stamp: The session's stamp, of this call if it wrote; 0 if there is no session.
        ttl_us: The session's time to live, if the call read; None if it has none. After a write it may be the call's.
        evicted: The number of evicted variables.
    """

    results: tuple[object, ...]
    stamp: int = 0
    ttl_us: int | None = None
    evicted: int = 0


class StampMoved(Exception):
    """Another process wrote to the session after the stamp that a call requires; nothing was done.

    Raised by storages for replays, never to users.
    """


def lifetime_us(ttl_us: int) -> int:
    """Return how long a session is kept after its time to live was started, in microseconds.

    That is an eighth longer than the time to live. So a read needs to renew the session, which is a write, only after
    an eighth has passed, and the session still lives for its whole time to live after its last use.
    """
    return ttl_us + ttl_us // 8
