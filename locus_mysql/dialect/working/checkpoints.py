"""Statements about checkpoints of sessions."""

from __future__ import annotations

from ..statement import Statement
from .template import SessionKey, WorkingStatements

CREATE = """
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at)
SELECT s.tenant, s.sid, %s, s.stamp, %s, COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.kind = 3), 0),
       COALESCE(SUM(e.size_bytes), 0), TIMESTAMPADD(MICROSECOND, {AT}, '1970-01-01')
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND {ALIVE}
 WHERE s.tenant = %s AND s.session_id = %s
 GROUP BY s.tenant, s.session_id
"""

# What has changed since the checkpoint before, what was deleted too.
RECORD = """
INSERT INTO {history} (tenant, sid, kind, name, version, value, likeness, size_bytes, expires_at)
SELECT e.tenant, e.sid, e.kind, e.name, e.version, e.value, e.likeness, e.size_bytes, e.expires_at
  FROM {sessions} s
  JOIN {entries} e ON {OF_SESSION}
 WHERE s.tenant = %s AND s.session_id = %s
   AND e.version > COALESCE((SELECT MAX(c.stamp) FROM {checkpoints} c
                              WHERE c.tenant = s.tenant AND c.sid = s.sid AND c.stamp < s.stamp), 0)
    ON DUPLICATE KEY UPDATE value = e.value
"""

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
SELECT c.checkpoint_id, c.label, c.created_at, c.variables, c.notes, c.size_bytes, s.stamp, s.ttl_us
  FROM {sessions} s
  LEFT JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE {SESSION}
 ORDER BY c.stamp DESC
"""

# Undo the batch, with error 3141, unless the checkpoint is there.
THERE = """
SELECT CAST(IF(EXISTS (<found>), '1', '') AS JSON)
"""
FOUND = """SELECT 1 FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
          WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s"""

# What a checkpoint holds.
HELD = """(SELECT h.*, c.created_at AS taken_at
             FROM {sessions} o
             JOIN {checkpoints} c ON c.tenant = o.tenant AND c.sid = o.sid AND c.checkpoint_id = %s
             JOIN {history} h ON h.tenant = c.tenant AND h.sid = c.sid AND h.version <= c.stamp
             JOIN (SELECT r.kind, r.name, MAX(r.version) AS version
                     FROM {sessions} o
                     JOIN {checkpoints} c ON c.tenant = o.tenant AND c.sid = o.sid AND c.checkpoint_id = %s
                     JOIN {history} r ON r.tenant = c.tenant AND r.sid = c.sid AND r.version <= c.stamp
                    WHERE o.tenant = %s AND o.session_id = %s
                    GROUP BY r.kind, r.name) AS newest USING (kind, name, version)
            WHERE o.tenant = %s AND o.session_id = %s AND h.value IS NOT NULL
              AND (h.expires_at IS NULL OR h.expires_at > c.created_at))"""

# The microseconds that something that expires had left.
LEFT = "TIMESTAMPDIFF(MICROSECOND, held.taken_at, held.expires_at)"

REMOVE_OTHERS = """
UPDATE {entries} e
  JOIN {sessions} s ON {OF_SESSION}
  LEFT JOIN <held> AS held ON held.kind = e.kind AND held.name = e.name
   SET e.value = NULL, e.likeness = NULL, e.size_bytes = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND held.name IS NULL AND e.value IS NOT NULL
"""

# What is as it was then is left alone, unless it expires: it has the time left that it had then.
PUT_BACK = """
INSERT INTO {entries} (tenant, sid, kind, name, value, likeness, size_bytes, version, used, expires_at)
SELECT s.tenant, s.sid, held.kind, held.name, held.value, held.likeness, held.size_bytes, s.stamp, s.stamp,
       TIMESTAMPADD(MICROSECOND, {AT} + <left>, '1970-01-01')
  FROM {sessions} s
  JOIN <held> AS held
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = held.kind AND e.name = held.name
 WHERE s.tenant = %s AND s.session_id = %s
   AND (e.value IS NULL OR e.version <> held.version OR held.expires_at IS NOT NULL)
    ON DUPLICATE KEY UPDATE
       value      = held.value,
       likeness   = held.likeness,
       size_bytes = held.size_bytes,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = TIMESTAMPADD(MICROSECOND, {AT} + <left>, '1970-01-01')
"""

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
            Statement(self._text(CREATE), (checkpoint_id, label, *key)),
            Statement(self._text(RECORD), key),
        )

    def trim(self, key: SessionKey, kept: int, new_id: str, spared_id: str) -> Statement:
        """Delete checkpoints beyond so many, oldest first, but never these two."""
        protected = len({new_id, spared_id})
        return Statement(self._text(TRIM), (*key, new_id, spared_id, max(0, kept - protected)))

    def prune(self, key: SessionKey) -> Statement:
        """Remove what no checkpoint holds any more."""
        return Statement(self._text(PRUNE), key)

    def list(self, key: SessionKey) -> Statement:
        """Id, label, time, variables, notes and bytes of checkpoints, newest first; stamp and time to live."""
        return Statement(self._text(LIST), key)

    def there(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Undo the batch unless a checkpoint is there."""
        return Statement(self._text(THERE.replace("<found>", FOUND)), (*key, checkpoint_id))

    def found(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """A row if a checkpoint is there."""
        return Statement(self._text(FOUND), (*key, checkpoint_id))

    def restore(self, key: SessionKey, checkpoint_id: str) -> tuple[Statement, ...]:
        """Make a locked session what it was at a checkpoint, but for its counts."""
        held = (checkpoint_id, checkpoint_id, *key, *key)
        return (
            Statement(self._text(REMOVE_OTHERS.replace("<held>", HELD)), (*held, *key)),
            Statement(self._text(PUT_BACK.replace("<held>", HELD).replace("<left>", LEFT)), (*held, *key)),
        )

    def delete(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Delete a checkpoint."""
        return Statement(self._text(DELETE), (*key, checkpoint_id))

    def settle_there(self, key: SessionKey, token: bytes, checkpoint_id: str) -> Statement:
        """Leave the token of a write whose answer is whether a checkpoint is there."""
        text = self._text(SETTLE_THERE.replace("<found>", FOUND))
        return Statement(text, (key.tenant, token, *key, checkpoint_id))
