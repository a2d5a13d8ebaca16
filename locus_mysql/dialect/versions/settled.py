"""Statements about removals and copies that were carried out, so that they are recognised and not done twice.

What was removed tells nothing of who removed it. So a removal leaves its token, with what it affected, in the same
transaction. If its answer was lost, it is found here before it is repeated; and a late duplicate of its packet fails
with error 1062, as the token is there.
"""

from __future__ import annotations

from ..statement import Statement
from ..template import Statements

# Behind the statement that counts. What affected nothing leaves no token: it may be done again.
SETTLE = """
INSERT INTO {settled} (tenant, token, affected, settled_at)
SELECT %s, %s, ROW_COUNT(), UTC_TIMESTAMP(6)
  FROM DUAL
 WHERE ROW_COUNT() > 0
"""

FIND = "SELECT s.affected FROM {settled} s WHERE s.tenant = %s AND s.token = %s"

# Relies on the index age.
FORGET_OLD = "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT 1000"


class SettledStatements(Statements):
    """Leaving tokens, and finding them."""

    def settle(self, tenant: str, token: bytes) -> Statement:
        """Leave a token, with the number of rows that the statement before affected, if it did any."""
        return Statement(self._text(SETTLE), (tenant, token))

    def find(self, tenant: str, token: bytes) -> Statement:
        """The number left with a token."""
        return Statement(self._text(FIND), (tenant, token))

    def forget_old(self) -> Statement:
        """Remove some of the tokens that nobody will ask for any more; of all tenants."""
        return Statement(self._text(FORGET_OLD))
