"""The statements of each command on MySQL, and the decoding of their results. Does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from ....dialect import Statement
from ....dialect.statement import Query
from ....dialect.working import count_changes, sessions
from ....dialect.working.checkpoints import CheckpointRow, checkpoint_checksum
from ....dialect.working.dialect import WorkingDialect
from ....dialect.working.entries import EntryRow, KeyRow, StoredEntry, VersionRow, entry_checksum
from ....dialect.working.pieces import NAMES_LISTED, NOTE, TASK, VARIABLE, SessionKey
from ....drivers.interface import Result
from ....engine.rows import read_rows
from ....errors import CorruptCheckpoint
from ....runtime.damaged_rows import readable
from ....runtime.sealing import Sealing
from ....runtime.server_times import aware
from .. import calls
from ..sealed_values import entry_title, open_value, seal_value
from .mysql_known import Known, stored_canonical

_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode

#: The rows of a query that reads; each ends with the columns of the session.
R = TypeVar("R", StoredEntry, KeyRow, VersionRow, CheckpointRow, sessions.MeasureRow)


@dataclass(frozen=True, slots=True)
class ReadPlan(Generic[R]):
    """A command that changes nothing.

    Args:
        query: Returns no row if there is no session.
        result: Converts the rows to the command's result.
    """

    query: Query[R]
    result: Callable[[Sequence[R]], object]

    def read(self, answer: Result) -> tuple[object, int, int | None]:
        """Return the result, and the session's stamp and time to live. An expired session counts as missing."""
        rows = read_rows(self.query.row, answer.rows)
        if not rows:
            return self.result(()), 0, None
        left_us = rows[0].session_left_us
        if left_us is not None and left_us <= 0:
            return self.result(()), 0, None
        return self.result(rows), rows[0].stamp, rows[0].ttl_us


@dataclass(frozen=True, slots=True)
class Addition:
    """The growth of a session by a command, which may exceed a limit.

    Args:
        names: The variables that it writes.
        size_bytes: The bytes that it adds.
        count: The statement that counts the variable after the write, if that is when it is counted; it gets the limits
            if it must check them.
    """

    names: tuple[str, ...] = ()
    size_bytes: int = 0
    count: Callable[[sessions.Allowed | None], Statement] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command, which is recorded in the ledger with the command's token.

    Args:
        record: The statement that records it. For a command without an outcome only the token is recorded.
        result: Converts the outcome to the command's result.
        first: Whether it is recorded before the command's steps. Otherwise it is recorded after them, and then read.
    """

    record: Statement
    result: Callable[[int], object]
    first: bool = True


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A command that creates a checkpoint.

    Args:
        trim: The step that deletes the oldest checkpoints. If it deletes any, content that only they held is pruned.
        restores: Whether the session is restored from another checkpoint: then it is counted again as a whole, and the
            command uses a second stamp.
    """

    trim: Statement
    restores: bool = False


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A command that writes. Its first statement locks the session and changes its counts.

    Args:
        change: How the session's counts change.
        steps: The statements after that.
        begins: Whether the session is created if it does not exist.
        addition: The growth of the session, if any.
        outcome: Its outcome, if it has one.
        checkpoint: The checkpoint that it creates, if any.
        result: Its result, if it has no outcome.
    """

    change: count_changes.Change = field(default_factory=count_changes.Change)
    steps: tuple[Statement, ...] = ()
    begins: bool = False
    addition: Addition | None = None
    outcome: Outcome | None = None
    checkpoint: NewCheckpoint | None = None
    result: object = None


Plan = ReadPlan[Any] | WritePlan


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a command: the session, the token that it records, and the limits.

    ``known`` is what a command on an encrypted session must know before it is sent.
    """

    key: SessionKey
    token: bytes
    limits: calls.Limits
    known: Known = field(default_factory=Known)


class Plans:
    """Plans commands.

    Args:
        sql: The statements.
        sealing: Encrypts values.
    """

    def __init__(self, sql: WorkingDialect, sealing: Sealing) -> None:
        self.sql, self._sealing = sql, sealing
        self._writes: dict[type[calls.Command[Any]], Callable[[Any, Target], WritePlan]] = {
            calls.Write: self._write,
            calls.Remove: self._remove,
            calls.Clear: self._clear,
            calls.ClearNotes: self._clear_notes,
            calls.Increment: self._increment,
            calls.CompareAndSet: self._compare_and_set,
            calls.WriteTask: self._write_task,
            calls.Append: self._append,
            calls.Touch: self._touch,
            calls.CreateCheckpoint: self._create_checkpoint,
            calls.RestoreCheckpoint: self._restore_checkpoint,
            calls.DeleteCheckpoint: self._delete_checkpoint,
            calls.End: self._end,
        }

    def of(self, command: calls.Command[Any], target: Target) -> Plan:
        """Return the plan of a command."""
        write = self._writes.get(type(command))
        return self.read(command, target.key) if write is None else write(command, target)

    def read(self, command: calls.Command[Any], key: SessionKey) -> ReadPlan[Any]:
        """Return the plan of a command that changes nothing."""
        entries = self.sql.entries
        match command:
            case calls.Read(keys):
                keys = tuple(dict.fromkeys(keys))
                return ReadPlan(
                    entries.read(key, keys, _json_if_many(keys)), partial(found_variables, key, self._sealing)
                )
            case calls.ReadAll():
                return ReadPlan(entries.read_all(key, VARIABLE), partial(found_variables, key, self._sealing))
            case calls.ListKeys(pattern):
                return ReadPlan(entries.keys(key, pattern), _keys)
            case calls.ReadTask():
                return ReadPlan(entries.read(key, ("",), kind=TASK), partial(_task, key, self._sealing))
            case calls.ReadNotes(None):
                return ReadPlan(entries.read_all(key, NOTE), partial(_notes, key, self._sealing))
            case calls.ReadNotes(last):
                return ReadPlan(entries.read_all(key, NOTE, last), lambda rows: _notes(key, self._sealing, rows)[::-1])
            case calls.ListCheckpoints():
                return ReadPlan(self.sql.checkpoints.list(key), partial(_checkpoints, key))
            case calls.Measure():
                return ReadPlan(self.sql.sessions.measure(key), _measured)
            case calls.Inspect(names):
                return ReadPlan(entries.versions(key, names, _AS_JSON(list(names or ()))), _versions)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def _write(self, command: calls.Write, target: Target) -> WritePlan:
        names = tuple(variable.key for variable in command.variables)
        rows = [self._row(target, variable, variable.ttl_us) for variable in command.variables]
        target.known.written.update((variable.key, variable.value) for variable in command.variables)
        size_bytes = sum(row.size_bytes for row in rows)
        return WritePlan(
            count_changes.with_variables(names, _json_if_many(names), len(names), size_bytes),
            self.sql.entries.put(target.key, VARIABLE, rows),
            begins=True,
            addition=Addition(names, size_bytes),
        )

    def _remove(self, command: calls.Remove, target: Target) -> WritePlan:
        keys = tuple(dict.fromkeys(command.keys))
        as_json = _json_if_many(keys)
        target.known.written.update((key, None) for key in keys)
        return WritePlan(
            count_changes.with_variables(keys, as_json, 0, 0),
            (self.sql.entries.remove(target.key, VARIABLE, keys, as_json),),
            outcome=Outcome(self.sql.ledger.record_count(target.key, target.token, VARIABLE, keys, as_json), int),
        )

    def _clear(self, command: calls.Clear, target: Target) -> WritePlan:
        target.known.forget()
        return self._remove_all(target, VARIABLE, count_changes.without_variables())

    def _clear_notes(self, command: calls.ClearNotes, target: Target) -> WritePlan:
        return self._remove_all(target, NOTE, count_changes.without_notes())

    def _remove_all(self, target: Target, kind: int, change: count_changes.Change) -> WritePlan:
        outcome = Outcome(self.sql.ledger.record_count(target.key, target.token, kind), int)
        return WritePlan(change, (self.sql.entries.remove(target.key, kind),), outcome=outcome)

    def _increment(self, command: calls.Increment, target: Target) -> WritePlan:
        key, name, by = target.key, command.key, command.by
        if self._sealing.is_on:
            total = target.known.sum(command)
            return self._put_kept(target, total, self._known(target, int(total.value)))
        return WritePlan(
            count_changes.with_variables((name,), "", 0, 0),
            (self.sql.entries.can_add(key, name, by), self.sql.entries.add(key, name, by)),
            begins=True,
            addition=Addition((name,), len(name.encode()) + len(str(by)), self._counting(key, name)),
            outcome=Outcome(self.sql.ledger.record_number(key, target.token, name), int, first=False),
        )

    def _compare_and_set(self, command: calls.CompareAndSet, target: Target) -> WritePlan:
        key, variable, name = target.key, command.variable, command.variable.key
        if self._sealing.is_on:
            if not target.known.matches(command):
                return WritePlan(steps=self._guard(target, name), begins=True, outcome=self._known(target, 0, bool))
            return self._put_kept(target, variable, self._known(target, 1, bool))
        row = self._row(target, variable)
        canonical = command.canonical and stored_canonical(command.canonical)
        return WritePlan(
            count_changes.with_variables((variable.key,), "", 0, 0),
            (self.sql.entries.put_if_matched(key, target.token, row),),
            begins=True,
            addition=Addition((variable.key,), variable.size_bytes, self._counting(key, variable.key)),
            outcome=Outcome(self.sql.ledger.record_match(key, target.token, variable.key, canonical), bool),
        )

    def _known(self, target: Target, outcome: int, result: Callable[[int], object] = int) -> Outcome:
        """Return an outcome that is known before the call is sent. The ledger holds it masked, as it may be a value."""
        sealing, token = self._sealing.of(*target.key), target.token
        record = self.sql.ledger.record_known(target.key.tenant, token, sealing.mask(outcome, token))
        return Outcome(record, lambda stored: result(sealing.mask(stored, token)), first=False)

    def _put_kept(self, target: Target, variable: calls.Variable, outcome: Outcome) -> WritePlan:
        """Write an encrypted variable that was read before, and keep its time to live."""
        name = variable.key
        steps = (*self._guard(target, name), self.sql.entries.put_kept(target.key, self._row(target, variable)))
        target.known.written[name] = variable.value
        return WritePlan(
            count_changes.with_variables((name,), "", 0, 0),
            steps,
            begins=True,
            addition=Addition((name,), variable.size_bytes, self._counting(target.key, name)),
            outcome=outcome,
        )

    def _guard(self, target: Target, name: str) -> tuple[Statement, ...]:
        """Undo the batch if a variable that was read before has changed since."""
        if name in target.known.written:
            return ()
        return (self.sql.entries.guard_version(target.key, name, target.known.version(name)),)

    def _row(self, target: Target, variable: calls.Variable, ttl_us: int | None = None) -> EntryRow:
        """Return the row of a variable. An encrypted one has no canonical: equal values would be recognisable."""
        canonical = None if self._sealing.is_on else stored_canonical(variable.canonical)
        value = seal_value(self._sealing, target.key, VARIABLE, variable.key, variable.value)
        return EntryRow(variable.key, value, canonical, variable.size_bytes, ttl_us)

    def _counting(self, key: SessionKey, name: str) -> Callable[[sessions.Allowed | None], Statement]:
        return lambda allowed: self.sql.sessions.count_in(key, name, allowed)

    def _write_task(self, command: calls.WriteTask, target: Target) -> WritePlan:
        value = command.value
        stored = None if value is None else seal_value(self._sealing, target.key, TASK, "", value)
        row = EntryRow("", stored, None, len(value or b""))
        return WritePlan(
            count_changes.with_task(row.size_bytes),
            self.sql.entries.put(target.key, TASK, [row]),
            begins=True,
            addition=None if value is None else Addition((), row.size_bytes),
        )

    def _append(self, command: calls.Append, target: Target) -> WritePlan:
        note, size_bytes = command.note, len(command.note)
        guard: tuple[Statement, ...] = ()
        if self._sealing.is_on:
            target.known.last_note += 1
            number = target.known.last_note
            note = seal_value(self._sealing, target.key, NOTE, f"{number:020}", note)
            guard = (self.sql.entries.guard_note(target.key, number),)
        return WritePlan(
            count_changes.with_note(size_bytes),
            (*guard, self.sql.entries.append(target.key, note, size_bytes)),
            begins=True,
            addition=Addition((), size_bytes),
        )

    def _touch(self, command: calls.Touch, target: Target) -> WritePlan:
        change = count_changes.Change() if command.ttl_us is None else count_changes.with_ttl(command.ttl_us)
        return WritePlan(change, result=True)

    def _create_checkpoint(self, command: calls.CreateCheckpoint, target: Target) -> WritePlan:
        checkpoints, checkpoint_id = self.sql.checkpoints, command.checkpoint_id
        trim = checkpoints.trim(target.key, target.limits.checkpoints, checkpoint_id, checkpoint_id)
        create = checkpoints.create(target.key, checkpoint_id, command.label)
        return WritePlan(steps=(*create, trim), begins=True, checkpoint=NewCheckpoint(trim))

    def _restore_checkpoint(self, command: calls.RestoreCheckpoint, target: Target) -> WritePlan:
        key, checkpoints, checkpoint_id = target.key, self.sql.checkpoints, command.checkpoint_id
        target.known.is_restored = True
        trim = checkpoints.trim(key, target.limits.checkpoints, command.undo_id, checkpoint_id)
        return WritePlan(
            steps=(
                checkpoints.exists(key, checkpoint_id),
                *checkpoints.create(key, command.undo_id, f"before restoring {checkpoint_id}"),
                trim,
                self.sql.sessions.lock_again(key, count_changes.Change()),
                *checkpoints.restore(key, checkpoint_id),
            ),
            checkpoint=NewCheckpoint(trim, restores=True),
        )

    def _delete_checkpoint(self, command: calls.DeleteCheckpoint, target: Target) -> WritePlan:
        key, checkpoints = target.key, self.sql.checkpoints
        return WritePlan(
            steps=(checkpoints.delete(key, command.checkpoint_id), checkpoints.prune(key)),
            outcome=Outcome(self.sql.ledger.record_existence(key, target.token, command.checkpoint_id), bool),
        )

    def _end(self, command: calls.End, target: Target) -> WritePlan:
        return WritePlan(steps=self.sql.sessions.remove(target.key), result=True)


def _json_if_many(names: Sequence[str]) -> str:
    """Return names as JSON if they are too many to list. Encoding takes longer than the rest of a statement."""
    return _AS_JSON(list(names)) if len(names) > NAMES_LISTED else ""


def found_variables(key: SessionKey, sealing: Sealing, rows: Sequence[StoredEntry]) -> dict[str, calls.Found]:
    """Return the variables of these rows, without expired and deleted ones.

    Raises:
        CorruptCheckpoint: A checksum is wrong.
    """
    found = {}
    for row in rows:
        if row.left_us is not None and row.left_us <= 0:
            continue
        _check(key, VARIABLE, row)
        if row.name is not None and row.value is not None:
            value = open_value(sealing, key, VARIABLE, row.name, row.value)
            found[row.name] = calls.Found(value, row.left_us)
    return found


def _keys(rows: Sequence[KeyRow]) -> list[str]:
    return [row.name for row in rows if row.name is not None]


def _notes(key: SessionKey, sealing: Sealing, rows: Sequence[StoredEntry]) -> list[bytes]:
    for row in rows:
        _check(key, NOTE, row)
    return [
        open_value(sealing, key, NOTE, row.name, row.value)
        for row in rows
        if row.name is not None and row.value is not None
    ]


def _task(key: SessionKey, sealing: Sealing, rows: Sequence[StoredEntry]) -> bytes | None:
    if not rows:
        return None
    _check(key, TASK, rows[0])
    value = rows[0].value
    return None if value is None else open_value(sealing, key, TASK, "", value)


def _check(key: SessionKey, kind: int, row: StoredEntry) -> None:
    """Check the checksum of an entry. A row without a name holds no entry."""
    if row.name is not None and row.checksum != entry_checksum(key, kind, row.name, row.value):
        raise damaged_entry(key.session_id, kind, row.name)


def damaged_entry(session_id: str, kind: int, name: str) -> CorruptCheckpoint:
    """Return the error for an entry with a wrong checksum."""
    advice = {TASK: "Set it again.", NOTE: "Clear the notes."}.get(kind, "Set it again, or delete it.")
    return CorruptCheckpoint(
        f"{entry_title(kind, name)} of session {session_id!r} cannot be read: its checksum is wrong. {advice}"
    )


def _checkpoints(key: SessionKey, rows: Sequence[CheckpointRow]) -> list[calls.Checkpoint]:
    return list(readable(partial(_checkpoint, key), (row for row in rows if row.checkpoint_id is not None)))


def _checkpoint(key: SessionKey, row: CheckpointRow) -> calls.Checkpoint:
    checkpoint_id = str(row.checkpoint_id)
    if row.checksum != checkpoint_checksum(key, checkpoint_id, row.label):
        raise damaged_checkpoint(key.session_id, checkpoint_id)
    counts = row.variables or 0, row.notes or 0, row.size_bytes or 0
    return calls.Checkpoint(checkpoint_id, row.label, aware(row.created_at), *counts)


def damaged_checkpoint(session_id: str, checkpoint_id: str) -> CorruptCheckpoint:
    """Return the error for a checkpoint with a wrong checksum."""
    return CorruptCheckpoint(
        f"Checkpoint {checkpoint_id!r} of session {session_id!r} cannot be read: its checksum is wrong. Delete it."
    )


def _measured(rows: Sequence[sessions.MeasureRow]) -> calls.Measured:
    if not rows:
        return calls.Measured()
    (row,) = rows
    return calls.Measured(int(row.variables), int(row.size_bytes), int(row.notes), row.checkpoints, row.session_left_us)


def _versions(rows: Sequence[VersionRow]) -> calls.Versions:
    variables: dict[str, int] = {}
    newest = {TASK: 0, NOTE: 0}
    for row in rows:
        if row.kind is None or row.name is None or row.version is None:
            continue
        if row.kind == VARIABLE:
            variables[row.name] = row.version
        else:
            newest[row.kind] = max(newest[row.kind], row.version)
    return calls.Versions(variables, newest[TASK], newest[NOTE])
