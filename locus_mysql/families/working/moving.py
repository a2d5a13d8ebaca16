"""Reads whole sessions for exports, and writes them for imports, as generators that do no I/O."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from ...config import MySQLConfig
from ...dialect.working.moving import KeptCheckpointRow, KeptEntryRow, KeptSessionRow
from ...dialect.working.pieces import SessionKey
from ...engine.operation import Batch, Duplicate, Operation, fetch
from ...engine.retry import Backoff
from ...runtime.sealing import Sealing
from .sealed_values import open_entry, stored_entry
from .storages.mysql_calls import WorkingOperations

#: The outcome of a restoration: the session was written, is there already, is another one, or has expired.
Restored: TypeAlias = Literal["written", "present", "differs", "expired"]


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session with all its stored data.

    Args:
        session_id: Its id.
        row: Its own columns.
        entries: Its variables, task state and notes, deleted ones included.
        history: Its entries at the times of its checkpoints.
        checkpoints: Its checkpoints.
    """

    session_id: str
    row: KeptSessionRow
    entries: tuple[KeptEntryRow, ...]
    history: tuple[KeptEntryRow, ...]
    checkpoints: tuple[KeptCheckpointRow, ...]

    def damaged(self, tenant: str) -> bool:
        """Return whether a checksum is wrong."""
        key = SessionKey(tenant, self.session_id)
        return not (
            all(entry.checksum == entry.right_checksum(key) for entry in self.entries)
            and all(entry.checksum == entry.right_checksum(key, of_history=True) for entry in self.history)
            and all(one.checksum == one.right_checksum(key) for one in self.checkpoints)
        )

    @property
    def content(self) -> tuple[Any, ...]:
        """What two equal sessions have in common: everything but checksums, which cover the tenant."""
        return (
            (self.row.ttl_us, self.row.stamp, self.row.last_note, self.row.created_at),
            *(tuple(row[:-1] for row in rows) for rows in (self.entries, self.history, self.checkpoints)),
        )


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
        self._sealing = Sealing(config.encryption, self.schema.family)

    def ids(self, after: str, pattern: str, limit: int) -> Operation[list[str]]:
        """Return ids of sessions after an id that match a glob, in their order. One round trip."""
        rows = yield from fetch(self._sql.moving.list(self._tenant, after, pattern, limit))
        return [row.session_id for row in rows]

    def count(self, pattern: str) -> Operation[int]:
        """Return the number of sessions that match a glob. One round trip."""
        (row,) = yield from fetch(self._sql.moving.count(self._tenant, pattern))
        return row.sessions

    def read(self, session_id: str) -> Operation[KeptSession | None]:
        """Return a consistent view of a session; None if it does not exist or has expired.

        One round trip; more if another process writes to it meanwhile.
        """
        key, sql = SessionKey(self._tenant, session_id), self._sql.moving
        first, last = sql.session(key), sql.session(key)
        entries, history, checkpoints = sql.entries(key), sql.history(key), sql.checkpoints(key)
        backoff = Backoff(f"Session {session_id!r} changed while it was read")
        while True:
            results = yield Batch((first, entries, history, checkpoints, last))
            before, after = results.row(first), results.row(last)
            if before is None or after is None:
                return None
            if before.stamp == after.stamp:
                break
            yield backoff.pause()
        return KeptSession(
            session_id,
            before,
            tuple(open_entry(self._sealing, key, row) for row in results.rows(entries)),
            tuple(open_entry(self._sealing, key, row, of_history=True) for row in results.rows(history)),
            tuple(results.rows(checkpoints)),
        )

    def restore(self, kept: KeptSession) -> Operation[Restored]:
        """Write a session that does not exist, all of it or nothing, and read it again to compare."""
        key, sid, token = SessionKey(self._tenant, kept.session_id), os.urandom(16), os.urandom(16)
        sql, stored_as = self._sql.moving, partial(stored_entry, self._sealing, key)
        for last in (False, True):
            stored = yield from self.read(kept.session_id)
            if stored is not None:
                return "present" if stored.content == kept.content else "differs"
            try:
                yield Batch.of(
                    self._sql.ledger.record(self._tenant, token),
                    sql.put_session(key, sid, kept.row, kept.entries),
                    sql.put_entries(key, sid, kept.entries, stored_as),
                    sql.put_history(key, sid, kept.history, stored_as),
                    sql.put_checkpoints(key, sid, kept.checkpoints),
                    outcome_query=self._sql.ledger.find(self._tenant, token),
                )
                break
            except Duplicate:  # another process began it meanwhile, or an expired one is still there
                if last:
                    return "differs"
                yield from self._working.sweep()
        stored = yield from self.read(kept.session_id)
        if stored is None:
            return "expired"
        return "written" if stored.content == kept.content else "differs"
