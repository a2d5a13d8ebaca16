"""What a session consists of, and what it shows to readers. Does no I/O and has no clock."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ...errors import CorruptCheckpoint
from ...runtime.matching import matcher
from . import calls

#: The kinds of entries. The name of a variable is its key, that of a note its number in 20 digits.
VARIABLE, TASK, NOTE = 1, 2, 3

#: The versions of deleted variables are known for this long, in microseconds.
DELETED_KNOWN_US = 3_600_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: A time that never comes, in microseconds.
NEVER_US = 2**62


class Entry(NamedTuple):
    """A variable, the task state or a note.

    Args:
        value: Its JSON; None if it was deleted, or if the session holds only the rest.
        size_bytes: The bytes that count for the session; 0 if it was deleted.
        version: The stamp of its last write or deletion.
        used: The stamp of its last use.
        expires_us: When it expires.
    """

    value: bytes | None
    size_bytes: int
    version: int
    used: int = 0
    expires_us: int | None = None


@dataclass(slots=True)
class Head:
    """A session without its entries. Its counts include expired variables.

    Args:
        sid: Identifies the session in the storage; a session that is begun again has another.
        created_us: When it was begun.
        ttl_us: Its time to live.
        stamp: Its stamp.
        expires_us: When it expires.
        variables: The number of variables.
        size_bytes: The bytes of all entries.
        notes: The number of notes.
        notes_bytes: Their bytes.
        notes_version: The stamp at which notes were last added or removed.
        last_note: The number of the newest note.
        checkpoints: The number of checkpoints.
        kept: The stamp of the newest checkpoint: earlier versions of entries must be kept for checkpoints.
    """

    sid: bytes = b""
    created_us: int = 0
    ttl_us: int | None = None
    stamp: int = 0
    expires_us: int | None = None
    variables: int = 0
    size_bytes: int = 0
    notes: int = 0
    notes_bytes: int = 0
    notes_version: int = 0
    last_note: int = 0
    checkpoints: int = 0
    kept: int = 0


#: Entries by kind and name.
Entries = dict[int, dict[str, Entry]]


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint.

    Args:
        info: Its description.
        stamp: Its stamp. It contains the versions of entries up to it.
        at_us: When it was created.
        content: Its entries; None if the session does not hold them.
        damage: The error that its row gives; it is not listed, and cannot be restored.
    """

    info: calls.CheckpointInfo
    stamp: int
    at_us: int
    content: Entries | None = None
    damage: CorruptCheckpoint | None = None

    @classmethod
    def of(
        cls, checkpoint_id: str, stamp: int, label: str | None, variables: int, notes: int, size_bytes: int, at_us: int,
        *, damage: CorruptCheckpoint | None = None,
    ) -> StoredCheckpoint:  # fmt: skip
        """Return a checkpoint, without its content, by its columns."""
        created_at = _EPOCH + timedelta(microseconds=at_us)
        info = calls.CheckpointInfo(checkpoint_id, label, created_at, variables, notes, size_bytes)
        return cls(info, stamp, at_us, damage=damage)

    @property
    def columns(self) -> tuple[str, int, str | None, int, int, int, int]:
        """The arguments of `of`."""
        one = self.info
        return one.checkpoint_id, self.stamp, one.label, one.keys, one.scratchpad_entries, one.size_bytes, self.at_us


@dataclass(slots=True)
class Session:
    """A session, or what is known of it.

    Args:
        session_id: Its id, for errors.
        head: Its own data.
        entries: Its entries, or some of them.
        deleted: The stamps of deletions of variables, oldest first.
        checkpoints: Its checkpoints, oldest first.
        complete: Whether it holds all variables, at least without their values.
        whole: Whether it holds everything but the contents of checkpoints.
        listed: Whether it holds the descriptions of all checkpoints.
    """

    session_id: str
    head: Head
    entries: Entries = field(default_factory=lambda: {VARIABLE: {}, TASK: {}, NOTE: {}})
    deleted: dict[str, int] = field(default_factory=dict)
    checkpoints: list[StoredCheckpoint] = field(default_factory=list)
    complete: bool = True
    whole: bool = True
    listed: bool = True

    def expired(self, now_us: int) -> bool:
        """Return whether the session has expired."""
        return self.head.expires_us is not None and self.head.expires_us <= now_us

    def add(self, kind: int, name: str, entry: Entry) -> None:
        """Add an entry that was read. One that is held with its value stays."""
        held = self.entries[kind]
        before = held.get(name)
        if before is not None and before.value is not None:
            return
        if kind == VARIABLE and not entry.size_bytes:
            self.deleted[name] = entry.version
        else:
            held[name] = entry

    def with_content(self, checkpoint: StoredCheckpoint, earlier: Iterable[tuple[int, str, Entry]]) -> StoredCheckpoint:
        """Return a checkpoint with its content: entries of this session, which is whole, and earlier versions."""
        present = ((kind, name, entry) for kind, held in self.entries.items() for name, entry in held.items())
        content: Entries = {VARIABLE: {}, TASK: {}, NOTE: {}}
        for kind, name, entry in itertools.chain(present, earlier):
            live = entry.expires_us is None or entry.expires_us > checkpoint.at_us
            if entry.size_bytes and entry.version <= checkpoint.stamp and live:
                content[kind][name] = entry
        return replace(checkpoint, content=content)

    @property
    def all_bytes(self) -> int:
        """Size of the session with its checkpoints."""
        return self.head.size_bytes + sum(checkpoint.info.size_bytes for checkpoint in self.checkpoints)


class Changes(NamedTuple):
    """What a call changes in the rows of a session, apart from its head.

    Args:
        puts: Entries to write, by kind and name. A deleted variable or task state has no value; its row is kept for an
            hour, for readers of versions.
        drops: Notes to remove.
        uses: The stamps of the last uses of variables that are otherwise unchanged.
        keep: Entries whose present rows are copied to the history, with the stamp up to which they are valid there.
        history: Entries that are only written to the history, likewise.
        clears_notes: Whether all notes are removed first.
        kept_notes: The notes up to this stamp, of the newest checkpoint before they are removed, are copied to the
            history first.
        created: New checkpoints.
        removed: The ids of deleted checkpoints.
    """

    puts: list[tuple[int, str, Entry]]
    drops: list[str]
    uses: list[tuple[str, int]]
    keep: list[tuple[int, str, int]]
    history: list[tuple[int, str, Entry, int]]
    clears_notes: bool
    kept_notes: int
    created: list[StoredCheckpoint]
    removed: list[str]


class View:
    """A session with the changes of a call, which are not yet applied.

    Args:
        session: The session.
        now_us: The storage's time.
        copies_head: Whether the call changes the head.
    """

    def __init__(self, session: Session, now_us: int, *, copies_head: bool) -> None:
        self.session, self.now_us = session, now_us
        self.head = replace(session.head) if copies_head else session.head
        self.changed: Entries = {VARIABLE: {}, TASK: {}, NOTE: {}}
        self.checkpoints = session.checkpoints
        self.clears_notes = False
        #: What was decided holds until then, when a variable or the session expires.
        self.valid_until_us = self.head.expires_us or NEVER_US

    @property
    def all_bytes(self) -> int:
        """Size of the changed session with its checkpoints."""
        return self.head.size_bytes + sum(checkpoint.info.size_bytes for checkpoint in self.checkpoints)

    def read(self, command: calls.Command[object]) -> object:
        """Return the result of a command that changes nothing."""
        match command:
            case calls.Read(keys):
                return {key: found for key in keys if (found := self._found(key)) is not None}
            case calls.ReadAll():
                return {key: self._found(key) for key in self._live_keys()}
            case calls.ListKeys(pattern):
                matches = matcher(pattern)
                return [key for key in self._live_keys() if matches(key)]
            case calls.ReadTask():
                task = self._entry(TASK, "")
                return None if task is None else task.value
            case calls.ReadNotes(last):
                names = sorted(self._names(NOTE))
                names = names if last is None else names[max(0, len(names) - last) :]
                entries = (self._entry(NOTE, name) for name in names)
                return [entry.value for entry in entries if entry is not None and entry.value is not None]
            case calls.ListCheckpoints():
                return [checkpoint.info for checkpoint in reversed(self.checkpoints) if checkpoint.damage is None]
            case calls.Measure():
                return self._measured()
        raise TypeError(f"{type(command).__name__} is no command of a storage.")

    def _entry(self, kind: int, name: str) -> Entry | None:
        """Return an entry, expired or not; None if there is none."""
        entry = self.changed[kind].get(name)
        if entry is None and not (kind == NOTE and self.clears_notes):
            entry = self.session.entries[kind].get(name)
        return entry if entry is not None and entry.size_bytes else None

    def _live(self, key: str) -> Entry | None:
        entry = self._entry(VARIABLE, key)
        if entry is None or entry.expires_us is None:
            return entry
        if entry.expires_us <= self.now_us:
            return None
        self.valid_until_us = min(self.valid_until_us, entry.expires_us)
        return entry

    def _names(self, kind: int) -> Iterator[str]:
        """Yield the names of existing entries, expired ones too."""
        changed = self.changed[kind]
        if not (kind == NOTE and self.clears_notes):
            held = self.session.entries[kind]
            yield from (name for name, entry in held.items() if entry.size_bytes and name not in changed)
        yield from (name for name, entry in changed.items() if entry.size_bytes)

    def _live_keys(self) -> list[str]:
        return sorted(key for key in self._names(VARIABLE) if self._live(key) is not None)

    def _found(self, key: str) -> calls.Found | None:
        entry = self._live(key)
        if entry is None or entry.value is None:
            return None
        return calls.Found(entry.value, None if entry.expires_us is None else entry.expires_us - self.now_us)

    def _expired(self) -> dict[str, Entry]:
        """Return the expired variables."""
        entries = ((key, self._entry(VARIABLE, key)) for key in self._names(VARIABLE))
        return {
            key: entry
            for key, entry in entries
            if entry is not None and entry.expires_us is not None and entry.expires_us <= self.now_us
        }

    def _content(self) -> Entries:
        """Return all entries, without expired ones."""
        expired = self._expired()
        content: Entries = {}
        for kind in (VARIABLE, TASK, NOTE):
            entries = ((name, self._entry(kind, name)) for name in self._names(kind))
            content[kind] = {
                name: entry
                for name, entry in entries
                if entry is not None and not (kind == VARIABLE and name in expired)
            }
        return content

    def _measured(self) -> calls.Measured:
        head, gone = self.head, self._expired()
        return calls.Measured(
            head.variables - len(gone),
            head.size_bytes - sum(entry.size_bytes for entry in gone.values()),
            head.notes,
            head.checkpoints,
            None if head.expires_us is None else head.expires_us - self.now_us,
        )

    def _version_before(self, key: str) -> int:
        """Return the version that a variable had before the call; what the call itself writes is not newer."""
        entry = self.session.entries[VARIABLE].get(key)
        return self.session.deleted.get(key, 0) if entry is None else entry.version
