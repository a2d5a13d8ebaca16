"""Statements about checkpoints of sessions."""

from __future__ import annotations

from ..checksums import checksum, version_sql
from ..statement import Statement
from .template import SessionKey, WorkingStatements

CREATE = """
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at,
                           checksum)
SELECT s.tenant, s.sid, %s, s.stamp, %s, COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.kind = 3), 0),
       COALESCE(SUM(e.size_bytes), 0), TIMESTAMPADD(MICROSECOND, {AT}, '1970-01-01'), %s ^ <stamp>
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND {ALIVE}
 WHERE s.tenant = %s AND s.session_id = %s
 GROUP BY s.tenant, s.session_id
""".replace("<stamp>", version_sql("s.stamp"))

# What has changed since the checkpoint before, what was deleted too. Which that is, a derived table says once: a
# subquery would be asked for each entry.
RECORD = """
INSERT INTO {history} (tenant, sid, kind, name, version, value, likeness, size_bytes, expires_at, checksum)
SELECT e.tenant, e.sid, e.kind, e.name, e.version, e.value, e.likeness, e.size_bytes, e.expires_at,
       e.checksum ^ <version>
  FROM {sessions} s
  JOIN (SELECT COALESCE(MAX(c.stamp), 0) AS stamp
          FROM {sessions} o JOIN {checkpoints} c ON c.tenant = o.tenant AND c.sid = o.sid AND c.stamp < o.stamp
         WHERE o.tenant = %s AND o.session_id = %s) AS before_it
  JOIN {entries} e ON {OF_SESSION} AND e.version > before_it.stamp
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE value = e.value
""".replace("<version>", version_sql("e.version"))

# All but so many of the newest, and but for two by name.
TRIM = """
DELETE c FROM {checkpoints} c
  JOIN (SELECT x.tenant, x.sid, x.checkpoint_id
          FROM {sessions} s JOIN {checkpoints} x ON x.tenant = s.tenant AND x.sid = s.sid
         WHERE s.tenant = %s AND s.session_id = %s AND x.checkpoint_id NOT IN (%s, %s)
         ORDER BY x.stamp DESC
         LIMIT 1000000 OFFSET %s) AS old USING (tenant, sid, checkpoint_id)
"""

# What no checkpoint holds: one holds, of each entry, the newest row up to its stamp.
PRUNE = """
DELETE h
  FROM {history} h
  JOIN (SELECT r.tenant, r.sid, r.kind, r.name, r.version,
               LEAD(r.version) OVER (PARTITION BY r.kind, r.name ORDER BY r.version) AS later
          FROM {sessions} s JOIN {history} r ON r.tenant = s.tenant AND r.sid = s.sid
         WHERE s.tenant = %s AND s.session_id = %s) AS run USING (tenant, sid, kind, name, version)
 WHERE NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = run.tenant AND c.sid = run.sid AND c.stamp >= run.version
                      AND (run.later IS NULL OR c.stamp < run.later))
"""

LIST = """
SELECT c.checkpoint_id, c.label, c.created_at, c.variables, c.notes, c.size_bytes, {CHECKPOINT_SEAL}, {KNOWN}
  FROM {sessions} s
  LEFT JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s
 ORDER BY c.stamp DESC
"""

# Undo the batch, with error 3141, unless the checkpoint is there, and its checksum is right.
THERE = """
SELECT CAST(IF(EXISTS (<found>), '1', '') AS JSON)
"""
FOUND = """SELECT {CHECKPOINT_SOUND} FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
          WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s"""

# What changed since a checkpoint: what did not is as the checkpoint has it, unless it expires.
CHANGED = """e.value IS NULL OR e.version > c.stamp OR e.expires_at IS NOT NULL"""

# An entry as a checkpoint holds it: its newest row up to then, unless that tells that it was deleted, or had expired.
HELD_ROW = """
  FROM {history} h
 WHERE h.tenant = e.tenant AND h.sid = e.sid AND h.kind = e.kind AND h.name = e.name AND h.version <= c.stamp
 ORDER BY h.version DESC
 LIMIT 1"""
HELD = "h.value IS NOT NULL AND (h.expires_at IS NULL OR h.expires_at > c.created_at)"

REMOVE_OTHERS = """
UPDATE {sessions} s
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = %s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION}
   SET e.value = NULL, e.likeness = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL AND (<changed>)
   AND NOT COALESCE((SELECT <held> <row>), FALSE)
"""

# What is as it was then is left alone, unless it expires: it has the time left that it had then. Every entry of a
# checkpoint has a row, of which something is known.
PUT_BACK = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at, checksum)
SELECT e.tenant, e.sid, e.kind, e.name, held.value, held.likeness, held.size_bytes, s.stamp, s.stamp,
       TIMESTAMPADD(MICROSECOND, {AT} + TIMESTAMPDIFF(MICROSECOND, c.created_at, held.expires_at), '1970-01-01'),
       held.checksum
  FROM {sessions} s
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = %s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION} AND (<changed>)
  STRAIGHT_JOIN LATERAL (SELECT h.value, h.likeness, h.size_bytes, h.version, h.expires_at,
                                h.checksum ^ <version> AS checksum, <held> AS there
                         <row>) AS held
 WHERE s.tenant = %s AND s.session_id = %s AND held.there
   AND (e.value IS NULL OR e.version <> held.version OR held.expires_at IS NOT NULL)
    ON DUPLICATE KEY UPDATE
       value      = held.value,
       likeness   = held.likeness,
       size_bytes = held.size_bytes,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = TIMESTAMPADD(MICROSECOND, {AT} + TIMESTAMPDIFF(MICROSECOND, c.created_at, held.expires_at),
                                 '1970-01-01'),
       checksum   = held.checksum
""".replace("<version>", version_sql("h.version"))

DELETE = """
DELETE c FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s
"""

# The answer is whether the checkpoint is there. It is the last insert id too.
SETTLE_THERE = """
INSERT INTO {settled} (tenant, token, outcome, settled_at)
VALUES (%s, %s, LAST_INSERT_ID(EXISTS (<found>)), UTC_TIMESTAMP(6))
"""


class CheckpointStatements(WorkingStatements):
    """Making, listing, restoring and deleting checkpoints."""

    def create(self, key: SessionKey, checkpoint_id: str, label: str | None) -> tuple[Statement, ...]:
        """Keep a locked session as it is."""
        return (
            Statement(self._text(CREATE), (checkpoint_id, label, checkpoint_checksum(key, checkpoint_id, label), *key)),
            Statement(self._text(RECORD), (*key, *key)),
        )

    def trim(self, key: SessionKey, kept: int, new_id: str, spared_id: str) -> Statement:
        """Delete checkpoints beyond so many, oldest first, but never these two."""
        protected = len({new_id, spared_id})
        return Statement(self._text(TRIM), (*key, new_id, spared_id, max(0, kept - protected)))

    def prune(self, key: SessionKey) -> Statement:
        """Remove what no checkpoint holds any more."""
        return Statement(self._text(PRUNE), key)

    def list(self, key: SessionKey) -> Statement:
        """Id, label, time, counts, bytes and checksum of checkpoints, newest first; what is known of the session."""
        return Statement(self._text(LIST), key)

    def there(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Undo the batch unless a checkpoint is there, undamaged."""
        return Statement(
            self._text(THERE.replace("<found>", f"{FOUND} AND {{CHECKPOINT_SOUND}}")), (*key, checkpoint_id)
        )

    def found(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """A row if a checkpoint is there: whether its checksum is right."""
        return Statement(self._text(FOUND), (*key, checkpoint_id))

    def restore(self, key: SessionKey, checkpoint_id: str) -> tuple[Statement, ...]:
        """Make a locked session what it was at a checkpoint, but for its counts."""
        return tuple(
            Statement(
                self._text(sql.replace("<changed>", CHANGED).replace("<row>", HELD_ROW).replace("<held>", HELD)),
                (checkpoint_id, *key),
            )
            for sql in (REMOVE_OTHERS, PUT_BACK)
        )

    def delete(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Delete a checkpoint."""
        return Statement(self._text(DELETE), (*key, checkpoint_id))

    def settle_there(self, key: SessionKey, token: bytes, checkpoint_id: str) -> Statement:
        """Leave the token of a write whose answer is whether a checkpoint is there."""
        text = self._text(SETTLE_THERE.replace("<found>", FOUND))
        return Statement(text, (key.tenant, token, *key, checkpoint_id))


def checkpoint_checksum(key: SessionKey, checkpoint_id: str, label: str | None) -> int:
    """The checksum of a checkpoint without its stamp, as it is read."""
    return checksum((*key, checkpoint_id), label)
