"""The statements of each command on MySQL, and the decoding of their results. Does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
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
from ....runtime.server_times import aware
from .. import calls

_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode

#: The longest canonical form that its column holds.
CANONICAL_BYTES = 32


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
    """The target of a command: the session, the token that it records, and the limits."""

    key: SessionKey
    token: bytes
    limits: calls.Limits


class Plans:
    """Plans commands.

    Args:
        sql: The statements.
    """

    def __init__(self, sql: WorkingDialect) -> None:
        self.sql = sql
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
                return ReadPlan(entries.read(key, keys, _json_if_many(keys)), partial(found_variables, key))
            case calls.ReadAll():
                return ReadPlan(entries.read_all(key, VARIABLE), partial(found_variables, key))
            case calls.ListKeys(pattern):
                return ReadPlan(entries.keys(key, pattern), _keys)
            case calls.ReadTask():
                return ReadPlan(entries.read(key, ("",), kind=TASK), partial(_task, key))
            case calls.ReadNotes(None):
                return ReadPlan(entries.read_all(key, NOTE), partial(_notes, key))
            case calls.ReadNotes(last):
                return ReadPlan(entries.read_all(key, NOTE, last), lambda rows: _notes(key, rows)[::-1])
            case calls.ListCheckpoints():
                return ReadPlan(self.sql.checkpoints.list(key), partial(_checkpoints, key))
            case calls.Measure():
                return ReadPlan(self.sql.sessions.measure(key), _measured)
            case calls.Inspect(names):
                return ReadPlan(entries.versions(key, names, _AS_JSON(list(names or ()))), _versions)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def _write(self, command: calls.Write, target: Target) -> WritePlan:
        names = tuple(variable.key for variable in command.variables)
        rows = [EntryRow(v.key, v.value, _short(v.canonical), v.size_bytes, v.ttl_us) for v in command.variables]
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
        return WritePlan(
            count_changes.with_variables(keys, as_json, 0, 0),
            (self.sql.entries.remove(target.key, VARIABLE, keys, as_json),),
            outcome=Outcome(self.sql.ledger.record_count(target.key, target.token, VARIABLE, keys, as_json), int),
        )

    def _clear(self, command: calls.Clear, target: Target) -> WritePlan:
        return self._remove_all(target, VARIABLE, count_changes.without_variables())

    def _clear_notes(self, command: calls.ClearNotes, target: Target) -> WritePlan:
        return self._remove_all(target, NOTE, count_changes.without_notes())

    def _remove_all(self, target: Target, kind: int, change: count_changes.Change) -> WritePlan:
        outcome = Outcome(self.sql.ledger.record_count(target.key, target.token, kind), int)
        return WritePlan(change, (self.sql.entries.remove(target.key, kind),), outcome=outcome)

    def _increment(self, command: calls.Increment, target: Target) -> WritePlan:
        key, name, by = target.key, command.key, command.by
        return WritePlan(
            count_changes.with_variables((name,), "", 0, 0),
            (self.sql.entries.can_add(key, name, by), self.sql.entries.add(key, name, by)),
            begins=True,
            addition=Addition((name,), len(name.encode()) + len(str(by)), self._counting(key, name)),
            outcome=Outcome(self.sql.ledger.record_number(key, target.token, name), int, first=False),
        )

    def _compare_and_set(self, command: calls.CompareAndSet, target: Target) -> WritePlan:
        key, variable = target.key, command.variable
        row = EntryRow(variable.key, variable.value, _short(variable.canonical), variable.size_bytes)
        canonical = command.canonical and _short(command.canonical)
        return WritePlan(
            count_changes.with_variables((variable.key,), "", 0, 0),
            (self.sql.entries.put_if_matched(key, target.token, row),),
            begins=True,
            addition=Addition((variable.key,), variable.size_bytes, self._counting(key, variable.key)),
            outcome=Outcome(self.sql.ledger.record_match(key, target.token, variable.key, canonical), bool),
        )

    def _counting(self, key: SessionKey, name: str) -> Callable[[sessions.Allowed | None], Statement]:
        return lambda allowed: self.sql.sessions.count_in(key, name, allowed)

    def _write_task(self, command: calls.WriteTask, target: Target) -> WritePlan:
        value = command.value
        row = EntryRow("", value, None, len(value or b""))
        return WritePlan(
            count_changes.with_task(row.size_bytes),
            self.sql.entries.put(target.key, TASK, [row]),
            begins=True,
            addition=None if value is None else Addition((), row.size_bytes),
        )

    def _append(self, command: calls.Append, target: Target) -> WritePlan:
        size_bytes = len(command.note)
        return WritePlan(
            count_changes.with_note(size_bytes),
            (self.sql.entries.append(target.key, command.note),),
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


def _short(canonical: bytes) -> bytes:
    """Return a canonical form that fits into its column, like those of `values`."""
    return canonical if len(canonical) <= CANONICAL_BYTES else sha256(canonical).digest()


def _json_if_many(names: Sequence[str]) -> str:
    """Return names as JSON if they are too many to list. Encoding takes longer than the rest of a statement."""
    return _AS_JSON(list(names)) if len(names) > NAMES_LISTED else ""


def found_variables(key: SessionKey, rows: Sequence[StoredEntry]) -> dict[str, calls.Found]:
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
            found[row.name] = calls.Found(row.value, row.left_us)
    return found


def _keys(rows: Sequence[KeyRow]) -> list[str]:
    return [row.name for row in rows if row.name is not None]


def _notes(key: SessionKey, rows: Sequence[StoredEntry]) -> list[bytes]:
    for row in rows:
        _check(key, NOTE, row)
    return [row.value for row in rows if row.value is not None]


def _task(key: SessionKey, rows: Sequence[StoredEntry]) -> bytes | None:
    if not rows:
        return None
    _check(key, TASK, rows[0])
    return rows[0].value


def _check(key: SessionKey, kind: int, row: StoredEntry) -> None:
    """Check the checksum of an entry. A row without a name holds no entry."""
    if row.name is not None and row.checksum != entry_checksum(key, kind, row.name, row.value):
        raise damaged_entry(key.session_id, kind, row.name)


def damaged_entry(session_id: str, kind: int, name: str) -> CorruptCheckpoint:
    """Return the error for an entry with a wrong checksum."""
    what, advice = f"Variable {name!r}", "Set it again, or delete it."
    if kind == TASK:
        what, advice = "The task state", "Set it again."
    elif kind == NOTE:
        what, advice = f"Note {name.lstrip('0')}", "Clear the notes."
    return CorruptCheckpoint(f"{what} of session {session_id!r} cannot be read: its checksum is wrong. {advice}")


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
