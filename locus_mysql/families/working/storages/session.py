"""A session in memory, and the effect of each command on it. Does no I/O and has no clock."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ....errors import CapacityExceeded
from .. import calls
from ..errors import (
    checkpoint_exists,
    no_checkpoint,
    not_a_whole_number,
    of_nothing,
    out_of_range,
)
from ..globs import matcher

#: The versions of deleted variables are known for this long, in microseconds.
DELETED_KNOWN_US = 3_600_000_000

_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StoredVariable(NamedTuple):
    """A variable with its expiry, its version and its last use."""

    variable: calls.Variable
    expires_us: int | None
    version: int
    used: int


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint with its content."""

    info: calls.Checkpoint
    at_us: int
    variables: dict[str, StoredVariable]
    task: bytes | None
    notes: tuple[bytes, ...]


@dataclass(slots=True)
class Session:
    """A session.

    Args:
        address_id: The session id, for errors.
        ttl_us: The session's time to live.
    """

    address_id: str
    ttl_us: int | None
    stamp: int = 0
    expires_us: int | None = None
    variables: dict[str, StoredVariable] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    task: bytes | None = None
    task_version: int = 0
    notes: list[bytes] = field(default_factory=list)
    notes_version: int = 0
    checkpoints: list[StoredCheckpoint] = field(default_factory=list)
    size_bytes: int = 0
    limits: calls.Limits = field(default_factory=calls.Limits)
    written: set[str] = field(default_factory=set)
    evicted: int = 0
    ended: bool = False

    def copy(self) -> Session:
        """Return a copy that can be changed without changing this session."""
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
    def of_nothing(cls, call: calls.Call) -> calls.Reply:
        """Return the reply to a call that finds no session and creates none."""
        nothing = cls(call.address.session_id, None)
        return calls.Reply(
            tuple(
                nothing.read(command, 0) if isinstance(command, calls.READS) else of_nothing(command)
                for command in call.commands
            )
        )

    def expired(self, now_us: int) -> bool:
        """Return whether the session has expired."""
        return self.expires_us is not None and self.expires_us <= now_us

    def renew(self, now_us: int) -> None:
        """Restart the time to live."""
        self.expires_us = None if self.ttl_us is None else now_us + calls.lifetime_us(self.ttl_us)

    @property
    def all_bytes(self) -> int:
        """Size of the session with its checkpoints."""
        return self.size_bytes + sum(checkpoint.info.bytes for checkpoint in self.checkpoints)

    def carry_out(self, call: calls.Call, now_us: int) -> tuple[object, ...]:
        """Execute a call that writes; returns the results. If this raises, the session must be discarded."""
        self.limits = call.limits
        self.evicted = 0
        self.written = set()
        self.stamp = max(self.stamp + len(call.used), now_us)
        for index, key in enumerate(call.used):
            kept = self.variables.get(key)
            if kept is not None:
                self.variables[key] = kept._replace(used=self.stamp - len(call.used) + index + 1)
        self.renew(now_us)
        self._forget_deleted(now_us)
        return tuple(self._result(command, now_us) for command in call.commands)

    def _result(self, command: calls.Command[object], now_us: int) -> object:
        if isinstance(command, calls.READS):
            return self.read(command, now_us)
        self.stamp += 1
        return self.write(command, now_us)

    def read(self, command: calls.Command[object], now_us: int) -> object:
        """Return the result of a command that changes nothing."""
        match command:
            case calls.Read(keys):
                return {key: self._found(key, now_us) for key in keys if self._live(key, now_us) is not None}
            case calls.ReadAll():
                return {key: self._found(key, now_us) for key in self._live_keys(now_us)}
            case calls.ListKeys(pattern):
                matches = matcher(pattern)
                return [key for key in self._live_keys(now_us) if matches(key)]
            case calls.ReadTask():
                return self.task
            case calls.ReadNotes(last):
                return self.notes[max(0, len(self.notes) - last) :] if last is not None else list(self.notes)
            case calls.ListCheckpoints():
                return [checkpoint.info for checkpoint in reversed(self.checkpoints)]
            case calls.Measure():
                return self._measured(now_us)
            case calls.Inspect(keys):
                return self._versions(keys, now_us)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def write(self, command: calls.Command[object], now_us: int) -> object:
        """Execute a command that writes; returns its result."""
        match command:
            case calls.Write(variables):
                for variable in variables:
                    self._put(variable, None if variable.ttl_us is None else now_us + variable.ttl_us)
                self._make_room(now_us)
            case calls.Remove(keys):
                return self._remove(keys, now_us)
            case calls.Clear():
                return self._remove(tuple(self.variables), now_us)
            case calls.Increment(key, by):
                return self._increment(key, by, now_us)
            case calls.CompareAndSet(variable, canonical):
                return self._compare_and_set(variable, canonical, now_us)
            case calls.WriteTask(value):
                self.size_bytes += len(value or b"") - len(self.task or b"")
                self.task, self.task_version = value, self.stamp
                self._make_room(now_us)
            case calls.Append(note):
                self.notes.append(note)
                self.notes_version = self.stamp
                self.size_bytes += len(note)
                self._make_room(now_us)
            case calls.ClearNotes():
                return self._clear_notes()
            case calls.Touch(ttl_us):
                self.ttl_us = self.ttl_us if ttl_us is None else ttl_us
                self.renew(now_us)
                return True
            case calls.CreateCheckpoint(checkpoint_id, label):
                self._checkpoint(checkpoint_id, label, now_us)
            case calls.RestoreCheckpoint(checkpoint_id, undo_id):
                self._restore(checkpoint_id, undo_id, now_us)
            case calls.DeleteCheckpoint(checkpoint_id):
                before = len(self.checkpoints)
                self.checkpoints = [one for one in self.checkpoints if one.info.checkpoint_id != checkpoint_id]
                return len(self.checkpoints) < before
            case calls.End():
                self.ended = True
                return True
            case _:
                raise TypeError(f"{type(command).__name__} is no command of a storage.")
        return None

    def _live(self, key: str, now_us: int) -> StoredVariable | None:
        kept = self.variables.get(key)
        return None if kept is None or (kept.expires_us is not None and kept.expires_us <= now_us) else kept

    def _live_keys(self, now_us: int) -> list[str]:
        return sorted(key for key in self.variables if self._live(key, now_us) is not None)

    def _found(self, key: str, now_us: int) -> calls.Found:
        kept = self.variables[key]
        return calls.Found(kept.variable.value, None if kept.expires_us is None else kept.expires_us - now_us)

    def _measured(self, now_us: int) -> calls.Measured:
        gone = [kept.variable.size_bytes for key, kept in self.variables.items() if self._live(key, now_us) is None]
        return calls.Measured(
            len(self.variables) - len(gone),
            self.size_bytes - sum(gone),
            len(self.notes),
            len(self.checkpoints),
            None if self.expires_us is None else self.expires_us - now_us,
        )

    def _versions(self, keys: tuple[str, ...] | None, now_us: int) -> calls.Versions:
        known = {key: stamp for key, stamp in self.deleted.items() if stamp > now_us - DELETED_KNOWN_US}
        known.update((key, kept.version) for key, kept in self.variables.items())
        wanted = known if keys is None else {key: known[key] for key in keys if key in known}
        return calls.Versions(wanted, self.task_version, self.notes_version)

    def _put(self, variable: calls.Variable, expires_us: int | None) -> None:
        before = self.variables.get(variable.key)
        self.size_bytes += variable.size_bytes - (0 if before is None else before.variable.size_bytes)
        self.variables[variable.key] = StoredVariable(variable, expires_us, self.stamp, self.stamp)
        self.deleted.pop(variable.key, None)
        self.written.add(variable.key)

    def _forget(self, key: str, version: int) -> None:
        self.size_bytes -= self.variables.pop(key).variable.size_bytes
        self.deleted[key] = version

    def _forget_deleted(self, now_us: int) -> None:
        """Drop the versions of variables that were deleted long ago; they are in the order of their deletion."""
        for key, _ in list(itertools.takewhile(lambda one: one[1] <= now_us - DELETED_KNOWN_US, self.deleted.items())):
            del self.deleted[key]

    def _remove(self, keys: tuple[str, ...], now_us: int) -> int:
        existing = {key for key in keys if key in self.variables}
        alive = sum(self._live(key, now_us) is not None for key in existing)
        for key in existing:
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
            if not calls.INT_LEAST <= number <= calls.INT_MOST:
                raise not_a_whole_number(key)
        number += by
        if not calls.INT_LEAST <= number <= calls.INT_MOST:
            raise out_of_range(key, by)
        text = str(number).encode()
        self._put(calls.Variable(key, text, text), None if kept is None else kept.expires_us)
        self._make_room(now_us)
        return number

    def _compare_and_set(self, variable: calls.Variable, canonical: bytes | None, now_us: int) -> bool:
        kept = self._live(variable.key, now_us)
        if (None if kept is None else kept.variable.canonical) != canonical:
            return False
        self._put(variable, None if kept is None else kept.expires_us)
        self._make_room(now_us)
        return True

    def _checkpoint(self, checkpoint_id: str, label: str | None, now_us: int, spared: str | None = None) -> None:
        if any(checkpoint.info.checkpoint_id == checkpoint_id for checkpoint in self.checkpoints):
            raise checkpoint_exists(checkpoint_id)
        measured = self._measured(now_us)
        at = _EPOCH + timedelta(microseconds=now_us)
        info = calls.Checkpoint(checkpoint_id, label, at, measured.keys, measured.scratchpad_entries, measured.bytes)
        live = {key: self.variables[key] for key in self._live_keys(now_us)}
        self.checkpoints.append(StoredCheckpoint(info, now_us, live, self.task, tuple(self.notes)))
        while len(self.checkpoints) > self.limits.checkpoints:
            oldest = next((one for one in self.checkpoints if one.info.checkpoint_id != spared), None)
            if oldest is None or oldest.info.checkpoint_id == checkpoint_id:
                break
            self.checkpoints.remove(oldest)

    def _restore(self, checkpoint_id: str, undo_id: str, now_us: int) -> None:
        wanted = next((one for one in self.checkpoints if one.info.checkpoint_id == checkpoint_id), None)
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
        """Remove expired variables, and evict others if that is allowed, until the session is within its limits.

        Raises:
            CapacityExceeded: The session exceeds a limit even then.
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
