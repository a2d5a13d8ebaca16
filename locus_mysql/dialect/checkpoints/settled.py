"""Statements about operations that were carried out and left nothing else to tell of them.

An operation whose answer was lost is repeated, and must first find out whether it was carried out. A saved row tells
so by its token, until it is replaced, pruned or deleted: whoever does that leaves the token here. A delete, a copy and
a rewrite leave a token of their own. A token is kept for `KEPT_S`.
"""

from __future__ import annotations

from ..statement import Statement
from ..template import Statements

SETTLE = "INSERT INTO {settled} (tenant, token, settled_at) VALUES (%s, %s, UTC_TIMESTAMP(6))"

# The tokens of checkpoints that are about to lose their names, if they are young enough to be saved again by mistake.
# A copied thread has the tokens of its source, so a token may be there already.
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

# The same for a delete, which leaves its own token beside that of the checkpoint if there is one.
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

# The same for the checkpoints beyond the newest so many: those that UNNAME_OLDER takes the names from.
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

# Relies on the index age.
FORGET_OLD = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT 1000"


class SettledStatements(Statements):
    """Leaving tokens, and finding them."""

    def settle(self, tenant: str, token: bytes) -> Statement:
        """Leave the token of an operation."""
        return Statement(self._text(SETTLE), (tenant, token))

    def settle_rows(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of all young checkpoints of a thread."""
        return Statement(self._text(SETTLE_ROWS), (tenant, thread_id))

    def settle_named(self, tenant: str, thread_id: str, checkpoint_id: str) -> Statement:
        """Leave the token of a checkpoint if it is young."""
        return Statement(self._text(SETTLE_NAMED), (tenant, thread_id, checkpoint_id))

    def settle_deleted(self, tenant: str, thread_id: str, checkpoint_id: str, token: bytes) -> Statement:
        """If there is such a checkpoint, leave the token of the delete, and its own if it is young."""
        key = (tenant, thread_id, checkpoint_id)
        return Statement(self._text(SETTLE_DELETED), (*key, token, *key))

    def settle_older(self, tenant: str, thread_id: str, keep: int) -> Statement:
        """Leave the tokens of young checkpoints beyond the newest ``keep``."""
        return Statement(self._text(SETTLE_OLDER), (tenant, thread_id, keep))

    def settle_left_behind(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of young checkpoints that an expiry left behind."""
        return Statement(self._text(SETTLE_LEFT_BEHIND), (tenant, thread_id))

    def find(self, tenant: str, token: bytes) -> Statement:
        """A row if an operation left its token."""
        return Statement(self._text(FIND), (tenant, token))

    def forget_old(self) -> Statement:
        """Remove some of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_OLD))
