"""One session as a value in memory: what each command does to it. Does no I/O and has no clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ....errors import CapacityExceeded
from ..calls import (
    INT_LEAST,
    INT_MOST,
    READS,
    Append,
    Call,
    Checkpoint,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    Limits,
    ListCheckpoints,
    ListKeys,
    Measure,
    Measured,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Variable,
    Versions,
    Write,
    WriteTask,
    lifetime_us,
)
from ..globs import matcher
from ..refusals import (
    checkpoint_there,
    no_checkpoint,
    not_a_whole_number,
    of_nothing,
    out_of_range,
)

#: For how long it is told of variables that they were deleted, in microseconds.
TOLD_US = 3_600_000_000

_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Kept(NamedTuple):
    """A variable, and what is known of it."""

    variable: Variable
    expires_us: int | None
    version: int
    used: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A checkpoint, and what it holds."""

    info: Checkpoint
    at_us: int
    variables: dict[str, Kept]
    task: bytes | None
    notes: tuple[bytes, ...]


@dataclass(slots=True)
class Session:
    """A session.

    Args:
        address_id: Its id, for errors.
        ttl_us: Its time to live.
    """

    address_id: str
    ttl_us: int | None
    stamp: int = 0
    expires_us: int | None = None
    variables: dict[str, Kept] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    task: bytes | None = None
    task_version: int = 0
    notes: list[bytes] = field(default_factory=list)
    notes_version: int = 0
    checkpoints: list[Taken] = field(default_factory=list)
    size_bytes: int = 0
    limits: Limits = field(default_factory=Limits)
    written: set[str] = field(default_factory=set)
    evicted: int = 0
    ended: bool = False

    def copy(self) -> Session:
        """One that can be changed without changing this."""
        return Session(
            self.address_id,
            self.ttl_us,
            self.stamp,
            self.expires_us,
            dict(self.variables),
            dict(self.deleted),
            self.task,
            self.task_version,
            list(self.notes),
            self.notes_version,
            list(self.checkpoints),
            self.size_bytes,
        )

    @classmethod
    def of_nothing(cls, call: Call) -> Reply:
        """The reply to a call that finds no session, and begins none."""
        nothing = cls(call.address.session_id, None)
        return Reply(
            tuple(
                nothing.read(command, 0) if isinstance(command, READS) else of_nothing(command)
                for command in call.commands
            )
        )

    def expired(self, now_us: int) -> bool:
        """Whether its time is over."""
        return self.expires_us is not None and self.expires_us <= now_us

    def renew(self, now_us: int) -> None:
        """Give it its whole time again."""
        self.expires_us = None if self.ttl_us is None else now_us + lifetime_us(self.ttl_us)

    @property
    def all_bytes(self) -> int:
        """What it takes, with its checkpoints."""
        return self.size_bytes + sum(taken.info.bytes for taken in self.checkpoints)

    def carry_out(self, call: Call, now_us: int) -> tuple[object, ...]:
        """The results of the commands of a call that writes. If it raises, the session must be thrown away."""
        self.limits = call.limits
        self.evicted = 0
        self.written = set()
        self.stamp = max(self.stamp + len(call.used), now_us)
        for place, key in enumerate(call.used):
            kept = self.variables.get(key)
            if kept is not None:
                self.variables[key] = kept._replace(used=self.stamp - len(call.used) + place + 1)
        self.renew(now_us)
        return tuple(self._result(command, now_us) for command in call.commands)

    def _result(self, command: Command[object], now_us: int) -> object:
        if isinstance(command, READS):
            return self.read(command, now_us)
        self.stamp += 1
        return self.write(command, now_us)

    def read(self, command: Command[object], now_us: int) -> object:
        """The result of a command that changes nothing."""
        match command:
            case Read(keys):
                return {key: self._found(key, now_us) for key in keys if self._live(key, now_us) is not None}
            case ReadAll():
                return {key: self._found(key, now_us) for key in self._live_keys(now_us)}
            case ListKeys(pattern):
                matches = matcher(pattern)
                return [key for key in self._live_keys(now_us) if matches(key)]
            case ReadTask():
                return self.task
            case ReadNotes(last):
                return self.notes[max(0, len(self.notes) - last) :] if last is not None else list(self.notes)
            case ListCheckpoints():
                return [taken.info for taken in reversed(self.checkpoints)]
            case Measure():
                return self._measured(now_us)
            case Inspect(keys):
                return self._versions(keys, now_us)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def write(self, command: Command[object], now_us: int) -> object:
        """Change the session; the result of the command."""
        match command:
            case Write(variables):
                for variable in variables:
                    self._put(variable, None if variable.ttl_us is None else now_us + variable.ttl_us)
                self._make_room(now_us)
            case Remove(keys):
                return self._remove(keys, now_us)
            case Clear():
                return self._remove(tuple(self.variables), now_us)
            case Increment(key, by):
                return self._increment(key, by, now_us)
            case CompareAndSet(variable, likeness):
                return self._compare_and_set(variable, likeness, now_us)
            case WriteTask(value):
                self.size_bytes += len(value or b"") - len(self.task or b"")
                self.task, self.task_version = value, self.stamp
                self._make_room(now_us)
            case Append(note):
                self.notes.append(note)
                self.notes_version = self.stamp
                self.size_bytes += len(note)
                self._make_room(now_us)
            case ClearNotes():
                return self._clear_notes()
            case Touch(ttl_us):
                self.ttl_us = self.ttl_us if ttl_us is None else ttl_us
                self.renew(now_us)
                return True
            case CreateCheckpoint(checkpoint_id, label):
                self._checkpoint(checkpoint_id, label, now_us)
            case RestoreCheckpoint(checkpoint_id, undo_id):
                self._restore(checkpoint_id, undo_id, now_us)
            case DeleteCheckpoint(checkpoint_id):
                before = len(self.checkpoints)
                self.checkpoints = [taken for taken in self.checkpoints if taken.info.checkpoint_id != checkpoint_id]
                return len(self.checkpoints) < before
            case End():
                self.ended = True
                return True
            case _:
                raise TypeError(f"{type(command).__name__} is no command of a storage.")
        return None

    def _live(self, key: str, now_us: int) -> Kept | None:
        kept = self.variables.get(key)
        return None if kept is None or (kept.expires_us is not None and kept.expires_us <= now_us) else kept

    def _live_keys(self, now_us: int) -> list[str]:
        return sorted(key for key in self.variables if self._live(key, now_us) is not None)

    def _found(self, key: str, now_us: int) -> Found:
        kept = self.variables[key]
        return Found(kept.variable.value, None if kept.expires_us is None else kept.expires_us - now_us)

    def _measured(self, now_us: int) -> Measured:
        gone = [kept.variable.size_bytes for key, kept in self.variables.items() if self._live(key, now_us) is None]
        return Measured(
            len(self.variables) - len(gone),
            self.size_bytes - sum(gone),
            len(self.notes),
            len(self.checkpoints),
            None if self.expires_us is None else self.expires_us - now_us,
        )

    def _versions(self, keys: tuple[str, ...] | None, now_us: int) -> Versions:
        known = {key: stamp for key, stamp in self.deleted.items() if stamp > now_us - TOLD_US}
        known.update((key, kept.version) for key, kept in self.variables.items())
        wanted = known if keys is None else {key: known[key] for key in keys if key in known}
        return Versions(wanted, self.task_version, self.notes_version)

    def _put(self, variable: Variable, expires_us: int | None) -> None:
        before = self.variables.get(variable.key)
        self.size_bytes += variable.size_bytes - (0 if before is None else before.variable.size_bytes)
        self.variables[variable.key] = Kept(variable, expires_us, self.stamp, self.stamp)
        self.deleted.pop(variable.key, None)
        self.written.add(variable.key)

    def _forget(self, key: str, version: int) -> None:
        self.size_bytes -= self.variables.pop(key).variable.size_bytes
        self.deleted[key] = version

    def _remove(self, keys: tuple[str, ...], now_us: int) -> int:
        there = {key for key in keys if key in self.variables}
        alive = sum(self._live(key, now_us) is not None for key in there)
        for key in there:
            self._forget(key, self.stamp)
        return alive

    def _clear_notes(self) -> int:
        gone = len(self.notes)
        self.size_bytes -= sum(map(len, self.notes))
        self.notes, self.notes_version = [], self.stamp
        return gone

    def _increment(self, key: str, by: int, now_us: int) -> int:
        kept = self._live(key, now_us)
        number = 0
        if kept is not None:
            if not _WHOLE_NUMBER.fullmatch(kept.variable.value):
                raise not_a_whole_number(key)
            number = int(kept.variable.value)
            if not INT_LEAST <= number <= INT_MOST:
                raise not_a_whole_number(key)
        number += by
        if not INT_LEAST <= number <= INT_MOST:
            raise out_of_range(key, by)
        text = str(number).encode()
        self._put(Variable(key, text, text), None if kept is None else kept.expires_us)
        self._make_room(now_us)
        return number

    def _compare_and_set(self, variable: Variable, likeness: bytes | None, now_us: int) -> bool:
        kept = self._live(variable.key, now_us)
        if (None if kept is None else kept.variable.likeness) != likeness:
            return False
        self._put(variable, None if kept is None else kept.expires_us)
        self._make_room(now_us)
        return True

    def _checkpoint(self, checkpoint_id: str, label: str | None, now_us: int, spared: str | None = None) -> None:
        if any(taken.info.checkpoint_id == checkpoint_id for taken in self.checkpoints):
            raise checkpoint_there(checkpoint_id)
        measured = self._measured(now_us)
        at = _EPOCH + timedelta(microseconds=now_us)
        info = Checkpoint(checkpoint_id, label, at, measured.keys, measured.scratchpad_entries, measured.bytes)
        live = {key: self.variables[key] for key in self._live_keys(now_us)}
        self.checkpoints.append(Taken(info, now_us, live, self.task, tuple(self.notes)))
        while len(self.checkpoints) > self.limits.checkpoints:
            oldest = next((taken for taken in self.checkpoints if taken.info.checkpoint_id != spared), None)
            if oldest is None or oldest.info.checkpoint_id == checkpoint_id:
                break
            self.checkpoints.remove(oldest)

    def _restore(self, checkpoint_id: str, undo_id: str, now_us: int) -> None:
        wanted = next((taken for taken in self.checkpoints if taken.info.checkpoint_id == checkpoint_id), None)
        if wanted is None:
            raise no_checkpoint(checkpoint_id)
        self._checkpoint(undo_id, f"before restoring {checkpoint_id}", now_us, spared=checkpoint_id)
        self.stamp += 1
        self._remove(tuple(key for key in self.variables if key not in wanted.variables), now_us)
        for key, kept in wanted.variables.items():
            now = self.variables.get(key)
            if now is None or now.version != kept.version or kept.expires_us is not None:
                left = None if kept.expires_us is None else now_us + kept.expires_us - wanted.at_us
                self._put(kept.variable, left)
        if self.notes != list(wanted.notes):
            self._clear_notes()
            self.notes = list(wanted.notes)
            self.size_bytes += sum(map(len, self.notes))
        if self.task != wanted.task:
            self.size_bytes += len(wanted.task or b"") - len(self.task or b"")
            self.task, self.task_version = wanted.task, self.stamp

    def _make_room(self, now_us: int) -> None:
        """Remove what has expired, and then what may be evicted, until the session is within its limits.

        Raises:
            CapacityExceeded: It cannot be.
        """
        limits = self.limits
        if len(self.notes) > limits.scratchpad_entries:
            raise CapacityExceeded(
                "max_scratchpad_entries", len(self.notes), limits.scratchpad_entries, self.address_id
            )
        if self._fits():
            return
        for key in [key for key in self.variables if self._live(key, now_us) is None]:
            self._forget(key, self.variables[key].version)
        if limits.on_full == "evict":
            leaving = sorted(
                (key for key in self.variables if key not in self.written),
                key=lambda key: (self.variables[key].used, key),
            )
            for key in leaving:
                if self._fits():
                    break
                self._forget(key, self.stamp)
                self.evicted += 1
        if len(self.variables) > limits.keys:
            raise CapacityExceeded("max_keys", len(self.variables), limits.keys, self.address_id)
        if self.size_bytes > limits.session_bytes:
            raise CapacityExceeded("max_session_bytes", self.size_bytes, limits.session_bytes, self.address_id)

    def _fits(self) -> bool:
        return len(self.variables) <= self.limits.keys and self.size_bytes <= self.limits.session_bytes
