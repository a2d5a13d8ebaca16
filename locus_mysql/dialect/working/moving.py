"""Statements for exports and imports: whole sessions with entries, checkpoints and history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias
from zlib import crc32

from ..checksums import with_version
from ..like import like
from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from .checkpoints import checkpoint_checksum
from .entries import ROWS_PER_STATEMENT, entry_checksum
from .pieces import SessionKey

LIST = """
SELECT s.session_id
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s AND s.session_id LIKE %s
   AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
 ORDER BY s.session_id
 LIMIT %s
"""

COUNT = """
SELECT COUNT(*)
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id LIKE %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
"""

ONE = """
SELECT s.stamp, s.ttl_us, s.last_note, s.created_at, s.expires_at
  FROM {sessions} s
 WHERE {SESSION}
"""

ENTRIES = """
SELECT e.kind, e.name, e.value, e.canonical, e.version, e.used, e.expires_at, e.checksum
  FROM {sessions} s JOIN {entries} e ON {OF_SESSION}
 WHERE {SESSION}
 ORDER BY e.kind, e.name
"""

HISTORY = """
SELECT h.kind, h.name, h.value, h.canonical, h.version, 0, h.expires_at, h.checksum
  FROM {sessions} s JOIN {history} h ON h.tenant = s.tenant AND h.sid = s.sid
 WHERE {SESSION}
 ORDER BY h.kind, h.name, h.version
"""

CHECKPOINTS = """
SELECT c.checkpoint_id, c.stamp, c.label, c.variables, c.notes, c.size_bytes, c.created_at, c.checksum
  FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE {SESSION}
 ORDER BY c.stamp
"""

PUT_SESSION = """
INSERT INTO {sessions} (tenant, session_id, sid, stamp, prior, replaced, ttl_us, variables, notes, size_bytes,
                        last_note, created_at, expires_at)
VALUES (%s, %s, %s, %s, 0, 0, %s, %s, %s, %s, %s, %s, %s)
"""
PUT_ENTRIES = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
VALUES {rows}
"""
PUT_HISTORY = """
INSERT INTO {history} (tenant, sid, kind, name, value, canonical, size_bytes, version, expires_at, checksum)
VALUES {rows}
"""
PUT_CHECKPOINTS = """
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at, checksum)
VALUES {rows}
"""


class IdRow(NamedTuple):
    """The id of a session."""

    session_id: str


class CountRow(NamedTuple):
    """A number of sessions."""

    sessions: int


class KeptSessionRow(NamedTuple):
    """A session's own columns, except those that are computed from its entries."""

    stamp: int
    ttl_us: int | None
    last_note: int
    created_at: datetime
    expires_at: datetime | None


class KeptEntryRow(NamedTuple):
    """A variable, the task state or a note, now or at a checkpoint; without a value if it was deleted."""

    kind: int
    name: str
    value: bytes | None
    canonical: bytes | None
    version: int
    used: int
    expires_at: datetime | None
    checksum: int

    @property
    def size_bytes(self) -> int:
        """The bytes that count for the session. Only variables have names that count."""
        if self.value is None:
            return 0
        return len(self.value) + (len(self.name.encode()) if self.canonical is not None else 0)

    def right_checksum(self, key: SessionKey, *, of_history: bool = False) -> int:
        """Return the checksum that the row must have in a session."""
        checksum = entry_checksum(key, self.kind, self.name, self.value)
        if self.canonical is not None:
            checksum ^= crc32(self.canonical)
        return with_version(checksum, self.version) if of_history else checksum


#: Returns the row to store for an entry.
Stored: TypeAlias = Callable[[KeptEntryRow], KeptEntryRow]


class KeptCheckpointRow(NamedTuple):
    """A checkpoint of a session."""

    checkpoint_id: str
    stamp: int
    label: str | None
    variables: int
    notes: int
    size_bytes: int
    created_at: datetime
    checksum: int

    def right_checksum(self, key: SessionKey) -> int:
        """Return the checksum that the row must have in a session."""
        return with_version(checkpoint_checksum(key, self.checkpoint_id, self.label), self.stamp)


class MovingStatements(Statements):
    """Reading and writing whole sessions."""

    def list(self, tenant: str, after: str, pattern: str, limit: int) -> Query[IdRow]:
        """Ids of sessions after an id that match a glob."""
        return Query(self._text(LIST), (tenant, after, like(pattern), limit), row=IdRow)

    def count(self, tenant: str, pattern: str) -> Query[CountRow]:
        """The number of sessions that match a glob."""
        return Query(self._text(COUNT), (tenant, like(pattern)), row=CountRow)

    def session(self, key: SessionKey) -> Query[KeptSessionRow]:
        """A session's own columns."""
        return Query(self._text(ONE), key, row=KeptSessionRow)

    def entries(self, key: SessionKey) -> Query[KeptEntryRow]:
        """All entries of a session, deleted and expired ones included."""
        return Query(self._text(ENTRIES), key, row=KeptEntryRow)

    def history(self, key: SessionKey) -> Query[KeptEntryRow]:
        """The entries at the times of the session's checkpoints."""
        return Query(self._text(HISTORY), key, row=KeptEntryRow)

    def checkpoints(self, key: SessionKey) -> Query[KeptCheckpointRow]:
        """The checkpoints of a session, oldest first."""
        return Query(self._text(CHECKPOINTS), key, row=KeptCheckpointRow)

    def put_session(
        self, key: SessionKey, sid: bytes, row: KeptSessionRow, entries: Sequence[KeptEntryRow]
    ) -> Statement:
        """Insert a session. Fails with error 1062 if it exists, expired or not.

        Args:
            key: The session.
            sid: Its new random id.
            row: Its columns.
            entries: Its entries, from which its counts are computed.
        """
        existing = [entry for entry in entries if entry.value is not None]
        counts = (
            sum(entry.canonical is not None for entry in existing),
            sum(entry.canonical is None and entry.name != "" for entry in existing),
            sum(entry.size_bytes for entry in existing),
        )
        params = (
            *key,
            sid,
            row.stamp,
            row.ttl_us,
            *counts,
            row.last_note,
            _text(row.created_at),
            _text(row.expires_at),
        )
        return Statement(self._text(PUT_SESSION), params)

    def put_entries(
        self, key: SessionKey, sid: bytes, entries: Sequence[KeptEntryRow], stored: Stored
    ) -> tuple[Statement, ...]:
        """Insert the entries of a session; ``stored`` returns the row to store."""
        rows: list[tuple[Param, ...]] = [
            (
                *(key.tenant, sid, e.kind, e.name, e.value, e.canonical, size_bytes, e.version, e.used),
                _text(e.expires_at),
                e.right_checksum(key),
            )
            for e, size_bytes in ((stored(entry), entry.size_bytes) for entry in entries)
        ]
        return self._put(PUT_ENTRIES, rows)

    def put_history(
        self, key: SessionKey, sid: bytes, entries: Sequence[KeptEntryRow], stored: Stored
    ) -> tuple[Statement, ...]:
        """Insert the history of a session; ``stored`` returns the row to store."""
        rows: list[tuple[Param, ...]] = [
            (
                *(key.tenant, sid, e.kind, e.name, e.value, e.canonical, size_bytes, e.version),
                _text(e.expires_at),
                e.right_checksum(key, of_history=True),
            )
            for e, size_bytes in ((stored(entry), entry.size_bytes) for entry in entries)
        ]
        return self._put(PUT_HISTORY, rows)

    def put_checkpoints(
        self, key: SessionKey, sid: bytes, checkpoints: Sequence[KeptCheckpointRow]
    ) -> tuple[Statement, ...]:
        """Insert the checkpoints of a session."""
        rows: list[tuple[Param, ...]] = [
            (key.tenant, sid, *c[:6], _text(c.created_at), c.right_checksum(key)) for c in checkpoints
        ]
        return self._put(PUT_CHECKPOINTS, rows)

    def _put(self, template: str, rows: Sequence[tuple[Param, ...]]) -> tuple[Statement, ...]:
        statements = []
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            some = rows[start : start + ROWS_PER_STATEMENT]
            text = self._text(template, rows=placeholders(len(some), f"({placeholders(len(some[0]))})"))
            statements.append(Statement(text, tuple(param for row in some for param in row)))
        return tuple(statements)


def _text(time: datetime | None) -> str | None:
    """Return a time in UTC as the text of a DATETIME(6)."""
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}"
