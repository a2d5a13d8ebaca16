"""Statements about checkpoints of sessions."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..checksums import checksum, version_sql
from ..statement import Query, Statement
from ..template import Statements
from .pieces import SessionKey

#: The part of a checksum that covers the version.
VERSION_OF_SESSION, VERSION_OF_ENTRY, VERSION_OF_HISTORY = map(version_sql, ("s.stamp", "e.version", "h.version"))

CREATE = """
INSERT INTO {checkpoints} (tenant, sid, checkpoint_id, stamp, label, variables, notes, size_bytes, created_at,
                           checksum)
SELECT s.tenant, s.sid, %s, s.stamp, %s, COALESCE(SUM(e.kind = 1), 0), COALESCE(SUM(e.kind = 3), 0),
       COALESCE(SUM(e.size_bytes), 0), TIMESTAMPADD(MICROSECOND, {AT}, '1970-01-01'), %s ^ {version}
  FROM {sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s
 GROUP BY s.tenant, s.session_id
"""

# The entries that changed since the previous checkpoint, deleted ones too. A derived table finds that checkpoint once:
# a subquery would be run for each entry.
RECORD = """
INSERT INTO {history} (tenant, sid, kind, name, version, value, canonical, size_bytes, expires_at, checksum)
SELECT e.tenant, e.sid, e.kind, e.name, e.version, e.value, e.canonical, e.size_bytes, e.expires_at,
       e.checksum ^ {version}
  FROM {sessions} s
  JOIN (SELECT COALESCE(MAX(c.stamp), 0) AS stamp
          FROM {sessions} o JOIN {checkpoints} c ON c.tenant = o.tenant AND c.sid = o.sid AND c.stamp < o.stamp
         WHERE o.tenant = %s AND o.session_id = %s) AS before_it
  JOIN {entries} e ON {OF_SESSION} AND e.version > before_it.stamp
 WHERE s.tenant = %s AND s.session_id = %s
    ON DUPLICATE KEY UPDATE value = e.value
"""

# Delete all checkpoints except the newest and two given ids.
TRIM = """
DELETE c FROM {checkpoints} c
  JOIN (SELECT x.tenant, x.sid, x.checkpoint_id
          FROM {sessions} s JOIN {checkpoints} x ON x.tenant = s.tenant AND x.sid = s.sid
         WHERE s.tenant = %s AND s.session_id = %s AND x.checkpoint_id NOT IN (%s, %s)
         ORDER BY x.stamp DESC
         LIMIT 1000000 OFFSET %s) AS old USING (tenant, sid, checkpoint_id)
"""

# Delete history that no checkpoint needs. A checkpoint needs, of each entry, the newest row up to its own stamp.
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

# Undo the batch, with error 3141, unless the checkpoint exists and its checksum is right.
# MAX: see docs/design/writes.md.
GUARD_CHECKPOINT = """
SELECT CAST(IF(MAX(EXISTS ({found})), '1', '') AS JSON)
"""
FOUND = """SELECT {CHECKPOINT_SOUND} FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
          WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s"""

# The entries that changed since a checkpoint, and those that expire. The others are still as in the checkpoint.
CHANGED = """e.value IS NULL OR e.version > c.stamp OR e.expires_at IS NOT NULL"""

# An entry as of a checkpoint: its newest row up to then, unless it was deleted or had expired by then.
ENTRY_THEN = """
  FROM {history} h
 WHERE h.tenant = e.tenant AND h.sid = e.sid AND h.kind = e.kind AND h.name = e.name AND h.version <= c.stamp
 ORDER BY h.version DESC
 LIMIT 1"""
EXISTED_THEN = "h.value IS NOT NULL AND (h.expires_at IS NULL OR h.expires_at > c.created_at)"

REMOVE_OTHERS = """
UPDATE {sessions} s
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = %s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION}
   SET e.value = NULL, e.canonical = NULL, e.size_bytes = 0, e.checksum = 0, e.expires_at = NULL, e.version = s.stamp
 WHERE s.tenant = %s AND s.session_id = %s AND e.value IS NOT NULL AND ({changed})
   AND NOT COALESCE((SELECT {held} {row}), FALSE)
"""

# Entries unchanged since the checkpoint stay, unless they expire: those get the remaining time that they had then.
# Every entry of a checkpoint still has a row in entries, as deletion keeps the row.
PUT_BACK = """
INSERT INTO {entries} (tenant, sid, kind, name, value, canonical, size_bytes, version, used, expires_at, checksum)
SELECT e.tenant, e.sid, e.kind, e.name, held.value, held.canonical, held.size_bytes, s.stamp, s.stamp,
       TIMESTAMPADD(MICROSECOND, {AT} + TIMESTAMPDIFF(MICROSECOND, c.created_at, held.expires_at), '1970-01-01'),
       held.checksum
  FROM {sessions} s
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid AND c.checkpoint_id = %s
  STRAIGHT_JOIN {entries} e ON {OF_SESSION} AND ({changed})
  STRAIGHT_JOIN LATERAL (SELECT h.value, h.canonical, h.size_bytes, h.version, h.expires_at,
                                h.checksum ^ {version} AS checksum, {held} AS found
                         {row}) AS held
 WHERE s.tenant = %s AND s.session_id = %s AND held.found
   AND (e.value IS NULL OR e.version <> held.version OR held.expires_at IS NOT NULL)
    ON DUPLICATE KEY UPDATE
       value      = held.value,
       canonical  = held.canonical,
       size_bytes = held.size_bytes,
       version    = s.stamp,
       used       = s.stamp,
       expires_at = TIMESTAMPADD(MICROSECOND, {AT} + TIMESTAMPDIFF(MICROSECOND, c.created_at, held.expires_at),
                                 '1970-01-01'),
       checksum   = held.checksum
"""

DELETE = """
DELETE c FROM {sessions} s JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s
"""


class CheckpointRow(NamedTuple):
    """A checkpoint, or only the session's columns if it has no checkpoint; see `LIST`."""

    checkpoint_id: str | None
    label: str | None
    created_at: datetime | None
    variables: int | None
    notes: int | None
    size_bytes: int | None
    checksum: int | None
    stamp: int
    ttl_us: int | None
    session_left_us: int | None


class FoundCheckpoint(NamedTuple):
    """Whether the checksum of a checkpoint is right; see `FOUND`."""

    sound: int


class CheckpointStatements(Statements):
    """Making, listing, restoring and deleting checkpoints."""

    def create(self, key: SessionKey, checkpoint_id: str, label: str | None) -> tuple[Statement, ...]:
        """Store a locked session as a checkpoint."""
        return (
            Statement(
                self._text(CREATE, version=VERSION_OF_SESSION),
                (checkpoint_id, label, checkpoint_checksum(key, checkpoint_id, label), *key),
            ),
            Statement(self._text(RECORD, version=VERSION_OF_ENTRY), (*key, *key)),
        )

    def trim(self, key: SessionKey, kept: int, new_id: str, spared_id: str) -> Statement:
        """Delete the oldest checkpoints beyond the number to keep, but never these two."""
        protected = len({new_id, spared_id})
        return Statement(self._text(TRIM), (*key, new_id, spared_id, max(0, kept - protected)))

    def prune(self, key: SessionKey) -> Statement:
        """Remove history that no checkpoint needs any more."""
        return Statement(self._text(PRUNE), key)

    def list(self, key: SessionKey) -> Query[CheckpointRow]:
        """Checkpoints, newest first."""
        return Query(self._text(LIST), key, row=CheckpointRow)

    def exists(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Undo the batch unless a checkpoint exists and is undamaged."""
        return Statement(self._text(GUARD_CHECKPOINT, found=f"{FOUND} AND {{CHECKPOINT_SOUND}}"), (*key, checkpoint_id))

    def found(self, key: SessionKey, checkpoint_id: str) -> Query[FoundCheckpoint]:
        """Return whether the checksum of a checkpoint is right; no row if there is none."""
        return Query(self._text(FOUND), (*key, checkpoint_id), row=FoundCheckpoint)

    def restore(self, key: SessionKey, checkpoint_id: str) -> tuple[Statement, ...]:
        """Restore a locked session from a checkpoint, except its counts."""
        return tuple(
            Statement(
                self._text(sql, changed=CHANGED, row=ENTRY_THEN, held=EXISTED_THEN, version=VERSION_OF_HISTORY),
                (checkpoint_id, *key),
            )
            for sql in (REMOVE_OTHERS, PUT_BACK)
        )

    def delete(self, key: SessionKey, checkpoint_id: str) -> Statement:
        """Delete a checkpoint."""
        return Statement(self._text(DELETE), (*key, checkpoint_id))


def checkpoint_checksum(key: SessionKey, checkpoint_id: str, label: str | None) -> int:
    """The checksum of a checkpoint without its stamp, as statements read it."""
    return checksum((*key, checkpoint_id), label)
