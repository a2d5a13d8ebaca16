"""Counting sessions, and removing expired ones one after another, as generators that do no I/O."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation, fetch
from ...runtime.ledger import forget_old_tokens
from ..family import Count, Counts
from .storages.mysql_calls import WorkingOperations

#: Expired sessions that one statement finds. Each is removed in a transaction of its own.
AT_ONCE = 500


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
        (usage,) = yield from fetch(self.sql.maintenance.count(self._tenant))
        return Count(usage.sessions, "{session}"), Count(int(usage.size_bytes), "{byte}")

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed, or soon will not be; of all tenants. One round trip."""
        expired, tokens = self.sql.maintenance.count_expired(), self.sql.ledger.count()
        results = yield Batch((expired, tokens), atomic=False)
        (waste,), (ledger,) = results.rows(expired), results.rows(tokens)
        return _waste(waste.sessions, ledger.tokens)

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows that writers also remove from time to time, a few rows at a time; of all tenants.

        Args:
            older_than_days: Ignored.
        """
        expired = 0
        while some := (yield from self._operations.sweep(AT_ONCE)):
            expired += some
        return _waste(expired, (yield from forget_old_tokens(self.sql.ledger)))


def _waste(expired: int, tokens: int) -> Counts:
    # Tokens identify repeated writes for a quarter of an hour.
    return Count(expired, "{expired session}"), Count(tokens, "{token} of writes")
