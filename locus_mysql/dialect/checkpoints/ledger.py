"""The idempotency ledger of checkpoints.

A repeated save is detected by its token in the row that it wrote. So an operation that replaces, prunes or deletes a
row records the token of the row; and a delete, a copy or a rewrite records a token of its own.
"""

from __future__ import annotations

from .. import ledger
from ..statement import Query, Statement

# The first token if `threads.lock_any` found a thread that has not expired, else the second. No statement in between
# changes LAST_INSERT_ID().
RECORD_EITHER = """
INSERT INTO {ledger} (tenant, token, recorded_at) VALUES (%s, IF(LAST_INSERT_ID() = 1, %s, %s), UTC_TIMESTAMP(6))
"""

# The number of a thread's checkpoints.
NAMED, OF_THREAD = "COUNT(c.checkpoint_id)", "{checkpoints} c WHERE c.tenant = %s AND c.thread_id = %s"

# The tokens of checkpoints whose ids are about to be removed, if the checkpoints are so young that a repeated save
# might insert them again.
OF_ALL = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL
   AND {YOUNG}
"""

OF_NAMED = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
   AND {YOUNG}
"""

# The same for a delete. If there is such a checkpoint, the token of the delete is recorded, too.
OF_DELETED = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
   AND {YOUNG}
 UNION ALL
SELECT c.tenant, %s, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
"""

# The same for all but the newest checkpoints of a thread, whose ids CLEAR_OLDER_IDS removes.
OF_OLDER = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM (SELECT tenant, token, created_at FROM {checkpoints}
         WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET %s) AS c
 WHERE {YOUNG}
"""

# The same for remaining rows from before an expiry.
OF_LEFT_BEHIND = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq < t.first_seq AND c.checkpoint_id IS NOT NULL
   AND {YOUNG}
"""

# The same for a thread that has expired.
OF_EXPIRED = """SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND t.expires_at <= UTC_TIMESTAMP(6) AND c.checkpoint_id IS NOT NULL
   AND {YOUNG}
"""

FIND_EITHER = "SELECT l.token = %s FROM {ledger} l WHERE l.tenant = %s AND l.token IN (%s, %s)"


class CheckpointLedger(ledger.Ledger):
    """The ledger, and recording the tokens of rows whose ids are about to be removed."""

    def record_either(self, tenant: str, token: bytes, token_if_expired: bytes) -> Statement:
        """Record one of two tokens of an operation on a thread that it locked by `lock_any`."""
        return Statement(self._text(RECORD_EITHER), (tenant, token, token_if_expired))

    def record_count(self, tenant: str, thread_id: str, token: bytes) -> Statement:
        """Record the token of a write whose outcome is the number of checkpoints that it is about to remove."""
        return self._record_outcome(tenant, token, NAMED, OF_THREAD, (tenant, thread_id))

    def record_all(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of all young checkpoints of a thread."""
        return self._record_each(OF_ALL, (tenant, thread_id))

    def record_named(self, tenant: str, thread_id: str, checkpoint_id: str) -> Statement:
        """Record the token of a checkpoint if it is young."""
        return self._record_each(OF_NAMED, (tenant, thread_id, checkpoint_id))

    def record_deleted(self, tenant: str, thread_id: str, checkpoint_id: str, token: bytes) -> Statement:
        """Record the token of the delete of a checkpoint if it exists, and the checkpoint's own if it is young."""
        key = (tenant, thread_id, checkpoint_id)
        return self._record_each(OF_DELETED, (*key, token, *key))

    def record_older(self, tenant: str, thread_id: str, keep: int) -> Statement:
        """Record the tokens of young checkpoints that are not among the newest ``keep``."""
        return self._record_each(OF_OLDER, (tenant, thread_id, keep))

    def record_left_behind(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of young checkpoints that an expiry left behind."""
        return self._record_each(OF_LEFT_BEHIND, (tenant, thread_id))

    def record_expired(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of the young checkpoints of a thread if it has expired."""
        return self._record_each(OF_EXPIRED, (tenant, thread_id))

    def find_either(self, tenant: str, token: bytes, token_if_expired: bytes) -> Query[ledger.OutcomeRow]:
        """One row if an operation recorded one of these tokens, else none. The row is 1 for the first token."""
        return Query(self._text(FIND_EITHER), (token, tenant, token, token_if_expired), row=ledger.OutcomeRow)
