"""Every operation of the family: `VersionOperations`."""

from __future__ import annotations

from typing import cast

from ...config import MySQLConfig
from ...dialect.graphs import VersionDialect
from ...engine.operation import Batch, Operation
from .loading import Loading
from .removing import Removing
from .saving import Saving
from .version_cache import VersionMemory


class VersionOperations:
    """The operations of one configuration, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        #: The statements.
        self.sql = VersionDialect(config.table_prefix)
        memory = VersionMemory(config.cache_bytes)
        #: Storing checkpoints and writes.
        self.saving = Saving(config, self.sql, memory)
        #: Reading them.
        self.loading = Loading(self.sql, memory)
        #: Removing them, and copying threads.
        self.removing = Removing(config, self.sql, memory)

    def list_threads(self, tenant: str, limit: int, pattern: str, offset: int) -> Operation[list[str]]:
        """Ids of threads that match a glob, most recently saved first. One round trip."""
        (found,) = yield Batch.query(self.sql.threads.list(tenant, pattern, limit, offset))
        return [cast(str, row[0]) for row in found.rows]

    def page_of_threads(
        self, tenant: str, limit: int, behind: tuple[str, str] | None = None
    ) -> Operation[list[tuple[str, str]]]:
        """Place and id of threads behind a place, most recently saved first. One round trip.

        Threads that others save to, delete or make between two pages have no effect on which of the others are listed:
        each of these is listed once.

        Args:
            tenant: Whose.
            limit: At most this many.
            behind: The last of the page before; None for the first page.
        """
        (found,) = yield Batch.query(self.sql.threads.page(tenant, limit, behind))
        return [(cast(str, row[1]), cast(str, row[0])) for row in found.rows]

    def count(self, tenant: str, pattern: str) -> Operation[int]:
        """How many threads match a glob. One round trip."""
        (found,) = yield Batch.query(self.sql.threads.count(tenant, pattern))
        return cast(int, found.rows[0][0])
