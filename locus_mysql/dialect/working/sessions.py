"""Statements about sessions. Each write begins with one that locks the session, assigns a stamp and updates counts."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from ..statement import Param, Query, Statement
from ..template import Statements
from ..variants import OCEANBASE
from .count_changes import WITH_TASK, WITHOUT, WITHOUT_NOTES, WITHOUT_ONE, WITHOUT_VARIABLES, Change
from .pieces import SessionKey

# Create a session, or lock the existing one.
BEGIN = """
INSERT INTO {sessions} (tenant, session_id, sid, stamp, prior, replaced, ttl_us, variables, notes, size_bytes,
                        last_note, created_at, expires_at)
VALUES (%s, %s, %s, LAST_INSERT_ID({US_SINCE_1970} + 1), 0, 0, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)
    ON DUPLICATE KEY UPDATE {set}
"""

# Lock an existing session.
LOCK = "UPDATE {sessions} SET {set} WHERE tenant = %s AND session_id = %s"

# Assign the session's next stamp. The assignments run left to right. The batch fails with error 3141, which undoes it,
# if the session has expired, if its stamp is not the expected one, or if its counts exceed the limits.
NEXT_STAMP = """prior = stamp,
       stamp = LAST_INSERT_ID(GREATEST(stamp + %s, {US_SINCE_1970}) + 1),
       {change}notes = notes + JSON_LENGTH(IF((expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6)){relied}{within},
                                              '[]', '')),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL (ttl_us + ttl_us DIV 8) MICROSECOND"""
RELIED = " AND prior = %s"
WITHIN = " AND variables <= %s AND size_bytes <= %s AND notes <= %s"

# The same for each further command of the same call.
NEXT_STAMP_AGAIN = """{change}stamp = LAST_INSERT_ID(stamp + 1){check}"""

# After the assignments that change the counts: undo the batch, with error 3141, if they exceed the limits.
CHECK = ", notes = notes + JSON_LENGTH(IF(variables <= %s AND size_bytes <= %s AND notes <= %s, '[]', ''))"

# Fails with error 3141, which undoes the batch, if the statement before found no session.
GUARD_LOCKED = "SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)"

# A subquery in ON DUPLICATE KEY UPDATE may not refer to the inserted row (error 1235). So changes that depend on
# entries are columns of a joined table: the bytes of the replaced variable, and the amounts added to each count. That
# table reads the session itself, as MySQL loses rows of a LATERAL table that refers to a table joined by LEFT JOIN. The
# statement is repeated, on newer rows, if the session was written after it began.
OCEANBASE.instead_of(
    BEGIN,
    """
INSERT INTO {sessions} (tenant, session_id, sid, stamp, prior, replaced, ttl_us, variables, notes, size_bytes,
                        last_note, created_at, expires_at)
SELECT begun.tenant, begun.session_id, begun.sid, LAST_INSERT_ID({US_SINCE_1970} + 1), 0, 0, begun.ttl_us,
       begun.variables, begun.notes, begun.size_bytes, begun.last_note, UTC_TIMESTAMP(6),
       CAST(TIMESTAMPADD(MICROSECOND, begun.lifetime_us, UTC_TIMESTAMP(6)) AS DATETIME(6))
  FROM (SELECT %s AS tenant, %s AS session_id, %s AS sid, CAST(%s AS UNSIGNED) AS ttl_us, %s AS variables,
               %s AS notes, %s AS size_bytes, %s AS last_note, CAST(%s AS SIGNED) AS lifetime_us) AS begun
  JOIN (SELECT %s AS stamps) AS used
  {change}
 WHERE TRUE
    ON DUPLICATE KEY UPDATE
       prior      = {sessions}.stamp,
       stamp      = LAST_INSERT_ID(GREATEST({sessions}.stamp + used.stamps, {US_SINCE_1970}) + 1),
       replaced   = COALESCE(counted.replaced, {sessions}.replaced),
       variables  = {sessions}.variables + counted.variables,
       size_bytes = {sessions}.size_bytes + counted.size_bytes,
       notes      = {sessions}.notes + counted.notes
                    + JSON_LENGTH(IF(({sessions}.expires_at IS NULL OR {sessions}.expires_at > UTC_TIMESTAMP(6))
                                     {relied}{within}, '[]', '')),
       expires_at = CAST(TIMESTAMPADD(MICROSECOND, {sessions}.ttl_us + {sessions}.ttl_us DIV 8, UTC_TIMESTAMP(6))
                         AS DATETIME(6))
""",
    {
        WITHOUT: """JOIN LATERAL (SELECT %s - COUNT(*) AS variables FROM {sessions} s JOIN {listed} {entries} e
                    ON {OF_SESSION} AND e.kind = 1 AND {names} AND e.value IS NOT NULL
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS changed
  JOIN LATERAL (SELECT %s - COALESCE(SUM(e.size_bytes), 0) AS size_bytes FROM {sessions} s JOIN {listed} {entries} e
                    ON {OF_SESSION} AND e.kind = 1 AND {names}
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS sized
  JOIN LATERAL (SELECT NULL AS replaced, changed.variables AS variables, 0 AS notes,
                       sized.size_bytes AS size_bytes) AS counted""",
        WITHOUT_ONE: """JOIN LATERAL (SELECT COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS held
  JOIN LATERAL (SELECT held.size_bytes AS replaced, %s - (held.size_bytes > 0) AS variables, 0 AS notes,
                       %s - held.size_bytes AS size_bytes) AS counted""",
        WITHOUT_VARIABLES: """JOIN LATERAL (SELECT NULL AS replaced, -COALESCE(MAX(s.variables), 0) AS variables,
                       0 AS notes, -COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS counted""",
        WITHOUT_NOTES: """JOIN LATERAL (SELECT NULL AS replaced, 0 AS variables, -COALESCE(MAX(s.notes), 0) AS notes,
                       -COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 3
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS counted""",
        WITH_TASK: """JOIN LATERAL (SELECT NULL AS replaced, 0 AS variables, 0 AS notes,
                       %s - COALESCE(SUM(e.size_bytes), 0) AS size_bytes
                  FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind = 2 AND e.name = ''
                 WHERE s.tenant = begun.tenant AND s.session_id = begun.session_id) AS counted""",
    },
)
# The same conditions with the table's name, as the tables joined in BEGIN have columns of these names, too.
OCEANBASE.instead_of(RELIED, " AND {sessions}.prior = %s")
OCEANBASE.instead_of(
    WITHIN, " AND {sessions}.variables <= %s AND {sessions}.size_bytes <= %s AND {sessions}.notes <= %s"
)

# Lock a session without assigning a stamp.
HOLD = "SELECT 1 FROM {sessions} s WHERE s.tenant = %s AND s.session_id = %s FOR UPDATE"

# Add a variable back to the counts after it was subtracted.
COUNT_IN = """
UPDATE {sessions}
   SET replaced = COALESCE((SELECT e.size_bytes FROM {entries} e
                             WHERE {OWN} AND e.kind = 1 AND e.name = %s), 0),
       variables = variables + (replaced > 0),
       size_bytes = size_bytes + replaced{check}
 WHERE tenant = %s AND session_id = %s
"""

# Recount everything, in one pass over the entries.
RECOUNT = """
UPDATE {sessions} s
  JOIN (SELECT COALESCE(SUM(e.kind = 1 AND e.value IS NOT NULL), 0) AS variables,
               COALESCE(SUM(e.size_bytes), 0)                       AS size_bytes,
               COALESCE(SUM(e.kind = 3 AND e.value IS NOT NULL), 0) AS notes
          FROM {sessions} o JOIN {entries} e ON e.tenant = o.tenant AND e.sid = o.sid
         WHERE o.tenant = %s AND o.session_id = %s) AS counted
   SET s.variables  = counted.variables,
       s.size_bytes = counted.size_bytes,
       s.notes      = counted.notes{check}
 WHERE s.tenant = %s AND s.session_id = %s
"""
CHECK_COUNTED = """ + JSON_LENGTH(IF(counted.variables <= %s AND counted.size_bytes <= %s AND counted.notes <= %s,
                                                         '[]', ''))"""

# A session, expired or not, with its counts without expired variables, and the bytes of its other entries.
STATE = """
SELECT s.sid, s.stamp, s.ttl_us, COALESCE(s.expires_at <= UTC_TIMESTAMP(6), FALSE),
       s.notes, s.size_bytes - held.expired_bytes, s.variables - held.expired, held.other_bytes
  FROM {sessions} s
  JOIN LATERAL (SELECT COALESCE(SUM(e.expires_at <= UTC_TIMESTAMP(6)), 0) AS expired,
                       COALESCE(SUM(IF(e.expires_at <= UTC_TIMESTAMP(6), e.size_bytes, 0)), 0) AS expired_bytes,
                       COALESCE(SUM(IF(e.kind = 1, 0, e.size_bytes)), 0) AS other_bytes
                  FROM {entries} e
                 WHERE {OF_SESSION}) AS held
 WHERE s.tenant = %s AND s.session_id = %s
"""

# Counts and size of the entries that have not expired, and the number of checkpoints.
MEASURE = """
SELECT COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.size_bytes), 0), COALESCE(SUM(e.kind = 3), 0), MAX(made.number),
       {KNOWN}
  FROM (SELECT COUNT(*) AS number
          FROM {sessions} o JOIN {checkpoints} c ON c.tenant = o.tenant AND c.sid = o.sid
         WHERE o.tenant = %s AND o.session_id = %s) AS made
  JOIN {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s
 GROUP BY s.tenant, s.session_id
"""

RENEW = """
UPDATE {sessions} s
   SET s.expires_at = UTC_TIMESTAMP(6) + INTERVAL (s.ttl_us + s.ttl_us DIV 8) MICROSECOND
 WHERE {SESSION} AND s.ttl_us IS NOT NULL
"""

# Relies on the index expiry.
EXPIRED = """
SELECT s.tenant, s.session_id FROM {sessions} s
 WHERE s.expires_at <= UTC_TIMESTAMP(6)
 ORDER BY s.expires_at
 LIMIT %s
"""
LOCK_EXPIRED = """
UPDATE {sessions} SET stamp = stamp + 1 WHERE tenant = %s AND session_id = %s AND expires_at <= UTC_TIMESTAMP(6)
"""

# A page of a tenant's sessions, expired ones too.
OF_TENANT = """
SELECT s.session_id, s.sid, COALESCE(s.expires_at <= UTC_TIMESTAMP(6), FALSE) FROM {sessions} s
 WHERE s.tenant = %s AND s.session_id > %s
 ORDER BY s.session_id
 LIMIT %s
"""

# Does not lock a session that was deleted and created again meanwhile: it has another sid.
LOCK_KNOWN = "UPDATE {sessions} SET stamp = stamp + 1 WHERE tenant = %s AND session_id = %s AND sid = %s"

# Remove a locked session with all its rows in the other tables.
REMOVE_FROM = """
DELETE x FROM {sessions} s JOIN {table} x ON x.tenant = s.tenant AND x.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s
"""
REMOVE = "DELETE FROM {sessions} WHERE tenant = %s AND session_id = %s"


class StateRow(NamedTuple):
    """A session, expired or not: see `STATE`.

    Args:
        sid: Its id in the other tables.
        stamp: Its stamp.
        ttl_us: Its time to live.
        expired: Whether it has expired.
        notes: The number of notes.
        size_bytes: The bytes of its entries, without expired variables.
        variables: The number of variables, without expired ones.
        other_bytes: The bytes of notes and task state.
    """

    sid: bytes
    stamp: int
    ttl_us: int | None
    expired: int
    notes: int
    size_bytes: Decimal | int
    variables: Decimal | int
    other_bytes: Decimal | int


class MeasureRow(NamedTuple):
    """Counts and size of a session's content: see `MEASURE`."""

    variables: Decimal | int
    size_bytes: Decimal | int
    notes: Decimal | int
    checkpoints: int
    stamp: int
    ttl_us: int | None
    session_left_us: int | None


class ExpiredRow(NamedTuple):
    """An expired session: see `EXPIRED`."""

    tenant: str
    session_id: str


class TenantSession(NamedTuple):
    """A session of a tenant: see `OF_TENANT`."""

    session_id: str
    sid: bytes
    expired: int


class Allowed(NamedTuple):
    """The limits of a session: variables, bytes, notes."""

    variables: int
    size_bytes: int
    notes: int


class SessionStatements(Statements):
    """Locking, counting, renewing and removing sessions."""

    def begin(
        self,
        key: SessionKey,
        sid: bytes,
        ttl_us: int | None,
        lifetime_us: int | None,
        change: Change,
        *,
        used: int = 0,
        relied: int | None = None,
        allowed: Allowed | None = None,
    ) -> Statement:
        """Create a session, or lock the existing one. The last insert id is the stamp.

        Args:
            key: The session.
            sid: Its id in other tables, if it is new.
            ttl_us: Its time to live, if it is new.
            lifetime_us: The microseconds until it expires, if it is new.
            change: The change of its counts.
            used: The number of stamps to skip.
            relied: The stamp that it must have; 0 requires that it does not exist.
            allowed: The limits; None if they are checked later.
        """
        pieces, params = _drawing(change, used, relied, allowed)
        variables, notes, size_bytes = change.begun
        new = (*key, sid, ttl_us, variables, notes, size_bytes, notes, lifetime_us)
        return Statement(self._text(BEGIN, **pieces), (*new, *params))

    def lock(
        self,
        key: SessionKey,
        change: Change,
        *,
        used: int = 0,
        relied: int | None = None,
        allowed: Allowed | None = None,
    ) -> tuple[Statement, ...]:
        """Lock a session, or undo the batch if it does not exist. The last insert id of the first is the stamp."""
        pieces, params = _drawing(change, used, relied, allowed)
        return Statement(self._text(LOCK, **pieces), (*params, *key)), Statement(GUARD_LOCKED)

    def lock_again(self, key: SessionKey, change: Change, allowed: Allowed | None = None) -> Statement:
        """Assign another stamp to a further command of the same call."""
        check, limits = _check(allowed)
        text = self._text(LOCK, set=NEXT_STAMP_AGAIN, change=change.assignments, check=check, **change.pieces)
        return Statement(text, (*change.params, *limits, *key))

    def hold(self, key: SessionKey) -> Statement:
        """Lock a session without assigning a stamp."""
        return Statement(self._text(HOLD), key)

    def count_in(self, key: SessionKey, name: str, allowed: Allowed | None) -> Statement:
        """Add a variable back to the counts after it was subtracted."""
        check, limits = _check(allowed)
        return Statement(self._text(COUNT_IN, check=check), (name, *limits, *key))

    def recount(self, key: SessionKey, allowed: Allowed | None = None) -> Statement:
        """Recount everything, and undo the batch if the counts exceed the limits."""
        check = "" if allowed is None else CHECK_COUNTED
        return Statement(self._text(RECOUNT, check=check), (*key, *(allowed or ()), *key))

    def state(self, key: SessionKey) -> Query[StateRow]:
        """A session, expired or not, with its counts."""
        return Query(self._text(STATE), key, row=StateRow)

    def measure(self, key: SessionKey) -> Query[MeasureRow]:
        """Return counts and size of a session's content, without expired variables."""
        return Query(self._text(MEASURE), (*key, *key), row=MeasureRow)

    def renew(self, key: SessionKey) -> Statement:
        """Restart the time to live of a session."""
        return Statement(self._text(RENEW), key)

    def expired(self, limit: int) -> Query[ExpiredRow]:
        """Expired sessions of all tenants, in the order of their expiry."""
        return Query(self._text(EXPIRED), (limit,), row=ExpiredRow)

    def lock_expired(self, key: SessionKey) -> Statement:
        """Lock a session if it has expired."""
        return Statement(self._text(LOCK_EXPIRED), key)

    def of_tenant(self, tenant: str, last: str, limit: int) -> Query[TenantSession]:
        """A tenant's sessions after an id, in the order of their ids, including expired ones."""
        return Query(self._text(OF_TENANT), (tenant, last, limit), row=TenantSession)

    def lock_known(self, key: SessionKey, sid: bytes) -> Statement:
        """Lock a session if it still has this sid."""
        return Statement(self._text(LOCK_KNOWN), (*key, sid))

    def held(self) -> Statement:
        """Undo the batch if the statement before found no session."""
        return Statement(GUARD_LOCKED)

    def remove(self, key: SessionKey) -> tuple[Statement, ...]:
        """Remove a locked session with all its rows in the other tables."""
        parts = ("{history}", "{checkpoints}", "{entries}")
        return (
            *(Statement(self._text(REMOVE_FROM, table=part), key) for part in parts),
            Statement(self._text(REMOVE), key),
        )


def _drawing(
    change: Change, used: int, relied: int | None, allowed: Allowed | None
) -> tuple[Mapping[str, str], tuple[Param, ...]]:
    """Return the pieces and the parameters of a statement that locks a session and assigns its next stamp."""
    asked, stamp = ("", ()) if relied is None else (RELIED, (relied,))
    within, limits = ("", ()) if allowed is None else (WITHIN, allowed)
    pieces = {"set": NEXT_STAMP, "change": change.assignments, "relied": asked, "within": within, **change.pieces}
    return pieces, (used, *change.params, *stamp, *limits)


def _check(allowed: Allowed | None) -> tuple[str, tuple[Param, ...]]:
    return ("", ()) if allowed is None else (CHECK, allowed)
