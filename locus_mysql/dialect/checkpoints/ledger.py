"""Statements about operations that were carried out, and of which nothing else is left in the tables.

An operation whose answer was lost is repeated, and must first find out whether it was carried out. A save is recognised
by the token in its row. An operation that replaces, prunes or deletes a row therefore leaves the row's token here; and
a delete, a copy or a rewrite leaves a token of its own. A token is kept for `KEPT_S`.
"""

from __future__ import annotations

from ..statement import Statement
from ..template import Statements

SETTLE = "INSERT INTO {settled} (tenant, token, settled_at) VALUES (%s, %s, UTC_TIMESTAMP(6))"

# The first token if `threads.lock_any` found a thread that has not expired, else the second. No statement between the
# two changes the last insert id.
SETTLE_EITHER = """
INSERT INTO {settled} (tenant, token, settled_at) VALUES (%s, IF(LAST_INSERT_ID() = 1, %s, %s), UTC_TIMESTAMP(6))
"""

# The tokens of checkpoints that are about to lose their names, if these are so young that a repeated save might make
# them again. A copied thread has the same tokens as its source, so a token may be there already.
SETTLE_ROWS = """
INSERT INTO {settled} (tenant, token, settled_at)
SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL
   AND {YOUNG}
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""

SETTLE_NAMED = """
INSERT INTO {settled} (tenant, token, settled_at)
SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
   AND {YOUNG}
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""

# The same for a delete. If there is such a checkpoint, the delete leaves its own token too.
SETTLE_DELETED = """
INSERT INTO {settled} (tenant, token, settled_at)
SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
   AND {YOUNG}
 UNION ALL
SELECT c.tenant, %s, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""

# The same for all but the newest checkpoints of a thread, from which UNNAME_OLDER takes the names.
SETTLE_OLDER = """
INSERT INTO {settled} (tenant, token, settled_at)
SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM (SELECT tenant, token, created_at FROM {checkpoints}
         WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET %s) AS c
 WHERE {YOUNG}
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""

# The same for rows that an expiry left behind.
SETTLE_LEFT_BEHIND = """
INSERT INTO {settled} (tenant, token, settled_at)
SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq < t.first_seq AND c.checkpoint_id IS NOT NULL
   AND {YOUNG}
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""

FIND = "SELECT 1 FROM {settled} s WHERE s.tenant = %s AND s.token = %s"

FIND_EITHER = "SELECT s.token = %s FROM {settled} s WHERE s.tenant = %s AND s.token IN (%s, %s)"

# Relies on the index age.
FORGET_OLD = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT 1000"


class LedgerStatements(Statements):
    """Leaving tokens of operations, and finding them."""

    def settle(self, tenant: str, token: bytes) -> Statement:
        """Leave the token of an operation."""
        return Statement(self._text(SETTLE), (tenant, token))

    def settle_either(self, tenant: str, token: bytes, token_if_expired: bytes) -> Statement:
        """Leave one of two tokens of an operation on a thread that it locked by `lock_any`."""
        return Statement(self._text(SETTLE_EITHER), (tenant, token, token_if_expired))

    def settle_rows(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of all young checkpoints of a thread."""
        return Statement(self._text(SETTLE_ROWS), (tenant, thread_id))

    def settle_named(self, tenant: str, thread_id: str, checkpoint_id: str) -> Statement:
        """Leave the token of a checkpoint if it is young."""
        return Statement(self._text(SETTLE_NAMED), (tenant, thread_id, checkpoint_id))

    def settle_deleted(self, tenant: str, thread_id: str, checkpoint_id: str, token: bytes) -> Statement:
        """If the checkpoint is there, leave the token of its delete, and if it is young, its own token as well."""
        key = (tenant, thread_id, checkpoint_id)
        return Statement(self._text(SETTLE_DELETED), (*key, token, *key))

    def settle_older(self, tenant: str, thread_id: str, keep: int) -> Statement:
        """Leave the tokens of young checkpoints that are not among the newest ``keep``."""
        return Statement(self._text(SETTLE_OLDER), (tenant, thread_id, keep))

    def settle_left_behind(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of young checkpoints that an expiry left behind."""
        return Statement(self._text(SETTLE_LEFT_BEHIND), (tenant, thread_id))

    def find(self, tenant: str, token: bytes) -> Statement:
        """One row if an operation left this token, else none."""
        return Statement(self._text(FIND), (tenant, token))

    def find_either(self, tenant: str, token: bytes, token_if_expired: bytes) -> Statement:
        """One row if an operation left one of these tokens, else none; 1 if it was the first."""
        return Statement(self._text(FIND_EITHER), (token, tenant, token, token_if_expired))

    def forget_old(self) -> Statement:
        """Remove some of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_OLD))
