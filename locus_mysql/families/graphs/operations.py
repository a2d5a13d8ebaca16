"""Every operation of the family: `GraphOperations`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...dialect.graphs import GraphDialect
from ...engine.operation import Operation, fetch
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from .ancestry import Ancestry
from .base_cache import BaseCache
from .loading import Loading
from .removing import Removing
from .saving import Saving


class GraphOperations:
    """The operations of one configuration, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        #: The statements.
        self.sql = GraphDialect(config.table_prefix)
        sealing = Sealing(config.encryption, self.sql.schema.family)
        self._cache = cache = BaseCache(config.cache_bytes)
        #: Storing checkpoints and writes.
        self.saving = Saving(config, self.sql, cache)
        #: Reading them.
        self.loading = Loading(self.sql, cache, sealing)
        #: The writes to channels along chains of ancestors.
        self.ancestry = Ancestry(self.sql, sealing)
        #: Removing them, and copying threads.
        self.removing = Removing(config, self.sql, cache)

    def attach(self, database: Database) -> None:
        """See `HasCaches.attach`."""
        self._cache.attach(database, (self.config.table_prefix, self.config.encryption))

    def list_threads(self, tenant: str, limit: int, pattern: str, offset: int) -> Operation[list[str]]:
        """Return the ids of threads that match a glob, most recently saved first. One round trip."""
        rows = yield from fetch(self.sql.threads.list(tenant, pattern, limit, offset))
        return [row.thread_id for row in rows]

    def page_of_threads(
        self, tenant: str, limit: int, after: tuple[str, str] | None = None
    ) -> Operation[list[tuple[str, str]]]:
        """Return position and id of the threads after a position, most recently saved first. One round trip.

        Saves, deletes and new threads between two pages do not affect the other threads: each of these is listed once.

        Args:
            tenant: The tenant of the threads.
            limit: The maximum number.
            after: The last of the page before; None for the first page.
        """
        rows = yield from fetch(self.sql.threads.page(tenant, limit, after))
        return [(row.ordered_at, row.thread_id) for row in rows]

    def count(self, tenant: str, pattern: str) -> Operation[int]:
        """Return the number of threads that match a glob. One round trip."""
        (row,) = yield from fetch(self.sql.threads.count(tenant, pattern))
        return row.total
