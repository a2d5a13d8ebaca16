"""Statements about variables, the task state and notes, and the tokens of writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from ..checksums import checksum, checksum_sql
from ..like import like
from ..statement import Param, Statement
from .sessions import Allowed
from .template import (
    MANY,
    NOTE,
    TASK,
    VARIABLE,
    Named,
    SessionKey,
    WorkingStatements,
    named,
)

#: At most this many rows are written by one statement.
ROWS_PER_STATEMENT = 100

#: An entry is given twice in its statement if its value has at most so many bytes.
GIVEN_TWICE_BYTES = 4_096

#: Entries of any name.
ALL = Named("", (), "TRUE", ())

#: Names as a condition, where all entries of the session are read anyway.
LISTED = "(SELECT listed.name FROM <many>)".replace("<many>", MANY)

#: At most so many tokens are removed at a time.
TOKENS_AT_ONCE = 1_000

# Each reading statement brings at least one row if the session is there, with what is {KNOWN} of it at the end. Whoever
# asked sees there whether it has expired: as a condition, this takes the server a tenth of reading a variable, and that
# of the variable another one. So entries that are named are told too if they have expired, or were deleted.
READ = """
SELECT e.name, e.value, {LEFT_US}, {SEAL}, {KNOWN}
  FROM {sessions} s<listed>
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = %s AND <names>
 WHERE s.tenant = %s AND s.session_id = %s
"""
OF_ONE_NAME = (("<listed>", ""), ("<names>", "e.name = %s"))
READ_ALL = READ.rstrip() + "\n <order>"
IN_ORDER = "ORDER BY e.name"
LAST = "ORDER BY e.name DESC LIMIT %s"
KEYS = """
SELECT e.name, {KNOWN}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name LIKE %s AND {ALIVE}
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY e.name
"""
VERSIONS = """
SELECT e.kind, e.name, e.version, {KNOWN}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND (e.kind <> 1 OR <names>)
        AND (e.value IS NOT NULL OR e.version > {CLOCK} - {TOLD_US})
 WHERE s.tenant = %s AND s.session_id = %s
"""

# How many of these variables there are, and their bytes, with those of the task state if that is asked for.
HAS = """
SELECT COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.size_bytes), 0)
  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND (e.kind = %s OR e.kind = 1 AND <names>) AND {ALIVE}
 WHERE {SESSION}
"""

# All times of one write are counted from one time.
PUT = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, %s, fresh.name, fresh.value, fresh.likeness, fresh.size_bytes, s.stamp, s.stamp,
       TIMESTAMPADD(MICROSECOND, {AT} + fresh.ttl_us, '1970-01-01'), fresh.checksum
  FROM {sessions} s
  JOIN (VALUES <rows>) AS fresh (name, value, likeness, size_bytes, ttl_us, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = fresh.value,
       likeness   = fresh.likeness,
       size_bytes = fresh.size_bytes,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = TIMESTAMPADD(MICROSECOND, {AT} + fresh.ttl_us, '1970-01-01'),
       checksum   = fresh.checksum
"""

# One entry, its content given twice: without a table made of it, this takes three quarters of the time.
PUT_ONE = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, %s, %s, %s, %s, %s, s.stamp, s.stamp, <expires>, %s
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = %s,
       likeness   = %s,
       size_bytes = %s,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = <expires>,
       checksum   = %s
"""
EXPIRES = "TIMESTAMPADD(MICROSECOND, {AT} + %s, '1970-01-01')"

# What expires keeps its time, and nothing happens unless the write was settled as carried out.
PUT_IF_MATCHED = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 1, fresh.name, fresh.value, fresh.likeness, fresh.size_bytes, s.stamp, s.stamp, NULL,
       fresh.checksum
  FROM {sessions} s
  JOIN {settled} t ON t.tenant = s.tenant AND t.token = %s AND t.outcome = 1
  JOIN (VALUES ROW(%s, %s, %s, %s, %s)) AS fresh (name, value, likeness, size_bytes, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       expires_at = IF({entries}.value IS NULL OR COALESCE({entries}.expires_at <= UTC_TIMESTAMP(6), FALSE), NULL,
                       {entries}.expires_at),
       value      = fresh.value,
       likeness   = fresh.likeness,
       size_bytes = fresh.size_bytes,
       checksum   = fresh.checksum,
       version    = s.stamp,
       used       = s.stamp
"""

APPEND = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 3, LPAD(s.last_note, 20, '0'), %s, NULL, %s, s.stamp, s.stamp, NULL,
       %s ^ CRC32(LPAD(s.last_note, 20, '0'))
  FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id = %s
"""

# What is deleted stays as a row without a value: the next checkpoint, and whoever asks for versions, is told by it.
REMOVE = """
UPDATE {sessions} s STRAIGHT_JOIN <listed>{entries} e ON {OF_SESSION} AND e.kind = %s AND <names>
   SET e.value = NULL, e.likeness = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL
"""

# What has expired goes the same way, but with the version that it had.
REMOVE_EXPIRED = """
UPDATE {entries} e JOIN {sessions} s ON {OF_SESSION}
   SET e.value = NULL, e.likeness = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL
 WHERE s.tenant = %s AND s.session_id = %s AND e.kind = 1 AND e.expires_at <= UTC_TIMESTAMP(6)
"""

# Of the variables that this call did not write, remove those used least recently: all but the longest run of those
# used last that is within the limits.
EVICT = """
UPDATE {entries} e
  JOIN {sessions} s ON {OF_SESSION}
  JOIN (SELECT x.name,
               x.version > o.prior AS spared,
               ROW_NUMBER() OVER recency AS place,
               SUM(x.size_bytes) OVER recency + others.size_bytes AS upto
          FROM {sessions} o
          JOIN (SELECT COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind <> 1
                 WHERE s.tenant = %s AND s.session_id = %s) AS others
          JOIN {entries} x ON x.tenant = o.tenant AND x.sid = o.sid AND x.kind = 1 AND x.value IS NOT NULL
         WHERE o.tenant = %s AND o.session_id = %s
        WINDOW recency AS (ORDER BY x.version > o.prior DESC, x.used DESC, x.name DESC ROWS UNBOUNDED PRECEDING)
       ) AS ranked ON ranked.name = e.name
   SET e.value = NULL, e.likeness = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.kind = 1 AND NOT ranked.spared
   AND (ranked.place > %s OR ranked.upto > %s)
"""

# Tell of variables that they were read before this call, in this order.
USE = """
UPDATE {sessions} s STRAIGHT_JOIN <listed>{entries} e ON {OF_SESSION} AND e.kind = 1 AND <names>
   SET e.used = s.stamp - 1 - %s + FIND_IN_SET(HEX(e.name), %s)
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL
"""

# Undo the batch, with error 3141, unless a variable is a whole number to which this can be added, or is not there.
CAN_ADD = """
SELECT CAST(IF(EXISTS (
         SELECT 1 FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {ALIVE}
          WHERE s.tenant = %s AND s.session_id = %s
            AND NOT ({SOUND} AND {NUMBER} AND {DECIMAL} + %s BETWEEN {LEAST} AND {MOST})), '', '1') AS JSON)
"""

# The checksum of a sum, which is its own likeness.
SUM_CHECKSUM = (
    checksum_sql(("s.tenant", "s.session_id"), ("{entries}.value",), ("{entries}.kind",))
    + " ^ CRC32({entries}.name) ^ CRC32({entries}.value)"
)

ADD = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT s.tenant, s.sid, 1, fresh.name, fresh.value, fresh.value, fresh.size_bytes, s.stamp, s.stamp, NULL,
       fresh.checksum
  FROM {sessions} s
  JOIN (VALUES ROW(%s, %s, %s, %s)) AS fresh (name, value, size_bytes, checksum)
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE
       value      = IF({entries}.value IS NULL OR COALESCE({entries}.expires_at <= UTC_TIMESTAMP(6), FALSE),
                       fresh.value,
                       CAST(CAST(CONVERT({entries}.value USING ascii) AS DECIMAL(30)) + %s AS CHAR)),
       likeness   = {entries}.value,
       size_bytes = %s + LENGTH({entries}.value),
       version    = s.stamp,
       used       = s.stamp,
       expires_at = IF({entries}.expires_at <= UTC_TIMESTAMP(6), NULL, {entries}.expires_at),
       checksum   = <checksum>
""".replace("<checksum>", SUM_CHECKSUM)
SETTLE = "INSERT INTO {settled} (tenant, token, outcome, settled_at) VALUES (%s, %s, NULL, UTC_TIMESTAMP(6))"

# The answer is how many entries there are that are about to be removed. It is the last insert id too.
SETTLE_COUNT = """
INSERT INTO {settled} (tenant, token, outcome, settled_at)
VALUES (%s, %s, LAST_INSERT_ID((SELECT COUNT(*) FROM {sessions} s STRAIGHT_JOIN <listed>
                                       {entries} e ON {OF_SESSION} AND e.kind = %s AND <names> AND {ALIVE}
                                 WHERE s.tenant = %s AND s.session_id = %s)), UTC_TIMESTAMP(6))
"""

# The answer is 1 if a variable has this likeness, or is not there, as is expected; else 0.
SETTLE_MATCH = """
INSERT INTO {settled} (tenant, token, outcome, settled_at)
VALUES (%s, %s, LAST_INSERT_ID((SELECT COUNT(*) FROM {sessions} s
                                  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {ALIVE}
                                 WHERE s.tenant = %s AND s.session_id = %s AND <expected>)), UTC_TIMESTAMP(6))
"""

# The answer is the number that a variable is.
SETTLE_NUMBER = """
INSERT INTO {settled} (tenant, token, outcome, settled_at)
SELECT s.tenant, %s, CAST(CONVERT(e.value USING ascii) AS SIGNED), UTC_TIMESTAMP(6)
  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s
 WHERE s.tenant = %s AND s.session_id = %s
"""
OUTCOME = "SELECT t.outcome FROM {settled} t WHERE t.tenant = %s AND t.token = %s"

# Relies on the index age.
FORGET_SETTLED = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT %s"

# Rows of deleted entries, of which no checkpoint holds a value, and of which nobody needs to be told any more.
FORGET_REMOVED = """
DELETE e FROM {entries} e JOIN {sessions} s ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NULL AND e.version < {CLOCK} - {TOLD_US}
   AND NOT EXISTS (SELECT 1 FROM {history} h
                    WHERE h.tenant = e.tenant AND h.sid = e.sid AND h.kind = e.kind AND h.name = e.name)
"""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry to write.

    Args:
        name: Its name.
        value: JSON; None tells that it is removed.
        likeness: See `Variable` of working memory.
        size_bytes: What it takes of its session.
        ttl_us: It expires after this many microseconds.
    """

    name: str
    value: bytes | None
    likeness: bytes | None
    size_bytes: int
    ttl_us: int | None = None

    def params(self, key: SessionKey, kind: int) -> tuple[Param, ...]:
        """In the order of the statement."""
        return (*self.content, self.ttl_us, self.checksum(key, kind))

    @property
    def content(self) -> tuple[Param, ...]:
        """Name, value, likeness and bytes."""
        return (self.name, self.value, self.likeness, self.size_bytes)

    def checksum(self, key: SessionKey, kind: int) -> int:
        """The checksum of the row."""
        of_likeness = 0 if self.likeness is None else crc32(self.likeness)
        return entry_checksum(key, kind, self.name, self.value) ^ of_likeness


def entry_checksum(key: SessionKey, kind: int, name: str, value: bytes | None) -> int:
    """The checksum of an entry without its likeness, as it is read; 0 of what was deleted.

    See `SUM_CHECKSUM`, where the server computes it.
    """
    return 0 if value is None else checksum(key, value, kind) ^ crc32(name.encode())


class EntryStatements(WorkingStatements):
    """Reading and writing entries, and tokens of writes."""

    def read(self, key: SessionKey, names: Sequence[str], as_json: str = "", kind: int = VARIABLE) -> Statement:
        """Name, value, microseconds left, checksum, and what is known of the session, of entries by their names.

        Also of those that have expired, or were deleted, which have no value.
        """
        if len(names) == 1:
            return Statement(self._text(READ, *OF_ONE_NAME), (kind, names[0], *key))
        which = named(names, as_json)
        listed = f"\n  LEFT JOIN {which.table} ON TRUE" if which.table else ""
        text = self._text(READ, ("<listed>", listed), ("<names>", which.condition))
        return Statement(text, (*which.table_params, kind, *which.params, *key))

    def read_all(self, key: SessionKey, kind: int, last: int | None = None) -> Statement:
        """The same of all that there are of a kind, in the order of their names; or the last ones, backwards."""
        order = IN_ORDER if last is None else LAST
        text = self._text(READ_ALL, ("<order>", order), ("<listed>", ""), ("<names>", "{ALIVE}"))
        return Statement(text, (kind, *key) if last is None else (kind, *key, last))

    def keys(self, key: SessionKey, pattern: str) -> Statement:
        """Names of variables that match a glob, and what is known of the session."""
        return Statement(self._text(KEYS), (like(pattern), *key))

    def versions(self, key: SessionKey, names: Sequence[str] | None, as_json: str) -> Statement:
        """Kind, name and version of entries, deleted ones too; and what is known of the session."""
        condition = "TRUE" if names is None else f"e.name IN {LISTED}"
        params = () if names is None else (as_json,)
        return Statement(self._text(VERSIONS, ("<names>", condition)), (*params, *key))

    def has(self, key: SessionKey, as_json: str, *, task: bool) -> Statement:
        """How many of these variables there are, and their bytes; with those of the task state, if asked."""
        text = self._text(HAS, ("<names>", f"e.name IN {LISTED}"))
        return Statement(text, (TASK if task else 0, as_json, *key))

    def put(self, key: SessionKey, kind: int, rows: Sequence[EntryRow]) -> tuple[Statement, ...]:
        """Write entries whole."""
        if len(rows) == 1 and len(rows[0].value or b"") <= GIVEN_TWICE_BYTES:
            return (self._put_one(key, kind, rows[0]),)
        some = [rows[start : start + ROWS_PER_STATEMENT] for start in range(0, len(rows), ROWS_PER_STATEMENT)]
        return tuple(
            Statement(
                self._text(PUT, ("<rows>", ", ".join(["ROW(%s, %s, %s, %s, %s, %s)"] * len(portion)))),
                (kind, *(param for row in portion for param in row.params(key, kind)), *key),
            )
            for portion in some
        )

    def _put_one(self, key: SessionKey, kind: int, row: EntryRow) -> Statement:
        content = (row.value, row.likeness, row.size_bytes)
        expires, ttl = ("NULL", ()) if row.ttl_us is None else (EXPIRES, (row.ttl_us,))
        checksum = row.checksum(key, kind)
        params = (kind, row.name, *content, *ttl, checksum, *key, *content, *ttl, checksum)
        return Statement(self._text(PUT_ONE, ("<expires>", expires)), params)

    def put_if_matched(self, key: SessionKey, token: bytes, row: EntryRow) -> Statement:
        """Write a variable if the write was settled as carried out; it keeps its time to live."""
        return Statement(self._text(PUT_IF_MATCHED), (token, *row.content, row.checksum(key, VARIABLE), *key))

    def append(self, key: SessionKey, note: bytes) -> Statement:
        """Add a note at the place that was counted for it."""
        checksum = entry_checksum(key, NOTE, "", note)
        return Statement(self._text(APPEND), (note, len(note), checksum, *key))

    def remove(self, key: SessionKey, kind: int, names: Sequence[str] | None = None, as_json: str = "") -> Statement:
        """Remove entries of a kind, by name or all."""
        which = named(names, as_json) if names is not None else ALL
        params = (*which.table_params, kind, *which.params)
        return Statement(self._text(which.joined(REMOVE)), (*params, *key))

    def remove_expired(self, key: SessionKey) -> Statement:
        """Remove variables that have expired."""
        return Statement(self._text(REMOVE_EXPIRED), key)

    def evict(self, key: SessionKey, allowed: Allowed) -> Statement:
        """Remove the variables used least recently, until the session is within its limits."""
        return Statement(self._text(EVICT), (*key, *key, *key, allowed.variables, allowed.size_bytes))

    def use(self, key: SessionKey, names: Sequence[str], as_json: str) -> Statement:
        """Tell of variables that they were read before this call, in this order."""
        which = named(names, as_json)
        places = ",".join(name.encode().hex().upper() for name in names)
        params = (*which.table_params, *which.params, len(names), places)
        return Statement(self._text(which.joined(USE)), (*params, *key))

    def can_add(self, key: SessionKey, name: str, by: int) -> Statement:
        """Undo the batch unless this can be added to a variable."""
        return Statement(self._text(CAN_ADD), (name, *key, by))

    def add(self, key: SessionKey, name: str, by: int) -> Statement:
        """Add to a variable."""
        text, key_bytes = str(by).encode(), len(name.encode())
        row = EntryRow(name, text, text, key_bytes + len(text))
        added = (name, text, row.size_bytes, row.checksum(key, VARIABLE))
        return Statement(self._text(ADD), (*added, *key, by, key_bytes))

    def settle(self, tenant: str, token: bytes) -> Statement:
        """Leave the token of a write without an answer."""
        return Statement(self._text(SETTLE), (tenant, token))

    def settle_count(
        self, key: SessionKey, token: bytes, kind: int, names: Sequence[str] | None = None, as_json: str = ""
    ) -> Statement:
        """Leave the token of a write whose answer is how many entries there are now."""
        which = named(names, as_json) if names is not None else ALL
        params = (key.tenant, token, *which.table_params, kind, *which.params)
        return Statement(self._text(which.joined(SETTLE_COUNT)), (*params, *key))

    def settle_match(self, key: SessionKey, token: bytes, name: str, likeness: bytes | None) -> Statement:
        """Leave the token of a write whose answer is whether a variable is as expected."""
        expected = "e.name IS NULL" if likeness is None else "e.likeness = %s AND {SOUND}"
        params = () if likeness is None else (likeness,)
        return Statement(self._text(SETTLE_MATCH, ("<expected>", expected)), (key.tenant, token, name, *key, *params))

    def settle_number(self, key: SessionKey, token: bytes, name: str) -> Statement:
        """Leave the token of a write whose answer is the number that a variable is."""
        return Statement(self._text(SETTLE_NUMBER), (token, name, *key))

    def outcome(self, tenant: str, token: bytes) -> Statement:
        """What a write has to answer, if it was carried out."""
        return Statement(self._text(OUTCOME), (tenant, token))

    def forget_settled(self) -> Statement:
        """Remove up to `TOKENS_AT_ONCE` of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_SETTLED), (TOKENS_AT_ONCE,))

    def forget_removed(self, key: SessionKey) -> Statement:
        """Remove the rows of entries that were deleted long ago."""
        return Statement(self._text(FORGET_REMOVED), key)
