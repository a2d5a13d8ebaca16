"""Statements that count sessions, for maintenance."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ..inspection import ExpiredCount
from ..statement import Query
from ..template import Statements

# Counts one tenant. The bytes include expired variables that were not swept yet.
COUNT = """
SELECT COUNT(*), COALESCE(SUM(s.size_bytes), 0)
  FROM {sessions} s
 WHERE s.tenant = %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))
"""

# Counts all tenants, as `vacuum` removes the expired sessions of all tenants. Relies on the index expiry.
COUNT_EXPIRED = "SELECT COUNT(*) FROM {sessions} s WHERE s.expires_at <= UTC_TIMESTAMP(6)"


class Usage(NamedTuple):
    """The number of sessions, and their bytes; see `COUNT`."""

    sessions: int
    size_bytes: Decimal | int


class MaintenanceStatements(Statements):
    """Counting sessions, and those that have expired."""

    def count(self, tenant: str) -> Query[Usage]:
        """A tenant's sessions, without expired ones, and their bytes."""
        return Query(self._text(COUNT), (tenant,), row=Usage)

    def count_expired(self) -> Query[ExpiredCount]:
        """The number of sessions that have expired."""
        return Query(self._text(COUNT_EXPIRED), row=ExpiredCount)
