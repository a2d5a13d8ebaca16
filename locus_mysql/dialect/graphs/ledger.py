"""The idempotency ledger of graphs.

A repeated save is detected by its token in the row that it wrote. Removing the row also removes the token. So a removal
records the tokens of the saves whose rows it removes, and a token of its own with the number of affected rows, in the
same transaction.
"""

from __future__ import annotations

from .. import ledger
from ..statement import Statement

# The tokens of the saves that wrote the rows which are about to be removed, if these saves may still be repeated. A row
# that was replaced has several tokens but not the time of each, so all of them are recorded.
TOKENS_OF_ROWS = """SELECT c.tenant, SUBSTRING(c.tokens, 16 * slot.number + 1, 16), UTC_TIMESTAMP(6)
  FROM {checkpoints} c
  JOIN (SELECT 0 AS number UNION ALL SELECT 1) slot
    ON 16 * slot.number + 16 <= LENGTH(c.tokens)
 WHERE c.tenant = %s AND c.thread_id = %s
   AND (c.created_at > UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND OR LENGTH(c.tokens) >= 32){which}"""
IF_MARKED = "\n   AND c.hidden = 2"
IF_EXPIRED = """
   AND EXISTS (SELECT 1 FROM {threads} t
                WHERE t.tenant = c.tenant AND t.thread_id = c.thread_id AND t.expires_at <= UTC_TIMESTAMP(6))"""

# After a save with replacement: its token, if it replaced a checkpoint of the same id.
IF_REPLACED = "SELECT %s, %s, UTC_TIMESTAMP(6) FROM DUAL WHERE {AFFECTED} = 2"


class GraphLedger(ledger.Ledger):
    """The ledger, and recording the tokens of rows that are about to be removed."""

    def record_all(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of a thread's saves."""
        return self._record_each(TOKENS_OF_ROWS, (tenant, thread_id), which="")

    def record_marked(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of the saves whose rows are marked to be removed."""
        return self._record_each(TOKENS_OF_ROWS, (tenant, thread_id), which=IF_MARKED)

    def record_expired(self, tenant: str, thread_id: str) -> Statement:
        """Record the tokens of a thread's saves if it has expired."""
        return self._record_each(TOKENS_OF_ROWS, (tenant, thread_id), which=IF_EXPIRED)

    def record_if_replaced(self, tenant: str, token: bytes) -> Statement:
        """Record the token of the save before this statement if it replaced a checkpoint."""
        return self._record_each(IF_REPLACED, (tenant, token))
