"""Commands as statements: what a call on MySQL sends, and how it reads what comes back. Does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, cast

from ...dialect import Statement
from ...dialect.working.checkpoints import checkpoint_checksum
from ...dialect.working.dialect import WorkingDialect
from ...dialect.working.entries import EntryRow, entry_checksum
from ...dialect.working.sessions import (
    Allowed,
    Change,
    with_note,
    with_task,
    with_ttl,
    with_variables,
    without_notes,
    without_variables,
)
from ...dialect.working.template import NAMES_LISTED, NOTE, TASK, VARIABLE, SessionKey
from ...drivers.interface import Row
from ...errors import CorruptCheckpoint
from ...runtime.answers import decodes_rows
from ...runtime.damage import readable
from .calls import (
    READS,
    Append,
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
    RestoreCheckpoint,
    Touch,
    Versions,
    Write,
    WriteTask,
)

_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode

#: The longest likeness that its column holds.
LIKENESS_BYTES = 32


@dataclass(frozen=True, slots=True)
class Reading:
    """A command that changes nothing.

    Args:
        statement: Its rows end with the session's stamp, its time to live, and the microseconds until it expires; there
            is none if there is no session.
        answer: The result, of those rows.
    """

    statement: Statement
    answer: Callable[[Sequence[Row]], object]

    @decodes_rows
    def told(self, rows: Sequence[Row]) -> tuple[object, int, int | None]:
        """The result, and the session's stamp and time to live; of one that has expired, as if it were not there."""
        if not rows:
            return self.answer(()), 0, None
        stamp, ttl_us, left_us = cast("tuple[int, int | None, int | None]", rows[0][-3:])
        if left_us is not None and left_us <= 0:
            return self.answer(()), 0, None
        return self.answer(rows), stamp, ttl_us


@dataclass(frozen=True, slots=True)
class Writing:
    """A command that writes.

    Args:
        change: Of the session's counts.
        steps: The statements behind that.
        begins: Whether a session is begun where there is none.
        adds: Whether the limits can be exceeded.
        settle: Leaves the token of a call that is this command; if None, one without an outcome is left.
        settled_first: Whether it is left before the steps, not after.
        counts: Statements that count what was changed, behind all; with the limits if they are checked there.
        answer: The result, of the outcome that was settled.
        names: The variables that it writes.
        size_bytes: Bytes that it adds.
        recounts: Whether all has to be counted anew.
        trim: Of the steps, the one that deletes checkpoints; if it did, what they held is to be pruned.
        more_stamps: How many further stamps the steps draw.
    """

    change: Change = field(default_factory=Change)
    steps: tuple[Statement, ...] = ()
    begins: bool = False
    adds: bool = False
    settle: Statement | None = None
    settled_first: bool = False
    counts: Callable[[Allowed | None], tuple[Statement, ...]] | None = None
    answer: Callable[[int | None], object] = lambda outcome: None
    names: tuple[str, ...] = ()
    size_bytes: int = 0
    recounts: bool = False
    trim: Statement | None = None
    more_stamps: int = 0


class Plans:
    """Makes statements of commands.

    Args:
        sql: The statements.
    """

    def __init__(self, sql: WorkingDialect) -> None:
        self.sql = sql

    def of(self, command: Command[Any], key: SessionKey, token: bytes, limits: Limits) -> Reading | Writing:
        """What a command sends.

        Args:
            command: The command.
            key: Its session.
            token: That of the call.
            limits: How much the session may hold.
        """
        if isinstance(command, READS):
            return self.reading(command, key)
        return self.writing(command, key, token, limits)

    def reading(self, command: Command[Any], key: SessionKey) -> Reading:
        """What a command sends that changes nothing."""
        entries = self.sql.entries
        match command:
            case Read(keys):
                keys = tuple(dict.fromkeys(keys))
                return Reading(entries.read(key, keys, _if_many(keys)), partial(found_among, key))
            case ReadAll():
                return Reading(entries.read_all(key, VARIABLE), partial(found_among, key))
            case ListKeys(pattern):
                return Reading(entries.keys(key, pattern), lambda rows: [row[0] for row in rows if row[0] is not None])
            case ReadTask():
                return Reading(entries.read(key, ("",), kind=TASK), partial(_task, key))
            case ReadNotes(None):
                return Reading(entries.read_all(key, NOTE), partial(_notes, key))
            case ReadNotes(last):
                return Reading(entries.read_all(key, NOTE, last), lambda rows: _notes(key, rows)[::-1])
            case ListCheckpoints():
                return Reading(self.sql.checkpoints.list(key), partial(_checkpoints, key))
            case Measure():
                return Reading(self.sql.sessions.measure(key), _measured)
            case Inspect(names):
                return Reading(entries.versions(key, names, _json(names or ())), _versions)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def writing(self, command: Command[Any], key: SessionKey, token: bytes, limits: Limits) -> Writing:
        """What a command sends that writes, behind what locks its session."""
        entries, checkpoints = self.sql.entries, self.sql.checkpoints
        match command:
            case Write(variables):
                names = tuple(variable.key for variable in variables)
                rows = [EntryRow(v.key, v.value, _short(v.likeness), v.size_bytes, v.ttl_us) for v in variables]
                size_bytes = sum(row.size_bytes for row in rows)
                return Writing(
                    with_variables(names, _if_many(names), len(names), size_bytes),
                    entries.put(key, VARIABLE, rows),
                    begins=True,
                    adds=True,
                    names=names,
                    size_bytes=size_bytes,
                )
            case Remove(keys):
                keys = tuple(dict.fromkeys(keys))
                return Writing(
                    with_variables(keys, _if_many(keys), 0, 0),
                    (entries.remove(key, VARIABLE, keys, _if_many(keys)),),
                    settle=entries.settle_count(key, token, VARIABLE, keys, _if_many(keys)),
                    settled_first=True,
                    answer=int_of,
                )
            case Clear():
                return self._clear(key, token, VARIABLE, without_variables())
            case ClearNotes():
                return self._clear(key, token, NOTE, without_notes())
            case Increment(name, by):
                return self._increment(key, token, name, by)
            case CompareAndSet(variable, likeness):
                row = EntryRow(variable.key, variable.value, _short(variable.likeness), variable.size_bytes)
                return Writing(
                    with_variables((variable.key,), "", 0, 0),
                    (entries.put_if_matched(key, token, row),),
                    begins=True,
                    adds=True,
                    settle=entries.settle_match(key, token, variable.key, likeness and _short(likeness)),
                    settled_first=True,
                    counts=lambda allowed: (self.sql.sessions.count_in(key, variable.key, allowed),),
                    answer=bool,
                    names=(variable.key,),
                    size_bytes=variable.size_bytes,
                )
            case WriteTask(value):
                row = EntryRow("", value, None, len(value or b""))
                return Writing(
                    with_task(row.size_bytes),
                    entries.put(key, TASK, [row]),
                    begins=True,
                    adds=value is not None,
                    size_bytes=row.size_bytes,
                )
            case Append(note):
                size_bytes = len(note)
                return Writing(
                    with_note(size_bytes),
                    (entries.append(key, note),),
                    begins=True,
                    adds=True,
                    size_bytes=size_bytes,
                )
            case Touch(ttl_us):
                return Writing(Change() if ttl_us is None else with_ttl(ttl_us), answer=lambda _: True)
            case CreateCheckpoint(checkpoint_id, label):
                trim = checkpoints.trim(key, limits.checkpoints, checkpoint_id, checkpoint_id)
                return Writing(
                    steps=(*checkpoints.create(key, checkpoint_id, label), trim),
                    begins=True,
                    trim=trim,
                )
            case RestoreCheckpoint(checkpoint_id, undo_id):
                trim = checkpoints.trim(key, limits.checkpoints, undo_id, checkpoint_id)
                return Writing(
                    steps=(
                        checkpoints.there(key, checkpoint_id),
                        *checkpoints.create(key, undo_id, f"before restoring {checkpoint_id}"),
                        trim,
                        self.sql.sessions.lock_again(key, Change()),
                        *checkpoints.restore(key, checkpoint_id),
                    ),
                    recounts=True,
                    trim=trim,
                    more_stamps=1,
                )
            case DeleteCheckpoint(checkpoint_id):
                return Writing(
                    steps=(checkpoints.delete(key, checkpoint_id), checkpoints.prune(key)),
                    settle=checkpoints.settle_there(key, token, checkpoint_id),
                    settled_first=True,
                    answer=bool,
                )
            case End():
                return Writing(steps=self.sql.sessions.remove(key), answer=lambda _: True)
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def _clear(self, key: SessionKey, token: bytes, kind: int, change: Change) -> Writing:
        entries = self.sql.entries
        return Writing(
            change,
            (entries.remove(key, kind),),
            settle=entries.settle_count(key, token, kind),
            settled_first=True,
            answer=int_of,
        )

    def _increment(self, key: SessionKey, token: bytes, name: str, by: int) -> Writing:
        entries = self.sql.entries
        return Writing(
            with_variables((name,), "", 0, 0),
            (entries.can_add(key, name, by), entries.add(key, name, by)),
            begins=True,
            adds=True,
            settle=entries.settle_number(key, token, name),
            counts=lambda allowed: (self.sql.sessions.count_in(key, name, allowed),),
            answer=int_of,
            names=(name,),
            size_bytes=len(name.encode()) + len(str(by)),
        )


def int_of(outcome: int | None) -> int:
    """An outcome that is a number."""
    return cast(int, outcome)


def _short(likeness: bytes) -> bytes:
    """A likeness that fits into its column; those of `values` do."""
    return likeness if len(likeness) <= LIKENESS_BYTES else sha256(likeness).digest()


def _json(names: Sequence[str]) -> str:
    return _AS_JSON(list(names))


def _if_many(names: Sequence[str]) -> str:
    """Names as JSON where that is used; to make it takes longer than the rest of a statement of one name."""
    return _json(names) if len(names) > NAMES_LISTED else ""


def found_among(key: SessionKey, rows: Sequence[Row]) -> dict[str, Found]:
    """The variables that these rows tell of, but for those that have expired, or were deleted.

    Raises:
        CorruptCheckpoint: The checksum of one is wrong.
    """
    found = {}
    for row in rows:
        name, value, left_us = cast("tuple[str, bytes | None, int | None]", row[:3])
        if left_us is not None and left_us <= 0:
            continue
        _check(key, VARIABLE, row)
        if value is not None:
            found[name] = Found(value, left_us)
    return found


def _notes(key: SessionKey, rows: Sequence[Row]) -> list[bytes]:
    for row in rows:
        _check(key, NOTE, row)
    return [cast(bytes, row[1]) for row in rows if row[0] is not None]


def _task(key: SessionKey, rows: Sequence[Row]) -> bytes | None:
    if not rows:
        return None
    _check(key, TASK, rows[0])
    return cast("bytes | None", rows[0][1])


def _check(key: SessionKey, kind: int, row: Row) -> None:
    """Raise if the checksum of an entry is wrong; a row without a name belongs to no entry."""
    name, value, _, stored = row[:4]
    if name is not None and stored != entry_checksum(key, kind, cast(str, name), cast("bytes | None", value)):
        raise damaged_entry(key.session_id, kind, cast(str, name))


def damaged_entry(session_id: str, kind: int, name: str) -> CorruptCheckpoint:
    """The error to raise where the checksum of an entry is wrong."""
    what, advice = f"Variable {name!r}", "Set it anew, or delete it."
    if kind == TASK:
        what, advice = "The task state", "Set it anew."
    elif kind == NOTE:
        what, advice = f"Note {name.lstrip('0')}", "Clear the notes."
    return CorruptCheckpoint(f"{what} of session {session_id!r} cannot be read: its checksum is wrong. {advice}")


def _checkpoints(key: SessionKey, rows: Sequence[Row]) -> list[Checkpoint]:
    return list(readable(partial(_checkpoint, key), (row for row in rows if row[0] is not None)))


def _checkpoint(key: SessionKey, row: Row) -> Checkpoint:
    checkpoint_id, label = cast("tuple[str, str | None]", row[:2])
    if row[6] != checkpoint_checksum(key, checkpoint_id, label):
        raise damaged_checkpoint(key.session_id, checkpoint_id)
    return Checkpoint(checkpoint_id, label, _time(row[2]), *(int(cast(int, n)) for n in row[3:6]))


def damaged_checkpoint(session_id: str, checkpoint_id: str) -> CorruptCheckpoint:
    """The error to raise where the checksum of a checkpoint is wrong."""
    return CorruptCheckpoint(
        f"Checkpoint {checkpoint_id!r} of session {session_id!r} cannot be read: its checksum is wrong. Delete it."
    )


def _measured(rows: Sequence[Row]) -> Measured:
    if not rows:
        return Measured()
    keys, size_bytes, notes, checkpoints = (int(cast(int, count)) for count in rows[0][:4])
    return Measured(keys, size_bytes, notes, checkpoints, cast("int | None", rows[0][6]))


def _versions(rows: Sequence[Row]) -> Versions:
    variables: dict[str, int] = {}
    newest = {TASK: 0, NOTE: 0}
    for kind, name, version, *_ in rows:
        if kind == VARIABLE:
            variables[cast(str, name)] = cast(int, version)
        elif kind is not None:
            newest[cast(int, kind)] = max(newest[cast(int, kind)], cast(int, version))
    return Versions(variables, newest[TASK], newest[NOTE])


def _time(value: object) -> datetime:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
