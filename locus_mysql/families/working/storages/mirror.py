"""A copy of what a process has seen of sessions, for outages: `Mirror`. Does no I/O."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import calls


class Seen(NamedTuple):
    """A value as it was seen.

    Args:
        value: Its JSON; None if it was missing or deleted.
        stamp: The stamp of the session then.
        expires_us: When it expires, by this process's monotonic clock.
    """

    value: bytes | None
    stamp: int
    expires_us: int | None = None


@dataclass(slots=True)
class SeenSession:
    """What was seen of a session."""

    variables: dict[str, Seen] = field(default_factory=dict)
    task: Seen = field(default_factory=lambda: Seen(None, 0))
    notes: list[bytes] = field(default_factory=list)
    notes_stamp: int = 0
    forgotten: int = 0
    size_bytes: int = 0

    def put(self, key: str, value: bytes | None, stamp: int, left_us: int | None = None) -> None:
        """Record the value of a variable, unless it was seen later."""
        before = self.variables.get(key)
        if stamp < max(self.forgotten, 0 if before is None else before.stamp):
            return
        if before is not None:
            self.size_bytes -= len(key) + len(before.value or b"")
        self.size_bytes += len(key) + len(value or b"")
        self.variables[key] = Seen(value, stamp, None if left_us is None else now_us() + left_us)

    def keep_time(self, key: str, value: bytes, stamp: int) -> None:
        """Record the value of a variable that keeps its time to live."""
        before = self.variables.get(key)
        alive = before is not None and before.value is not None and before.expires_us is not None
        self.put(key, value, stamp, before.expires_us - now_us() if alive else None)  # type: ignore[union-attr,operator]

    def put_notes(self, notes: list[bytes], stamp: int) -> None:
        """Record all notes, unless they were seen later."""
        if stamp >= max(self.forgotten, self.notes_stamp):
            self.size_bytes += sum(map(len, notes)) - sum(map(len, self.notes))
            self.notes, self.notes_stamp = notes, stamp

    def forget_variables(self, stamp: int, kept: tuple[str, ...] = ()) -> None:
        """Forget variables that were not seen later."""
        for key, seen in list(self.variables.items()):
            if seen.stamp <= stamp and key not in kept:
                self.size_bytes -= len(key) + len(seen.value or b"")
                del self.variables[key]

    def learn(self, command: calls.Command[Any], result: Any, stamp: int) -> None:
        """Record what a command and its result tell."""
        match command:
            case calls.Read(keys):
                for key in keys:
                    found = result.get(key)
                    self.put(key, *((None, stamp) if found is None else (found.value, stamp, found.left_us)))
            case calls.ReadAll():
                self.forget_variables(stamp)
                for key, found in result.items():
                    self.put(key, found.value, stamp, found.left_us)
            case calls.Write(variables):
                for variable in variables:
                    self.put(variable.key, variable.value, stamp, variable.ttl_us)
            case calls.Remove(keys):
                for key in keys:
                    self.put(key, None, stamp)
            case calls.Clear():
                self.forget_variables(stamp)
            case calls.Increment(key):
                self.keep_time(key, b"%d" % result, stamp)
            case calls.CompareAndSet(variable) if result:
                self.keep_time(variable.key, variable.value, stamp)
            case calls.ReadTask() | calls.WriteTask():
                value = command.value if isinstance(command, calls.WriteTask) else result
                if stamp >= max(self.forgotten, self.task.stamp):
                    self.size_bytes += len(value or b"") - len(self.task.value or b"")
                    self.task = Seen(value, stamp)
            case calls.ReadNotes(None):
                self.put_notes(list(result), stamp)
            case calls.Append(note):
                if stamp >= self.forgotten:
                    self.notes.append(note)
                    self.size_bytes += len(note)
                    self.notes_stamp = max(stamp, self.notes_stamp)
            case calls.ClearNotes():
                self.put_notes([], stamp)
            case calls.RestoreCheckpoint():
                self.forget(stamp)
            case calls.Replayed(calls.Increment(key)):
                self.variables.pop(key, None)
            case calls.Replayed(inner) if result:
                self.learn(inner, result, stamp)

    def forget(self, stamp: int) -> None:
        """Forget everything, and ignore what was seen before."""
        self.forget_variables(stamp)
        self.put_notes([], stamp)
        self.size_bytes -= len(self.task.value or b"")
        self.task = Seen(None, stamp)
        self.forgotten = max(self.forgotten, stamp)


class Mirror:
    """What a process has seen of the sessions that it used last. Thread-safe.

    Args:
        max_sessions: The maximum number of sessions.
        max_bytes: The maximum number of bytes of values, with their keys.
    """

    def __init__(self, max_sessions: int, max_bytes: int) -> None:
        self._max_sessions, self._max_bytes = max_sessions, max_bytes
        self._sessions: OrderedDict[calls.Address, SeenSession] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()

    def learn(self, call: calls.Call, reply: calls.Reply) -> None:
        """Record what a call and its reply tell."""
        with self._lock:
            session = self._sessions.pop(call.address, None) or SeenSession()
            self._size_bytes -= session.size_bytes
            if reply.stamp:
                if reply.evicted:
                    session.forget_variables(reply.stamp)
                for command, result in zip(call.commands, reply.results, strict=True):
                    session.learn(command, result, reply.stamp)
            else:  # it has ended
                session = SeenSession()
            self._sessions[call.address] = session
            self._size_bytes += session.size_bytes
            while len(self._sessions) > self._max_sessions or self._size_bytes > self._max_bytes:
                _, oldest = self._sessions.popitem(last=False)
                self._size_bytes -= oldest.size_bytes

    def restamp(self, address: calls.Address, stamp: int, lost: set[str]) -> None:
        """Count what was seen as seen at a stamp of the primary; forget some variables."""
        with self._lock:
            session = self._sessions.get(address)
            if session is None:
                return
            self._size_bytes -= session.size_bytes
            for key in lost & session.variables.keys():
                session.size_bytes -= len(key) + len(session.variables.pop(key).value or b"")
            for key, seen in session.variables.items():
                session.variables[key] = seen._replace(stamp=stamp)
            session.task = session.task._replace(stamp=stamp)
            session.notes_stamp = session.forgotten = stamp
            self._size_bytes += session.size_bytes

    def content(self, address: calls.Address) -> list[calls.Command[Any]]:
        """Return commands that write what was seen of a session."""
        with self._lock:
            session = self._sessions.get(address)
            if session is None:
                return []
            now, commands = now_us(), list[calls.Command[Any]]()
            for key, seen in session.variables.items():
                left_us = None if seen.expires_us is None else seen.expires_us - now
                if seen.value is not None and (left_us is None or left_us > 0):
                    commands.append(calls.Write((calls.Variable(key, seen.value, left_us),)))
            if session.task.value is not None:
                commands.append(calls.WriteTask(session.task.value))
            return [*commands, *map(calls.Append, session.notes)]

    def forget_tenant(self, tenant: str) -> None:
        """Forget all sessions of a tenant."""
        with self._lock:
            for address in [address for address in self._sessions if address.tenant == tenant]:
                self._size_bytes -= self._sessions.pop(address).size_bytes


def now_us() -> int:
    """The current time, by this process's monotonic clock."""
    return time.monotonic_ns() // 1_000
