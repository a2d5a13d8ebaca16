"""Statements with which an operator looks after the tables."""

from __future__ import annotations

from ..statement import Statement
from .template import WorkingStatements

# Of one tenant; bytes as the sessions count them, so those of expired variables that were not swept yet are in.
COUNT = """
SELECT COUNT(*), COALESCE(SUM(s.size_bytes), 0)
  FROM {sessions} s
 WHERE s.tenant = %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
"""

# Of all tenants, as they are removed. Relies on the index expiry.
COUNT_EXPIRED = "SELECT COUNT(*) FROM {sessions} s WHERE s.expires_at <= UTC_TIMESTAMP(6)"
COUNT_TOKENS = "SELECT COUNT(*) FROM {settled}"


class CareStatements(WorkingStatements):
    """Counting sessions, and what nobody needs."""

    def count(self, tenant: str) -> Statement:
        """A tenant's sessions, and their bytes."""
        return Statement(self._text(COUNT), (tenant,))

    def count_waste(self) -> tuple[Statement, ...]:
        """Sessions that have expired, and tokens of writes."""
        return Statement(self._text(COUNT_EXPIRED)), Statement(self._text(COUNT_TOKENS))
