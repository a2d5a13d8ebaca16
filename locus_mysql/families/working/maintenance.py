"""Counting sessions, and removing expired ones one after another, as generators that do no I/O."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Operation, fetch
from ..expired import count_waste, remove_waste
from ..family import Count, Counts
from .statements.inspection import COUNT, COUNT_EXPIRED
from .storages.mysql import WorkingOperations


class WorkingMaintenance:
    """Counts sessions and removes those that have expired. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = WorkingOperations(config)
        self.sql = self._operations.sql
        self._tenant = config.tenant

    def stored(self) -> Operation[Counts]:
        """Count sessions that have not expired, and the bytes of their variables, task states and notes."""
        (usage,) = yield from fetch(COUNT(self.sql, tenant=self._tenant))
        return Count(usage.sessions, "{session}"), Count(int(usage.size_bytes), "{byte}")

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed, or soon will not be; of all tenants. One round trip."""
        return count_waste("session", self.sql, COUNT_EXPIRED(self.sql))

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows of all tenants that writers also remove from time to time, a few at a time.

        Args:
            older_than_days: Ignored.
        """
        return remove_waste("session", self.sql, self._operations.sweep)
