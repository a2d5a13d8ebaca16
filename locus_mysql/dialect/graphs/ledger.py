"""Statements about operations that were carried out, so that they are recognised and not done twice.

A save is recognised by its token in the row that it wrote. What was removed tells neither who saved it nor who removed
it. So a removal leaves the tokens of the saves whose rows it removes, and one of its own with what it affected, in the
same transaction. If the answer to a save or a removal was lost, its token is found before it is repeated; and a
duplicate of its packet that arrives late fails, as the token is there.
"""

from __future__ import annotations

from ..statement import Statement
from ..template import Statements

# Behind the statement that counts. Also if that affected nothing: a late duplicate must not find something to remove
# that was made since.
SETTLE = """
INSERT INTO {settled} (tenant, token, affected, settled_at) VALUES (%s, %s, GREATEST(ROW_COUNT(), 0), UTC_TIMESTAMP(6))
"""

# The tokens of the saves that wrote the rows which are about to be removed, if these may still be repeated. A row that
# was replaced, so that it has more than one, does not tell when; so all of its tokens count as young.
SETTLE_ROWS = """
INSERT INTO {settled} (tenant, token, affected, settled_at)
SELECT v.tenant, SUBSTRING(v.tokens, 16 * place.number + 1, 16), 1, UTC_TIMESTAMP(6)
  FROM {versions} v
  JOIN (SELECT 0 AS number UNION ALL SELECT 1) place
    ON 16 * place.number + 16 <= LENGTH(v.tokens)
 WHERE v.tenant = %s AND v.thread_id = %s<which>
   AND (v.created_at > UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND OR LENGTH(v.tokens) >= 32)
    ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(6)
"""
OF_MARKED = " AND v.hidden = 2"
OF_EXPIRED = """ AND EXISTS (SELECT 1 FROM {threads} t
                                                     WHERE t.tenant = v.tenant AND t.thread_id = v.thread_id
                                                       AND t.expires_at <= UTC_TIMESTAMP(6))"""

FIND = "SELECT s.affected FROM {settled} s WHERE s.tenant = %s AND s.token = %s"

# Relies on the index age.
FORGET_OLD = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT 1000"


class LedgerStatements(Statements):
    """Leaving tokens, and finding them."""

    def settle_all(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of a thread's saves."""
        return self._settle(tenant, thread_id, "")

    def settle_marked(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of the saves whose rows are marked to be removed."""
        return self._settle(tenant, thread_id, OF_MARKED)

    def settle_expired(self, tenant: str, thread_id: str) -> Statement:
        """Leave the tokens of a thread's saves if it has expired."""
        return self._settle(tenant, thread_id, OF_EXPIRED)

    def settle(self, tenant: str, token: bytes) -> Statement:
        """Leave a token, with the number of rows that the statement before affected."""
        return Statement(self._text(SETTLE), (tenant, token))

    def find(self, tenant: str, token: bytes) -> Statement:
        """The number left with a token."""
        return Statement(self._text(FIND), (tenant, token))

    def forget_old(self) -> Statement:
        """Remove some of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_OLD))

    def _settle(self, tenant: str, thread_id: str, which: str) -> Statement:
        return Statement(self._text(SETTLE_ROWS.replace("<which>", which)), (tenant, thread_id))
