"""The effect of each command on a session: the semantics of working memory. Does no I/O and has no clock.

`carry_out` executes a call on a `Session` and returns a `Work`, which has the reply and the changes. The session itself
changes in `Work.apply`, so that a storage can write the changes first, and drop them if another process was faster. A
session may hold only some of its entries: those that `optimistic.need_of` the call names.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from ...errors import CapacityExceeded, InvalidInput, NotFound
from . import calls
from .content import (
    DELETED_KNOWN_US,
    NOTE,
    TASK,
    VARIABLE,
    Changes,
    Entry,
    Head,
    Session,
    StoredCheckpoint,
    View,
)
from .values import canonical_form

_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}")


class Incomplete(Exception):
    """To make room, the session must hold all its variables, at least without their values."""


def carry_out(session: Session | None, call: calls.Call, now_us: int) -> Work:
    """Execute a call. The session changes only when the returned work is applied.

    Args:
        session: The session, expired or not; None if there is none.
        call: The call.
        now_us: The storage's time.

    Raises:
        StampMoved: The session has another stamp than the call requires.
        Incomplete: The session must hold all its variables.
        CapacityExceeded, InvalidInput, NotFound: See the commands.
    """
    found = None if session is None or session.expired(now_us) else session
    stamp = 0 if found is None else found.head.stamp
    if call.if_stamp is not None and call.if_stamp != stamp:
        raise calls.StampMoved
    work = Work(found, call, now_us)
    work.run()
    return work


class Work(View):
    """The effect of one call.

    Args:
        found: The session; None if there is none.
        call: The call.
        now_us: The storage's time.
    """

    def __init__(self, found: Session | None, call: calls.Call, now_us: int) -> None:
        self.call, self.found, self.writes = call, found, call.writes
        session = found or Session(call.address.session_id, Head(ttl_us=call.ttl_us, created_us=now_us))
        super().__init__(session, now_us, copies_head=self.writes or call.renew)
        self.ended, self.evicted = False, 0
        self._written = set[str]()
        #: Present rows, and entries of this call, to copy to the history; see `Changes`.
        self._keep: list[tuple[int, str, int]] = []
        self._history: list[tuple[int, str, Entry, int]] = []
        self._kept_notes = 0
        self._at_us = 0  # when a replayed command was made
        self.reply = calls.Reply(())

    @property
    def begun(self) -> bool:
        """Return whether the call begins the session."""
        return self.found is None and self.writes and self.call.begins

    def run(self) -> None:
        """Execute the commands."""
        if self.found is None and not self.begun:
            self.writes = False
            self.reply = calls.Reply(tuple(map(self._of_nothing, self.call.commands)))
            return
        head, used = self.head, self.call.used
        if not self.writes:
            if self.call.renew:
                self._renew()
            self.reply = calls.Reply(tuple(map(self.read, self.call.commands)), head.stamp, head.ttl_us)
            return
        head.stamp = max(head.stamp + len(used), self.now_us)
        for index, key in enumerate(used):
            entry = self._entry(VARIABLE, key)
            if entry is not None:
                self.changed[VARIABLE][key] = entry._replace(used=head.stamp - len(used) + index + 1)
        self._renew()
        results = tuple(map(self._result, self.call.commands))
        if self.ended:
            self.reply = calls.Reply(results)
        else:
            self.reply = calls.Reply(results, head.stamp, head.ttl_us, self.evicted)

    def apply(self) -> Session | None:
        """Change the session; returns it, or None if there is none any more."""
        if self.ended or (self.found is None and not self.begun):
            return None
        session = self.session
        session.head = self.head
        if not self.writes:
            return session
        if self.clears_notes:
            session.entries[NOTE].clear()
        for kind, entries in self.changed.items():
            held = session.entries[kind]
            for name, entry in entries.items():
                if entry.size_bytes:
                    held[name] = entry
                    if kind == VARIABLE:
                        session.deleted.pop(name, None)
                elif kind == TASK:
                    held[name] = entry
                else:
                    held.pop(name, None)
                    if kind == VARIABLE:
                        session.deleted.pop(name, None)
                        session.deleted[name] = entry.version
        session.checkpoints = self.checkpoints
        oldest_us = self.now_us - DELETED_KNOWN_US
        for name, _ in list(itertools.takewhile(lambda one: one[1] <= oldest_us, session.deleted.items())):
            del session.deleted[name]
        return session

    def changes(self) -> Changes:
        """Return what a storage has to write, apart from the head."""
        changes = Changes([], [], [], self._keep, self._history, self.clears_notes, self._kept_notes, [], [])
        if self.checkpoints is not self.session.checkpoints:
            known = {one.info.checkpoint_id: one for one in self.session.checkpoints}
            changes.created.extend(one for one in self.checkpoints if known.get(one.info.checkpoint_id) is not one)
            changes.removed.extend(known.keys() - {one.info.checkpoint_id for one in self.checkpoints})
        for kind, entries in self.changed.items():
            for name, entry in entries.items():
                before = self.session.entries[kind].get(name)
                if before is entry or before == entry:
                    continue
                if before is not None and before._replace(used=entry.used) == entry:
                    changes.uses.append((name, entry.used))
                elif entry.size_bytes or kind != NOTE:
                    changes.puts.append((kind, name, entry))
                elif before is not None:
                    changes.drops.append(name)
        return changes

    def _retain(self, kind: int, name: str) -> None:
        """Copy an entry to the history before it changes, if the newest checkpoint contains it."""
        entry, kept = self._entry(kind, name), self.head.kept
        if entry is None or entry.version > kept:
            return
        stored = self.session.entries[kind].get(name)
        if stored is not None and stored.version == entry.version:
            self._keep.append((kind, name, kept + 1))
        else:
            self._history.append((kind, name, entry, kept + 1))

    def _result(self, command: calls.Command[object]) -> object:
        if command.reads:
            return self.read(command)
        self.head.stamp += 1
        if isinstance(command, calls.Replayed):
            return self._replay(command)
        return self._write(command)

    def _of_nothing(self, command: calls.Command[object]) -> object:
        """Return the result of a command without a session, which it does not begin."""
        match command:
            case calls.RestoreCheckpoint(checkpoint_id):
                raise _no_checkpoint(checkpoint_id)
            case calls.Replayed():
                return True
        return self.read(command) if command.reads else command.nothing

    # Writing

    def _write(self, command: calls.Command[object]) -> object:
        match command:
            case calls.Write(variables):
                for variable in variables:
                    expires_us = None if variable.ttl_us is None else self.now_us + variable.ttl_us
                    self._put(VARIABLE, variable.key, variable.value, expires_us)
                self._make_room()
            case calls.Remove(keys):
                return self._remove(keys)
            case calls.Clear():
                return self._remove(tuple(self._names(VARIABLE)))
            case calls.Increment(key, by):
                return self._increment(key, by)
            case calls.CompareAndSet(variable, canonical):
                return self._compare_and_set(variable, canonical)
            case calls.WriteTask(None):
                self._forget(TASK, "", self._new_version(TASK, ""))
            case calls.WriteTask(bytes(value)):
                self._put(TASK, "", value)
                self._make_room()
            case calls.Append(note):
                self.head.last_note += 1
                self._put(NOTE, f"{self.head.last_note:020}", note)
                self._make_room()
            case calls.ClearNotes():
                return self._clear_notes()
            case calls.Touch(ttl_us):
                self.head.ttl_us = self.head.ttl_us if ttl_us is None else ttl_us
                self._renew()
                return True
            case calls.CreateCheckpoint(checkpoint_id, label):
                self._checkpoint(checkpoint_id, label)
            case calls.RestoreCheckpoint(checkpoint_id, undo_id):
                self._restore(checkpoint_id, undo_id)
            case calls.DeleteCheckpoint(checkpoint_id):
                before = len(self.checkpoints)
                self._keep_checkpoints([one for one in self.checkpoints if one.info.checkpoint_id != checkpoint_id])
                return len(self.checkpoints) < before
            case calls.End():
                self.ended = True
                return True
            case _:
                raise TypeError(f"{type(command).__name__} is no command of a storage.")
        return None

    def _replay(self, replayed: calls.Replayed) -> bool:
        """Execute a command that waited for the storage, unless it would overwrite something newer."""
        command, at_us, sent_us = replayed.command, replayed.at_us, replayed.sent_us
        task, before = self.session.entries[TASK].get(""), self._version_before
        match command:
            case calls.Write((variable,)) | calls.CompareAndSet(variable) if before(variable.key) > at_us:
                return False
            case calls.Remove((key,)) if before(key) > at_us:
                return False
            case calls.WriteTask() if task is not None and task.version > at_us:
                return False
            case calls.ClearNotes() if self.session.head.notes_version > at_us:
                return False
            case calls.End() if self.session.head.stamp > at_us:
                return False
            case calls.Increment(key) if sent_us is not None and before(key) >= sent_us:
                return False
            case calls.Append() if sent_us is not None and self.session.head.notes_version >= sent_us:
                return False
            case calls.Clear():
                older = tuple(key for key in self._names(VARIABLE) if before(key) <= at_us)
                left = self.head.variables - len(older)
                self._at_us = at_us
                self._remove(older)
                self._at_us = 0
                return not left
        self._at_us = at_us
        result = self._write(command)
        self._at_us = 0
        return result is not False or not isinstance(command, calls.CompareAndSet)

    def _renew(self) -> None:
        ttl_us = self.head.ttl_us
        self.head.expires_us = None if ttl_us is None else self.now_us + calls.lifetime_us(ttl_us)

    def _put(self, kind: int, name: str, value: bytes, expires_us: int | None = None) -> None:
        size_bytes = len(value) + (len(name.encode()) if kind == VARIABLE else 0)
        self._retain(kind, name)
        before, head = self._entry(kind, name), self.head
        head.size_bytes += size_bytes - (0 if before is None else before.size_bytes)
        if kind == VARIABLE:
            head.variables += before is None
            self._written.add(name)
        elif kind == NOTE:
            head.notes += before is None
            head.notes_bytes += size_bytes - (0 if before is None else before.size_bytes)
            head.notes_version = max(head.notes_version, self._at_us or head.stamp)
        self.changed[kind][name] = Entry(value, size_bytes, self._new_version(kind, name), head.stamp, expires_us)

    def _new_version(self, kind: int, name: str) -> int:
        """Return the version of an entry that is written now: when a replayed command was made, else the stamp.

        So of the writes that several processes replay, the newest stays. A version must not be below the one before,
        and must be above the stamps of checkpoints that do not contain it.
        """
        entry = self.changed[kind].get(name) or self.session.entries[kind].get(name)
        before = self.session.deleted.get(name, 0) if entry is None else entry.version
        fits = before <= self._at_us and self.head.kept < self._at_us < self.head.stamp
        return self._at_us if fits else self.head.stamp

    def _forget(self, kind: int, name: str, version: int) -> None:
        self._retain(kind, name)
        before, head = self._entry(kind, name), self.head
        if before is not None:
            head.size_bytes -= before.size_bytes
            if kind == VARIABLE:
                head.variables -= 1
            elif kind == NOTE:
                head.notes -= 1
                head.notes_bytes -= before.size_bytes
                head.notes_version = head.stamp
        self.changed[kind][name] = Entry(None, 0, version)

    def _remove(self, keys: tuple[str, ...]) -> int:
        existing = {key for key in keys if self._entry(VARIABLE, key) is not None}
        alive = sum(self._live(key) is not None for key in existing)
        for key in existing:
            self._forget(VARIABLE, key, self._new_version(VARIABLE, key))
        return alive

    def _clear_notes(self) -> int:
        gone = self.head.notes
        if self.session.whole:
            for name in list(self._names(NOTE)):
                self._forget(NOTE, name, self.head.stamp)
        else:
            for name in self.changed[NOTE]:
                self._retain(NOTE, name)
            if not self.clears_notes:
                self._kept_notes = self.head.kept
            self.clears_notes = True
            self.changed[NOTE].clear()
            self.head.size_bytes -= self.head.notes_bytes
            self.head.notes = self.head.notes_bytes = 0
        self.head.notes_version = self._at_us or self.head.stamp
        return gone

    def _increment(self, key: str, by: int) -> int:
        entry = self._live(key)
        number = 0
        if entry is not None:
            text = entry.value or b""
            number = int(text) if _WHOLE_NUMBER.fullmatch(text) else calls.INT_MOST + 1
            if not calls.INT_LEAST <= number <= calls.INT_MOST:
                raise InvalidInput(
                    f"Variable {key!r} does not hold a whole number of 64 bits, so it cannot be incremented. Nothing "
                    "was changed. Set it to a number, or use another key."
                )
        number += by
        if not calls.INT_LEAST <= number <= calls.INT_MOST:
            raise InvalidInput(
                f"Variable {key!r} plus {by} is beyond 64 bits, the limit of increment. Nothing was changed. Set it to "
                "a smaller number."
            )
        self._put(VARIABLE, key, b"%d" % number, None if entry is None else entry.expires_us)
        self._make_room()
        return number

    def _compare_and_set(self, variable: calls.Variable, canonical: bytes | None) -> bool:
        entry = self._live(variable.key)
        if (None if entry is None else canonical_form(entry.value or b"")) != canonical:
            return False
        self._put(VARIABLE, variable.key, variable.value, None if entry is None else entry.expires_us)
        self._make_room()
        return True

    def _checkpoint(self, checkpoint_id: str, label: str | None, spared: str | None = None) -> None:
        if any(checkpoint.info.checkpoint_id == checkpoint_id for checkpoint in self.checkpoints):
            raise InvalidInput(f"The session has a checkpoint {checkpoint_id!r} already. Nothing was changed.")
        measured = self._measured()
        counts = measured.keys, measured.scratchpad_entries, measured.bytes
        created = StoredCheckpoint.of(checkpoint_id, self.head.stamp, label, *counts, self.now_us)
        content = self._content() if self.session.whole else None
        checkpoints = [*self.checkpoints, replace(created, content=content)]
        while len(checkpoints) > self.call.limits.checkpoints:
            oldest = next((one for one in checkpoints if one.info.checkpoint_id != spared), None)
            if oldest is None or oldest.info.checkpoint_id == checkpoint_id:
                break
            checkpoints.remove(oldest)
        self._keep_checkpoints(checkpoints)

    def _keep_checkpoints(self, checkpoints: list[StoredCheckpoint]) -> None:
        self.checkpoints = checkpoints
        self.head.checkpoints = len(checkpoints)
        self.head.kept = checkpoints[-1].stamp if checkpoints else 0

    def _restore(self, checkpoint_id: str, undo_id: str) -> None:
        wanted = next((one for one in self.checkpoints if one.info.checkpoint_id == checkpoint_id), None)
        if wanted is None:
            raise _no_checkpoint(checkpoint_id)
        if wanted.damage is not None or wanted.content is None:
            raise wanted.damage or _no_checkpoint(checkpoint_id)
        self._checkpoint(undo_id, f"before restoring {checkpoint_id}", spared=checkpoint_id)
        self.head.stamp += 1
        for kind, entries in wanted.content.items():
            for name in [name for name in self._names(kind) if name not in entries]:
                self._forget(kind, name, self.head.stamp)
            for name, entry in entries.items():
                now = self._entry(kind, name)
                if now is None or now.version != entry.version or entry.expires_us is not None:
                    left_us = None if entry.expires_us is None else self.now_us + entry.expires_us - wanted.at_us
                    self._put(kind, name, entry.value or b"", left_us)

    def _make_room(self) -> None:
        """Remove expired variables, and evict others if that is allowed, until the session is within its limits.

        Raises:
            CapacityExceeded: The session exceeds a limit even then.
            Incomplete: The session must hold all variables.
        """
        limits, head, session_id = self.call.limits, self.head, self.session.session_id
        if head.notes > limits.scratchpad_entries:
            raise CapacityExceeded("max_scratchpad_entries", head.notes, limits.scratchpad_entries, session_id)
        if self._fits():
            return
        if not self.session.complete:
            raise Incomplete
        for key, expired in self._expired().items():
            self._forget(VARIABLE, key, expired.version)
        if limits.on_full == "evict":
            entries = ((key, self._entry(VARIABLE, key)) for key in self._names(VARIABLE) if key not in self._written)
            for _, key in sorted((entry.used, key) for key, entry in entries if entry is not None):
                if self._fits():
                    break
                self._forget(VARIABLE, key, head.stamp)
                self.evicted += 1
        if head.variables > limits.keys:
            raise CapacityExceeded("max_keys", head.variables, limits.keys, session_id)
        if head.size_bytes > limits.session_bytes:
            raise CapacityExceeded("max_session_bytes", head.size_bytes, limits.session_bytes, session_id)

    def _fits(self) -> bool:
        limits = self.call.limits
        return self.head.variables <= limits.keys and self.head.size_bytes <= limits.session_bytes


def _no_checkpoint(checkpoint_id: str) -> NotFound:
    return NotFound(
        f"The session has no checkpoint {checkpoint_id!r}. Nothing was changed. list_checkpoints returns the existing "
        "ones."
    )
