"""Counts memU's records and removes unneeded rows, for any user model; generators that do no I/O."""

from __future__ import annotations

from pydantic import BaseModel

from ...config import MySQLConfig
from ...dialect.memu.tables import CORE
from ...engine.operation import Batch, Operation, fetch
from ...families.family import Count, Counts
from ...runtime.ledger import forget_old_tokens
from .family import own_prefix
from .operations import MemuStore


class AnyScope(BaseModel):
    """A user model without fields: the statements of maintenance use none."""


class MemuMaintenance:
    """Counts records and removes records of recent writes. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._store = MemuStore(own_prefix(config), AnyScope, 0)

    def stored(self) -> Operation[Counts]:
        """Count records of all kinds. One round trip."""
        sql, tenant = self._store.sql, self._store.tenant
        queries = tuple(sql.count(role, tenant) for role in CORE)
        results = yield Batch(queries, atomic=False)
        return (Count(sum(row.total for query in queries for row in results.rows(query)), "{record}"),)

    def waste(self) -> Operation[Counts]:
        """Count records of recent writes of all tenants. One round trip."""
        (recorded,) = yield from fetch(self._store.ledger.count())
        return (Count(recorded.tokens, "{record} of recent writes"),)

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove records of recent writes that can no longer be repeated, in short transactions.

        Args:
            older_than_days: Ignored.
        """
        removed = yield from forget_old_tokens(self._store.ledger)
        return (Count(removed, "{record} of recent writes"),)
