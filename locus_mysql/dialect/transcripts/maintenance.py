"""Statements that count transcripts, for maintenance."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ..inspection import ExpiredCount
from ..statement import Query
from ..template import Statements

COUNT = """
SELECT COUNT(*), COALESCE(SUM(t.items), 0), COALESCE(SUM(t.size_bytes), 0)
  FROM {transcripts} t
 WHERE t.tenant = %s AND {LIVE_TRANSCRIPT}
"""

# Counts all tenants, as `vacuum` removes the expired transcripts of all tenants. Relies on the index expiry.
COUNT_EXPIRED = "SELECT COUNT(*) FROM {transcripts} t WHERE t.expires_at <= UTC_TIMESTAMP(6)"


class Usage(NamedTuple):
    """The number of transcripts, of their items, and of the bytes of these; see `COUNT`."""

    transcripts: int
    items: Decimal | int
    size_bytes: Decimal | int


class MaintenanceStatements(Statements):
    """Counting transcripts, and those that have expired."""

    def count(self, tenant: str) -> Query[Usage]:
        """A tenant's transcripts that have not expired, and their items."""
        return Query(self._text(COUNT), (tenant,), row=Usage)

    def count_expired(self) -> Query[ExpiredCount]:
        """The number of transcripts that have expired."""
        return Query(self._text(COUNT_EXPIRED), row=ExpiredCount)
