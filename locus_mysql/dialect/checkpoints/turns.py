"""Statements about turns: which process may write to a thread, and the preconditions of a save.

A turn is a lease in the thread's row: a random token, and the time at which it ends by the server's clock. A thread
without checkpoints has a row for the lease only; it counts as expired, so other statements ignore it. No statement here
changes the thread's version, so the caches of processes stay valid.
"""

from __future__ import annotations

from typing import NamedTuple

from ..statement import Query, Statement
from ..template import Statements

# Acquire the turn if it is free, or if the same token has it already, as an answer may have been lost. If the token was
# released before, this packet is late and acquires nothing. The assignments run left to right.
ACQUIRE = """
INSERT INTO {threads} (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at,
                       turn_token, turn_until)
SELECT %s, %s, 0, 1, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), {LEASE_ONLY},
       %s, UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
  FROM DUAL
 WHERE NOT EXISTS (SELECT 1 FROM {ledger} l WHERE l.tenant = %s AND l.token = %s)
    ON DUPLICATE KEY UPDATE
       turn_token = IF(turn_until > UTC_TIMESTAMP(6), turn_token, %s),
       turn_until = IF(turn_token = %s, UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND, turn_until)
"""

# Whether the token holds the turn, and the remaining time of the current holder, if any.
WHOSE = """
SELECT t.turn_token <=> %s, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), t.turn_until)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s
"""

# Extend the turn, unless it was lost.
RENEW = """
UPDATE {threads}
   SET turn_until = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
 WHERE tenant = %s AND thread_id = %s AND turn_token = %s AND turn_until > UTC_TIMESTAMP(6)
"""

# Release the turn. A row that existed only for the lease is removed.
RELEASE = "UPDATE {threads} SET turn_until = NULL WHERE tenant = %s AND thread_id = %s AND turn_token = %s"

DROP_LEASE = """
DELETE FROM {threads}
 WHERE tenant = %s AND thread_id = %s AND turn_token = %s AND turn_until IS NULL AND expires_at = {LEASE_ONLY}
"""

# A thread that is deleted within its own turn keeps its row for the lease.
KEEP_LEASE = "UPDATE {threads} SET expires_at = {LEASE_ONLY} WHERE tenant = %s AND thread_id = %s"

KEEP_LEASE_IF_EMPTY = """
UPDATE {threads} SET expires_at = {LEASE_ONLY}
 WHERE tenant = %s AND thread_id = %s
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL)
"""

# Undoes the batch, with error 3141, unless the token has the turn. The thread is locked, so that stays true until the
# transaction ends.
FENCE = """
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND t.turn_token = %s AND t.turn_until > UTC_TIMESTAMP(6)
"""

# Undoes the batch unless the newest checkpoint below the seq just taken is the expected one. ORDER BY names all columns
# of the primary key, so that MySQL walks along it backwards to the first row. MAX: see docs/design/writes.md.
NEWEST_IS = """
SELECT CAST(IF(MAX((SELECT c.{column}
                      FROM {checkpoints} c
                     WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                       AND c.seq >= t.first_seq AND c.seq < t.last_seq
                     ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC LIMIT 1) <=> %s), '1', '') AS JSON)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s
"""

# The newest checkpoint.
NEWEST = """
SELECT c.checkpoint_id, c.token
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = %s AND t.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT 1
"""

# The name of the checkpoint with a token. Reads the thread's rows; used only for an error message.
NAME_OF = """
SELECT c.checkpoint_id FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.token = %s
 LIMIT 1
"""


class Holder(NamedTuple):
    """Whether a turn belongs to a token (NULL-safe), and its remaining microseconds; None if there is no turn."""

    mine: int
    left_us: int | None


class Newest(NamedTuple):
    """The newest checkpoint of a thread."""

    checkpoint_id: str
    token: bytes


class Named(NamedTuple):
    """The name of a checkpoint; None if it was deleted."""

    checkpoint_id: str | None


class TurnStatements(Statements):
    """Acquiring, extending and releasing turns; guards of saves."""

    def acquire(
        self, tenant: str, thread_id: str, token: bytes, lease_us: int, version: bytes
    ) -> tuple[Statement, Query[Holder]]:
        """Take the turn if it is free; the second statement returns its holder."""
        inserted = (tenant, thread_id, version, token, lease_us, tenant, token)
        return (
            Statement(self._text(ACQUIRE), (*inserted, token, token, lease_us)),
            self.whose(tenant, thread_id, token),
        )

    def renew(self, tenant: str, thread_id: str, token: bytes, lease_us: int) -> Statement:
        """Extend the turn; affects no row if it was lost."""
        return Statement(self._text(RENEW), (lease_us, tenant, thread_id, token))

    def release(self, tenant: str, thread_id: str, token: bytes) -> tuple[Statement, Statement]:
        """Release the turn, if the token still has it."""
        key = (tenant, thread_id, token)
        return Statement(self._text(RELEASE), key), Statement(self._text(DROP_LEASE), key)

    def keep_lease(self, tenant: str, thread_id: str) -> Statement:
        """Mark a thread that was emptied as expired, instead of dropping it with the lease in its row."""
        return Statement(self._text(KEEP_LEASE), (tenant, thread_id))

    def keep_lease_if_empty(self, tenant: str, thread_id: str) -> Statement:
        """The same if the thread has no checkpoint left."""
        return Statement(self._text(KEEP_LEASE_IF_EMPTY), (tenant, thread_id) * 2)

    def fence(self, tenant: str, thread_id: str, token: bytes) -> Statement:
        """Undo the batch unless the token has the turn. The thread must be locked by a statement before."""
        return Statement(self._text(FENCE), (tenant, thread_id, token))

    def newest_has_id(self, tenant: str, thread_id: str, checkpoint_id: str | None) -> Statement:
        """Undo the batch unless this is the newest checkpoint, None for no checkpoint. A seq must have been taken."""
        text = self._text(NEWEST_IS, column="checkpoint_id")
        return Statement(text, (checkpoint_id, tenant, thread_id))

    def newest_has_token(self, tenant: str, thread_id: str, token: bytes | None) -> Statement:
        """The same for the checkpoint with this token."""
        text = self._text(NEWEST_IS, column="token")
        return Statement(text, (token, tenant, thread_id))

    def whose(self, tenant: str, thread_id: str, token: bytes) -> Query[Holder]:
        """The holder of the turn; no row if there is no thread."""
        return Query(self._text(WHOSE), (token, tenant, thread_id), row=Holder)

    def newest(self, tenant: str, thread_id: str) -> Query[Newest]:
        """Id and token of the newest checkpoint."""
        return Query(self._text(NEWEST), (tenant, thread_id), row=Newest)

    def name_of(self, tenant: str, thread_id: str, token: bytes) -> Query[Named]:
        """The id of the checkpoint with a token; None if it was deleted."""
        return Query(self._text(NAME_OF), (tenant, thread_id, token), row=Named)
