"""Statements about variables, the task state and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple
from zlib import crc32

from ..checksums import checksum, checksum_sql
from ..like import like
from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from .pieces import (
    NOTE,
    TASK,
    VARIABLE,
    Named,
    SessionKey,
    named,
)
from .sessions import Allowed

#: The maximum number of rows that one statement writes.
ROWS_PER_STATEMENT = 100

#: The largest value, in bytes, that a statement carries twice as a parameter instead of joining it as a table.
GIVEN_TWICE_BYTES = 4_096

#: Selects entries of any name.
ALL = Named("", (), "TRUE", ())

#: Selects entries by a list of names, in statements that read all entries of the session anyway.
IS_LISTED = "e.name IN (SELECT listed.name FROM {MANY})"

# Each query returns at least one row if the session exists, which ends with {KNOWN}. The caller checks whether the
# session and its entries have expired: as a condition, each check would add a tenth to the server's time for reading a
# variable. So named entries are returned even if they have expired or were deleted.
READ = """
SELECT e.name, e.value, {LEFT_US}, {SEAL}, {KNOWN}
  FROM {sessions} s{listed}
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = %s AND {names}
 WHERE s.tenant = %s AND s.session_id = %s{order}
"""
OF_ONE_NAME = {"listed": "", "names": "e.name = %s", "order": ""}
IN_ORDER = "\n ORDER BY e.name"
LAST = "\n ORDER BY e.name DESC LIMIT %s"
KEYS = """
SELECT e.name, {KNOWN}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name LIKE %s AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY e.name
"""
VERSIONS = """
SELECT e.kind, e.name, e.version, {KNOWN}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND (e.kind <> 1 OR {names})
        AND (e.value IS NOT NULL OR e.version > {US_SINCE_1970} - {DELETED_KNOWN_US})
 WHERE s.tenant = %s AND s.session_id = %s
"""

# The number of these variables, and their bytes, including those of the task state if its kind is given.
HAS = """
SELECT COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.size_bytes), 0)
  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND (e.kind = %s OR e.kind = 1 AND {names}) AND {LIVE_ENTRY}
 WHERE {SESSION}
"""

# All times to live of one write are counted from the same time.
PUT = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, %s, fresh.name, fresh.value, fresh.canonical, fresh.size_bytes, s.stamp, s.stamp,
       TIMESTAMPADD(MICROSECOND, {AT} + fresh.ttl_us, '1970-01-01'), fresh.checksum
  FROM {sessions} s
  JOIN (VALUES {rows}) AS fresh (name, value, canonical, size_bytes, ttl_us, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = fresh.value,
       canonical  = fresh.canonical,
       size_bytes = fresh.size_bytes,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = TIMESTAMPADD(MICROSECOND, {AT} + fresh.ttl_us, '1970-01-01'),
       checksum   = fresh.checksum
"""

# One entry, whose content is a parameter twice. This takes three quarters of the time of joining it as a table.
PUT_ONE = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, %s, %s, %s, %s, %s, s.stamp, s.stamp, {expires}, %s
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = %s,
       canonical  = %s,
       size_bytes = %s,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = {expires},
       checksum   = %s
"""
EXPIRES = "TIMESTAMPADD(MICROSECOND, {AT} + %s, '1970-01-01')"

# Keeps the time to live of the variable.
PUT_KEPT = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 1, fresh.name, fresh.value, fresh.canonical, fresh.size_bytes, s.stamp, s.stamp, NULL,
       fresh.checksum
  FROM {sessions} s{matched}
  JOIN (VALUES ROW(%s, %s, %s, %s, %s)) AS fresh (name, value, canonical, size_bytes, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       expires_at = IF({entries}.value IS NULL OR COALESCE({entries}.expires_at <= UTC_TIMESTAMP(6), FALSE), NULL,
                       {entries}.expires_at),
       value      = fresh.value,
       canonical  = fresh.canonical,
       size_bytes = fresh.size_bytes,
       checksum   = fresh.checksum,
       version    = s.stamp,
       used       = s.stamp
"""

# Change nothing unless the ledger records that the variable matched.
MATCHED = "\n  JOIN {ledger} l ON l.tenant = s.tenant AND l.token = %s AND l.outcome = 1"

# Variables with their versions, and the number of the last note; one row at least if the session exists.
HELD = """
SELECT s.last_note, e.name, e.value, e.version, {SEAL}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND {names} AND {LIVE_ENTRY}
 WHERE {SESSION}
"""

# Undo the batch, with error 3141, unless a variable has this version; NULL: unless it does not exist.
GUARD_VERSION = """
SELECT CAST(IF(MAX(e.version) <=> %s, '1', '') AS JSON)
  FROM {sessions} s
  JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s
"""

# Undo the batch, with error 3141, unless this is the number of the last note. MAX: see docs/design/writes.md.
GUARD_NOTE = """
SELECT CAST(IF(MAX(s.last_note) = %s, '1', '') AS JSON) FROM {sessions} s WHERE s.tenant = %s AND s.session_id = %s
"""

APPEND = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 3, LPAD(s.last_note, 20, '0'), %s, NULL, %s, s.stamp, s.stamp, NULL,
       %s ^ CRC32(LPAD(s.last_note, 20, '0'))
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id = %s
"""

# A deleted entry stays as a row without a value, for the next checkpoint and for readers of versions.
REMOVE = """
UPDATE {sessions} s STRAIGHT_JOIN {listed} {entries} e ON {OF_SESSION} AND e.kind = %s AND {names}
   SET e.value = NULL, e.canonical = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL
"""

# Expired entries are deleted in the same way, but keep their version.
REMOVE_EXPIRED = """
UPDATE {entries} e JOIN {sessions} s ON {OF_SESSION}
   SET e.value = NULL, e.canonical = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL
 WHERE s.tenant = %s AND s.session_id = %s AND e.kind = 1 AND e.expires_at <= UTC_TIMESTAMP(6)
"""

# Remove the least recently used variables that this call did not write. Keeps the most recently used ones, as many as
# fit within the limits.
EVICT = """
UPDATE {entries} e
  JOIN {sessions} s ON {OF_SESSION}
  JOIN (SELECT x.name,
               x.version > o.prior AS spared,
               ROW_NUMBER() OVER recency AS row_no,
               SUM(x.size_bytes) OVER recency + others.size_bytes AS upto
          FROM {sessions} o
          JOIN (SELECT COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind <> 1
                 WHERE s.tenant = %s AND s.session_id = %s) AS others
          JOIN {entries} x ON x.tenant = o.tenant AND x.sid = o.sid AND x.kind = 1 AND x.value IS NOT NULL
         WHERE o.tenant = %s AND o.session_id = %s
        WINDOW recency AS (ORDER BY x.version > o.prior DESC, x.used DESC, x.name DESC ROWS UNBOUNDED PRECEDING)
       ) AS ranked ON ranked.name = e.name
   SET e.value = NULL, e.canonical = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.kind = 1 AND NOT ranked.spared
   AND (ranked.row_no > %s OR ranked.upto > %s)
"""

# Record that variables were read before this call, in the order of the list.
USE = """
UPDATE {sessions} s
  STRAIGHT_JOIN JSON_TABLE(%s, '$[*]' COLUMNS (number FOR ORDINALITY,
                                               name VARCHAR(512) COLLATE utf8mb4_0900_bin PATH '$')) AS listed
  STRAIGHT_JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = listed.name
   SET e.used = s.stamp - 1 - %s + listed.number
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL
"""
USE_ONE = """
UPDATE {sessions} s STRAIGHT_JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s
   SET e.used = s.stamp - 1
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL
"""

# Undo the batch, with error 3141, unless a variable is a whole number and the sum is in range, or it does not exist.
CAN_ADD = """
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {sessions} s
  JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s
   AND NOT ({SOUND} AND {NUMBER} AND {DECIMAL} + %s BETWEEN {LEAST} AND {MOST})
"""

# The checksum of a sum; the canonical form of a whole number is the number itself.
SUM_CHECKSUM = (
    checksum_sql(("s.tenant", "s.session_id"), ("{entries}.value",), ("{entries}.kind",))
    + " ^ CRC32({entries}.name) ^ CRC32({entries}.value)"
)

ADD = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 1, fresh.name, fresh.value, fresh.value, fresh.size_bytes, s.stamp, s.stamp, NULL,
       fresh.checksum
  FROM {sessions} s
  JOIN (VALUES ROW(%s, %s, %s, %s)) AS fresh (name, value, size_bytes, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = IF({entries}.value IS NULL OR COALESCE({entries}.expires_at <= UTC_TIMESTAMP(6), FALSE),
                       fresh.value,
                       CAST(CAST(CONVERT({entries}.value USING ascii) AS DECIMAL(30)) + %s AS CHAR)),
       canonical  = {entries}.value,
       size_bytes = %s + LENGTH({entries}.value),
       version    = s.stamp,
       used       = s.stamp,
       expires_at = IF({entries}.expires_at <= UTC_TIMESTAMP(6), NULL, {entries}.expires_at),
       checksum   = {checksum}
"""

# Rows of entries that were deleted long ago and that no checkpoint needs.
FORGET_REMOVED = """
DELETE e FROM {entries} e JOIN {sessions} s ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NULL AND e.version < {US_SINCE_1970} - {DELETED_KNOWN_US}
   AND NOT EXISTS (SELECT 1 FROM {history} h
                    WHERE h.tenant = e.tenant AND h.sid = e.sid AND h.kind = e.kind AND h.name = e.name)
"""


class StoredEntry(NamedTuple):
    """An entry, or only the session's columns if there is none; see `READ`."""

    name: str | None
    value: bytes | None
    left_us: int | None
    checksum: int | None
    stamp: int
    ttl_us: int | None
    session_left_us: int | None


class KeyRow(NamedTuple):
    """A variable's key; see `KEYS`."""

    name: str | None
    stamp: int
    ttl_us: int | None
    session_left_us: int | None


class VersionRow(NamedTuple):
    """The version of an entry; see `VERSIONS`."""

    kind: int | None
    name: str | None
    version: int | None
    stamp: int
    ttl_us: int | None
    session_left_us: int | None


class HeldRow(NamedTuple):
    """A variable with its version, or only the number of the session's last note; see `HELD`."""

    last_note: int
    name: str | None
    value: bytes | None
    version: int | None
    checksum: int | None


class PresentRow(NamedTuple):
    """The number and the bytes of some variables; see `HAS`."""

    variables: Decimal | int
    size_bytes: Decimal | int


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry to write.

    Args:
        name: Its name.
        value: JSON; None removes it.
        canonical: See `Variable` of working memory.
        size_bytes: The bytes that count for its session.
        ttl_us: Its time to live in microseconds; None if it does not expire before the session.
    """

    name: str
    value: bytes | None
    canonical: bytes | None
    size_bytes: int
    ttl_us: int | None = None

    def params(self, key: SessionKey, kind: int) -> tuple[Param, ...]:
        """The values of the row in the order of the statement."""
        return (*self.content, self.ttl_us, self.checksum(key, kind))

    @property
    def content(self) -> tuple[Param, ...]:
        """The name, value, canonical and bytes."""
        return (self.name, self.value, self.canonical, self.size_bytes)

    def checksum(self, key: SessionKey, kind: int) -> int:
        """The checksum of the row."""
        of_canonical = 0 if self.canonical is None else crc32(self.canonical)
        return entry_checksum(key, kind, self.name, self.value) ^ of_canonical


def entry_checksum(key: SessionKey, kind: int, name: str | bytes, value: bytes | None) -> int:
    """The checksum of an entry without its canonical form, as statements read it; 0 if it was deleted.

    See `SUM_CHECKSUM`, where the server computes it.
    """
    return 0 if value is None else checksum(key, value, kind) ^ crc32(name.encode() if isinstance(name, str) else name)


class EntryStatements(Statements):
    """Reading and writing entries."""

    def read(
        self, key: SessionKey, names: Sequence[str], as_json: str = "", kind: int = VARIABLE
    ) -> Query[StoredEntry]:
        """Entries by their names, including expired ones, and deleted ones, which have no value."""
        if len(names) == 1:
            return Query(self._text(READ, **OF_ONE_NAME), (kind, names[0], *key), row=StoredEntry)
        which = named(names, as_json)
        listed = f"\n  LEFT JOIN {which.table} ON TRUE" if which.table else ""
        text = self._text(READ, listed=listed, names=which.condition, order="")
        return Query(text, (*which.table_params, kind, *which.params, *key), row=StoredEntry)

    def read_all(self, key: SessionKey, kind: int, last: int | None = None) -> Query[StoredEntry]:
        """All entries of a kind, in the order of their names; or the last ones, in reverse order."""
        order = IN_ORDER if last is None else LAST
        text = self._text(READ, listed="", names="{LIVE_ENTRY}", order=order)
        return Query(text, (kind, *key) if last is None else (kind, *key, last), row=StoredEntry)

    def keys(self, key: SessionKey, pattern: str) -> Query[KeyRow]:
        """Keys of variables that match a glob."""
        return Query(self._text(KEYS), (like(pattern), *key), row=KeyRow)

    def versions(self, key: SessionKey, names: Sequence[str] | None, as_json: str) -> Query[VersionRow]:
        """Versions of entries, including deleted ones."""
        condition = "TRUE" if names is None else IS_LISTED
        params = () if names is None else (as_json,)
        return Query(self._text(VERSIONS, names=condition), (*params, *key), row=VersionRow)

    def has(self, key: SessionKey, as_json: str, *, task: bool) -> Query[PresentRow]:
        """The number of these variables, and their bytes; with those of the task state if ``task``."""
        text = self._text(HAS, names=IS_LISTED)
        return Query(text, (TASK if task else 0, as_json, *key), row=PresentRow)

    def put(self, key: SessionKey, kind: int, rows: Sequence[EntryRow]) -> tuple[Statement, ...]:
        """Write entries whole."""
        if len(rows) == 1 and len(rows[0].value or b"") <= GIVEN_TWICE_BYTES:
            return (self._put_one(key, kind, rows[0]),)
        some = [rows[start : start + ROWS_PER_STATEMENT] for start in range(0, len(rows), ROWS_PER_STATEMENT)]
        return tuple(
            Statement(
                self._text(PUT, rows=placeholders(len(portion), "ROW(%s, %s, %s, %s, %s, %s)")),
                (kind, *(param for row in portion for param in row.params(key, kind)), *key),
            )
            for portion in some
        )

    def _put_one(self, key: SessionKey, kind: int, row: EntryRow) -> Statement:
        content = (row.value, row.canonical, row.size_bytes)
        expires, ttl = ("NULL", ()) if row.ttl_us is None else (EXPIRES, (row.ttl_us,))
        checksum = row.checksum(key, kind)
        params = (kind, row.name, *content, *ttl, checksum, *key, *content, *ttl, checksum)
        return Statement(self._text(PUT_ONE, expires=expires), params)

    def put_if_matched(self, key: SessionKey, token: bytes, row: EntryRow) -> Statement:
        """Write a variable if the ledger records that it matched; it keeps its time to live."""
        return Statement(
            self._text(PUT_KEPT, matched=MATCHED), (token, *row.content, row.checksum(key, VARIABLE), *key)
        )

    def put_kept(self, key: SessionKey, row: EntryRow) -> Statement:
        """Write a variable; it keeps its time to live."""
        return Statement(self._text(PUT_KEPT, matched=""), (*row.content, row.checksum(key, VARIABLE), *key))

    def held(self, key: SessionKey, names: Sequence[str]) -> Query[HeldRow]:
        """Variables with their versions, without expired ones, and the number of the last note."""
        condition = f"e.name IN ({placeholders(len(names))})" if names else "FALSE"
        return Query(self._text(HELD, names=condition), (*names, *key), row=HeldRow)

    def guard_version(self, key: SessionKey, name: str, version: int | None) -> Statement:
        """Undo the batch unless a variable has this version; None: unless it does not exist."""
        return Statement(self._text(GUARD_VERSION), (version, name, *key))

    def guard_note(self, key: SessionKey, number: int) -> Statement:
        """Undo the batch unless this is the number of the last note."""
        return Statement(self._text(GUARD_NOTE), (number, *key))

    def append(self, key: SessionKey, note: bytes, size_bytes: int) -> Statement:
        """Add a note under the number that was reserved for it."""
        checksum = entry_checksum(key, NOTE, "", note)
        return Statement(self._text(APPEND), (note, size_bytes, checksum, *key))

    def remove(self, key: SessionKey, kind: int, names: Sequence[str] | None = None, as_json: str = "") -> Statement:
        """Remove entries of a kind: those with some names, or all."""
        which = named(names, as_json) if names is not None else ALL
        params = (*which.table_params, kind, *which.params)
        return Statement(self._text(REMOVE, **which.pieces), (*params, *key))

    def remove_expired(self, key: SessionKey) -> Statement:
        """Remove variables that have expired."""
        return Statement(self._text(REMOVE_EXPIRED), key)

    def evict(self, key: SessionKey, allowed: Allowed) -> Statement:
        """Remove the variables used least recently, until the session is within its limits."""
        return Statement(self._text(EVICT), (*key, *key, *key, allowed.variables, allowed.size_bytes))

    def use(self, key: SessionKey, names: Sequence[str], as_json: str) -> Statement:
        """Record that variables were read before this call, in this order."""
        if len(names) == 1:
            return Statement(self._text(USE_ONE), (names[0], *key))
        return Statement(self._text(USE), (as_json, len(names), *key))

    def can_add(self, key: SessionKey, name: str, by: int) -> Statement:
        """Undo the batch unless this number can be added to a variable."""
        return Statement(self._text(CAN_ADD), (name, *key, by))

    def add(self, key: SessionKey, name: str, by: int) -> Statement:
        """Add a number to a variable."""
        text, key_bytes = str(by).encode(), len(name.encode())
        row = EntryRow(name, text, text, key_bytes + len(text))
        added = (name, text, row.size_bytes, row.checksum(key, VARIABLE))
        return Statement(self._text(ADD, checksum=SUM_CHECKSUM), (*added, *key, by, key_bytes))

    def forget_removed(self, key: SessionKey) -> Statement:
        """Remove the rows of entries that were deleted long ago."""
        return Statement(self._text(FORGET_REMOVED), key)
