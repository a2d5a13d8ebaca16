"""Reads whole sessions for exports, and writes them for imports, as generators that do no I/O."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ...config import MySQLConfig
from ...dialect.like import like
from ...engine.operation import Batch, Duplicate, Operation, fetch
from ...engine.retry import Backoff
from ...errors import CorruptCheckpoint
from ...records import ledger
from .session import Entry, Head, StoredCheckpoint
from .statements import reading, writing
from .statements.reading import EntryRow
from .statements.tables import SessionKey
from .storages.mysql_operations import WorkingOperations, columns_of, head_of
from .stored import Seals

#: The outcome of a restoration: the session was written, is there already, is another one, or has expired.
Restored: TypeAlias = Literal["written", "present", "differs", "expired"]


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry with its kind and name; of the history, with the stamp up to which it was valid."""

    kind: int
    name: str
    entry: Entry
    valid_until: int = 0


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session with all its stored data.

    Args:
        session_id: Its id.
        head: Its own data.
        entries: Its variables, task state and notes, deleted ones included.
        history: Earlier versions of entries that checkpoints contain.
        checkpoints: Its checkpoints.
    """

    session_id: str
    head: Head
    entries: tuple[KeptEntry, ...]
    history: tuple[KeptEntry, ...]
    checkpoints: tuple[StoredCheckpoint, ...]

    @property
    def content(self) -> tuple[Any, ...]:
        """What two equal sessions have in common."""
        head = replace(self.head, sid=b"", expires_us=None)
        return head, self.entries, self.history, self.checkpoints


class MovingOperations:
    """Reads and writes whole sessions of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._tenant = config.tenant
        self._working = WorkingOperations(config)
        self._sql = self._working.sql
        self.schema = self._sql.schema

    def ids(self, after: str, pattern: str, limit: int) -> Operation[list[str]]:
        """Return ids of sessions after an id that match a glob, in their order. One round trip."""
        rows = yield from fetch(
            reading.IDS(self._sql, tenant=self._tenant, after=after, pattern=like(pattern), limit=limit)
        )
        return [row.session_id for row in rows]

    def count(self, pattern: str) -> Operation[int]:
        """Return the number of sessions that match a glob. One round trip."""
        (row,) = yield from fetch(reading.COUNT(self._sql, tenant=self._tenant, pattern=like(pattern)))
        return row.sessions

    def read(self, session_id: str) -> Operation[KeptSession | None]:
        """Return a consistent view of a session; None if it does not exist or has expired.

        One round trip; more if another process writes to it meanwhile.

        Raises:
            CorruptCheckpoint: An entry or a checkpoint was changed.
        """
        key = SessionKey(self._tenant, session_id)
        first, last = reading.HEAD(self._sql, key), reading.HEAD(self._sql, key)
        entries = reading.ENTRIES(self._sql, key, pieces={"condition": reading.EVERYTHING})
        history, checkpoints = reading.ALL_HISTORY(self._sql, key), reading.CHECKPOINTS(self._sql, key)
        backoff = Backoff(f"Session {session_id!r} changed while it was read")
        while True:
            results = yield Batch((first, entries, history, checkpoints, last))
            before, after = results.row(first), results.row(last)
            if before is None or after is None or before.sid is None or after.sid is None:
                return None
            if before.expires_us is not None and before.expires_us <= before.now_us:
                return None
            if (before.sid, before.stamp) == (after.sid, after.stamp):
                break
            yield backoff.pause()
        seals = Seals(self._working.sealing, key)
        return KeptSession(
            session_id,
            head_of(before),
            tuple(
                KeptEntry(row.kind, row.name, seals.entry(row))
                for row in sorted(results.rows(entries), key=lambda row: (row.kind, row.name))
            ),
            tuple(
                KeptEntry(row.kind, row.name, seals.entry(EntryRow(*row[:7])), row.valid_until)
                for row in results.rows(history)
            ),
            tuple(self._sound(seals.checkpoint(row)) for row in results.rows(checkpoints)),
        )

    def _sound(self, checkpoint: StoredCheckpoint) -> StoredCheckpoint:
        if checkpoint.damage is not None:
            raise checkpoint.damage
        return checkpoint

    def restore(self, kept: KeptSession) -> Operation[Restored]:
        """Write a session that does not exist, all of it or nothing, and read it again to compare."""
        key, sid, token = SessionKey(self._tenant, kept.session_id), os.urandom(16), os.urandom(16)
        seals, of_session = Seals(self._working.sealing, key), (self._sql, key, sid)
        entries = [seals.row(one.kind, one.name, one.entry) for one in kept.entries]
        history = [seals.row(one.kind, one.name, one.entry, one.valid_until) for one in kept.history]
        checkpoints = [seals.checkpoint_row(one) for one in kept.checkpoints]
        for last in (False, True):
            stored = yield from self._stored(kept.session_id)
            if stored is not None:
                return "present" if stored == kept.content else "differs"
            try:
                yield Batch.of(
                    ledger.RECORD(self._sql, key, token=token),
                    writing.BEGIN(self._sql, key, **columns_of(replace(kept.head, sid=sid))),
                    *writing.in_portions(writing.PUT, "rows", entries, *of_session),
                    *writing.in_portions(writing.PUT_HISTORY, "rows", history, *of_session),
                    *writing.in_portions(writing.CREATE, "rows", checkpoints, *of_session),
                    outcome_query=ledger.FIND(self._sql, key, token=token),
                )
                break
            except Duplicate:  # another process began it meanwhile, or an expired one is still there
                if last:
                    return "differs"
                yield from self._working.sweep()
        stored = yield from self._stored(kept.session_id)
        if stored is None:
            return "expired"
        return "written" if stored == kept.content else "differs"

    def _stored(self, session_id: str) -> Operation[tuple[Any, ...] | None]:
        """Return the content of a session in the tables; an empty one if it is damaged, so that it differs."""
        try:
            stored = yield from self.read(session_id)
        except CorruptCheckpoint:
            return ()
        return None if stored is None else stored.content
