"""What a session is asked: commands as values, which every storage carries out alike.

A *call* is one command or more on one session, carried out together or not at all. What each command does is said here,
and shown by `testing`; `storages.in_memory` is the plainest place to see it done.

A storage has a clock of its own, in microseconds, which all its processes share. Each command that writes draws a
*stamp* of its session, which is larger than any before and at least the clock: so stamps go on rising when a session
was ended and begun anew. A variable's *version* is the stamp of its last write or deletion; its *use* is the stamp of
its last write, or just before that of the call that told that it was read.

A session is there from the first call that may store something in it, until it is ended or expires. Of an expired one
nothing is seen, and the next write begins a new one. Expired variables are never seen either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
TCovariant = TypeVar("TCovariant", covariant=True)

#: What to do with a write for which there is no place.
OnFull: TypeAlias = Literal["refuse", "evict"]

#: What numbers can be incremented, and to what: those of 64 bits, as in MySQL and Redis.
INT_LEAST, INT_MOST = -(2**63), 2**63 - 1


class Address(NamedTuple):
    """Which session."""

    tenant: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a session may hold. A variable takes the bytes of its key and of its value's JSON.

    Args:
        keys: Variables.
        value_bytes: JSON of one variable, of the task state, or of one note. Checked before a storage is asked.
        session_bytes: Variables, task state and notes together; checkpoints are not counted.
        scratchpad_entries: Notes.
        checkpoints: Checkpoints; of more, the oldest go.
        on_full: ``refuse`` raises `CapacityExceeded`; ``evict`` removes the variables that were used least recently
            (of those equally old, first by key), never those of the same call, the task state or notes, and refuses
            what still has no place.
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
        likeness: The same for values that are equal, whatever the order of keys in their dicts: JSON with sorted keys,
            or a digest of it if that is shorter. For a whole number it is its digits.
        ttl_us: It expires after this many microseconds.
    """

    key: str
    value: bytes
    likeness: bytes
    ttl_us: int | None = None

    @property
    def size_bytes(self) -> int:
        """What it takes of the session's bytes."""
        return len(self.key.encode()) + len(self.value)


class Found(NamedTuple):
    """A variable as read: its JSON, and the microseconds it has left; None if it does not expire by itself."""

    value: bytes
    left_us: int | None


class Checkpoint(NamedTuple):
    """A checkpoint, but for what it holds.

    Args:
        checkpoint_id: Its id.
        label: What the caller calls it.
        created_at: When, by the storage's clock; aware, in UTC.
        keys: Variables in it.
        scratchpad_entries: Notes in it.
        bytes: Bytes of the session then.
    """

    checkpoint_id: str
    label: str | None
    created_at: datetime
    keys: int
    scratchpad_entries: int
    bytes: int


class Measured(NamedTuple):
    """What a session holds.

    Args:
        keys: Variables.
        bytes: Bytes of variables, task state and notes.
        scratchpad_entries: Notes.
        checkpoints: Checkpoints.
        left_us: Microseconds until it expires unless it is used; None if it does not.
    """

    keys: int = 0
    bytes: int = 0
    scratchpad_entries: int = 0
    checkpoints: int = 0
    left_us: int | None = None


class Versions(NamedTuple):
    """What tells whether somebody else wrote.

    Args:
        variables: By key, the stamp of the last write or deletion; of those that are there, expired or not, and of
            those deleted within the last hour.
        task: That of the task state; 0 if nothing is known of it.
        notes: That of the last note that was added, or of the last time that notes were removed; 0 likewise.
    """

    variables: dict[str, int]
    task: int = 0
    notes: int = 0


class Command(Generic[TCovariant]):
    """One step of a call, and the type of its result."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Read(Command[dict[str, Found]]):
    """Variables by their keys; those that are not there are left out."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadAll(Command[dict[str, Found]]):
    """All variables, in the order of their keys by code point."""


@dataclass(frozen=True, slots=True)
class ListKeys(Command[list[str]]):
    """Keys that match a glob (``*`` any text, ``?`` one character, all else itself), in order by code point."""

    pattern: str


@dataclass(frozen=True, slots=True)
class ReadTask(Command[bytes | None]):
    """The task state's JSON."""


@dataclass(frozen=True, slots=True)
class ReadNotes(Command[list[bytes]]):
    """The notes of the scratchpad, or only so many of the last, oldest first."""

    last: int | None = None


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Command[list[Checkpoint]]):
    """Checkpoints, newest first."""


@dataclass(frozen=True, slots=True)
class Measure(Command[Measured]):
    """What the session holds, without what has expired."""


@dataclass(frozen=True, slots=True)
class Inspect(Command[Versions]):
    """The versions of some variables, or of all, of the task state and of the notes."""

    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Write(Command[None]):
    """Write variables, each in the place of what is under its key, with its time to live."""

    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Remove(Command[int]):
    """Delete variables; how many there were."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clear(Command[int]):
    """Delete all variables; how many there were."""


@dataclass(frozen=True, slots=True)
class Increment(Command[int]):
    """Add to a whole number; one that is not there counts as 0.

    It keeps its time to live. Raises `InvalidInput` if the variable is something else, or the sum exceeds 64 bits.
    """

    key: str
    by: int


@dataclass(frozen=True, slots=True)
class CompareAndSet(Command[bool]):
    """Write a variable if it is as expected; whether it was. It keeps its time to live.

    Args:
        variable: What to write.
        likeness: The likeness it must have; None: it must not be there.
    """

    variable: Variable
    likeness: bytes | None


@dataclass(frozen=True, slots=True)
class WriteTask(Command[None]):
    """Write the task state, or remove it."""

    value: bytes | None


@dataclass(frozen=True, slots=True)
class Append(Command[None]):
    """Add a note behind all others."""

    note: bytes


@dataclass(frozen=True, slots=True)
class ClearNotes(Command[int]):
    """Remove all notes; how many there were."""


@dataclass(frozen=True, slots=True)
class Touch(Command[bool]):
    """Give the session its whole time again; whether it is there.

    Args:
        ttl_us: From now on it has this time to live; None: that it had.
    """

    ttl_us: int | None = None


@dataclass(frozen=True, slots=True)
class CreateCheckpoint(Command[None]):
    """Keep the session as it is now. One with the same id must not be there: `InvalidInput`."""

    checkpoint_id: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RestoreCheckpoint(Command[None]):
    """Make variables, task state and notes what they were; what expires has the time left that it had then.

    Before, the session is kept as a checkpoint; if there are too many then, the oldest goes, but never the one that is
    restored. Raises `NotFound`.
    """

    checkpoint_id: str
    undo_id: str


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint(Command[bool]):
    """Delete a checkpoint; whether it was there."""

    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class End(Command[bool]):
    """Remove the session with all that it holds; whether it was there. It stands alone in its call."""


#: For how long a storage recognises a call that is repeated, in microseconds.
RECOGNISED_US = 900_000_000

#: Commands that change nothing.
READS = (Read, ReadAll, ListKeys, ReadTask, ReadNotes, ListCheckpoints, Measure, Inspect)

#: Commands that begin a session where there is none. The others that write find nothing to do then.
BEGINS = (Write, Increment, CompareAndSet, WriteTask, Append, CreateCheckpoint)


@dataclass(frozen=True, slots=True)
class Call:
    """Commands on one session, carried out together or not at all.

    Args:
        name: The method that makes it, for logs.
        address: Which session.
        commands: In this order.
        limits: How much the session may hold.
        ttl_us: The time to live of a session that this call begins. Each write gives it its whole time again.
        renew: Whether reads give the session its whole time again too.
        used: Variables read before, in this order, each once: counted as used before those of this call. Given only
            with writes, where ``on_full`` is ``evict``.
        token: 16 random bytes by which a repeated call is recognised if the first one was carried out.
        if_stamp: The session must have this stamp (0: it must not be there), or nothing is done: `StampMoved`.
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

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        for command in self.commands:  # noqa: SIM110 - each call asks this some times, and a generator takes longer
            if not isinstance(command, READS):
                return True
        return False


class Reply(NamedTuple):
    """What came of a call.

    Args:
        results: One for each command. To a call that was carried out before, what its writes answered; what it reads,
            it reads now.
        stamp: The session's stamp, of this call if it wrote; 0 if there is no session.
        ttl_us: The session's time to live, as reads tell it; None if it has none. Writes may tell that of the call.
        evicted: How many variables had to go.
    """

    results: tuple[object, ...]
    stamp: int = 0
    ttl_us: int | None = None
    evicted: int = 0


class StampMoved(Exception):
    """Somebody else wrote to the session since the stamp that a call relied on; nothing was done.

    Raised by storages to those that replay, never to users.
    """


def lifetime_us(ttl_us: int) -> int:
    """For how long a session is kept after it was given its time, in microseconds.

    An eighth longer than its time to live: reads, which would have to write otherwise, then need to renew it only when
    an eighth has passed, and it still lives for the whole time after its last use.
    """
    return ttl_us + ttl_us // 8
