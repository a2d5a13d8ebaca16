"""Counting transcripts, and removing expired ones one after another, as generators that do no I/O."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Operation, fetch
from ..expired import count_waste, remove_waste
from ..family import Count, Counts
from .operations import TranscriptOperations
from .statements.inspection import COUNT_EXPIRED, TOTALS


class TranscriptMaintenance:
    """Counts transcripts and removes those that have expired. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = TranscriptOperations(config)
        self.sql = self._operations.sql
        self._tenant = config.tenant

    def stored(self) -> Operation[Counts]:
        """Count transcripts that have not expired, their items, and the bytes of these. One round trip."""
        (usage,) = yield from fetch(TOTALS(self.sql, tenant=self._tenant))
        return (
            Count(usage.transcripts, "{transcript}"),
            Count(int(usage.items), "{item}"),
            Count(int(usage.size_bytes), "{byte}"),
        )

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed, or soon will not be; of all tenants. One round trip."""
        return count_waste("transcript", self.sql, COUNT_EXPIRED(self.sql))

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows of all tenants that writers also remove from time to time, a few at a time.

        Args:
            older_than_days: Ignored.
        """
        return remove_waste("transcript", self.sql, self._operations.sweep)
