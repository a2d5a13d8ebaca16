"""Counting transcripts, and removing expired ones one after another, as generators that do no I/O."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation, fetch
from ...runtime.ledger import forget_old_tokens
from ..family import Count, Counts
from .operations import TranscriptOperations

#: Expired transcripts that one statement finds. Each is removed in a transaction of its own.
AT_ONCE = 500


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
        (usage,) = yield from fetch(self.sql.maintenance.count(self._tenant))
        return (
            Count(usage.transcripts, "{transcript}"),
            Count(int(usage.items), "{item}"),
            Count(int(usage.size_bytes), "{byte}"),
        )

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed, or soon will not be; of all tenants. One round trip."""
        expired, tokens = self.sql.maintenance.count_expired(), self.sql.ledger.count()
        results = yield Batch((expired, tokens), atomic=False)
        (waste,), (ledger,) = results.rows(expired), results.rows(tokens)
        return _waste(waste.transcripts, ledger.tokens)

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows of all tenants that writers also remove from time to time. Age alone removes nothing.

        Args:
            older_than_days: Ignored.
        """
        expired = 0
        while some := (yield from self._operations.sweep(AT_ONCE)):
            expired += some
        return _waste(expired, (yield from forget_old_tokens(self.sql.ledger)))


def _waste(expired: int, tokens: int) -> Counts:
    # Tokens identify repeated writes for a quarter of an hour.
    return Count(expired, "{expired transcript}"), Count(tokens, "{token} of writes")
