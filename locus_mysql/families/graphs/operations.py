"""Every operation of the family, `GraphOperations`, and `copy_thread`; the base of public classes finds a tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from ...config import MySQLConfig
from ...dialect.statement import Query, like
from ...engine.operation import Operation, fetch
from ...errors import InvalidInput
from ...records import transfer
from ...records.leases import Turns
from ...records.maintenance import Maintenance
from ...records.moving import Moving
from ...records.turns import AsyncTurns, SyncTurns
from ...runtime.arguments import Tenancy, check_thread_id, tenant_scope
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from .family import tables
from .loading import BaseCache, Loading
from .removing import Removing
from .saving import Saving
from .statements import threads
from .statements.tables import ThreadKey, graph_dialect
from .statements.threads import ThreadPosition


class GraphOperations:
    """The operations of one configuration, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        #: The tables.
        self.sql = graph_dialect(config.table_prefix)
        sealing = Sealing(config.encryption, self.sql.schema.family)
        self._cache = cache = BaseCache(config.cache_bytes)
        self.turns = Turns(self.sql)
        #: Storing checkpoints and writes.
        self.saving = Saving(config, self.sql, cache, self.turns)
        #: Reading them.
        self.loading = Loading(self.sql, cache, sealing)
        #: Removing them, and copying threads.
        self.removing = Removing(config, self.sql, cache, self.turns)
        #: Removing what is old or has expired.
        self.maintenance = Maintenance(
            tables(config.table_prefix),
            self.removing,
            lambda row: cache.forget(ThreadKey(row["tenant"], row["thread_id"])),
        )

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self._cache.attach(database, (self.config.table_prefix, self.config.encryption))
        self.turns.attach(database)

    def list_threads(self, tenant: str, limit: int, pattern: str, offset: int) -> Operation[list[str]]:
        """Return the ids of threads that match a glob, most recently saved first. One round trip."""
        which = "" if pattern == "*" else threads.MATCHING
        find = self._page(which, tenant, limit, offset, pattern=like(pattern))
        return [row.thread_id for row in (yield from fetch(find))]

    def _page(self, which: str, tenant: str, limit: int, offset: int = 0, **values: Any) -> Query[ThreadPosition]:
        values |= {"tenant": tenant, "limit": limit, "offset": offset, "others": max(offset + limit - 1, 0)}
        return threads.PAGE(self.sql, pieces={"which": which}, **values)

    def page_of_threads(
        self, tenant: str, limit: int, after: ThreadPosition | None = None
    ) -> Operation[Sequence[ThreadPosition]]:
        """Return the threads after a position, most recently saved first. One round trip.

        Saves, deletes and new threads between two pages do not affect the other threads: each of these is listed once.

        Args:
            tenant: The tenant of the threads.
            limit: The maximum number.
            after: The last of the page before; None for the first page.
        """
        which, values = ("", {}) if after is None else (threads.AFTER, after._asdict())
        return (yield from fetch(self._page(which, tenant, limit, **values)))

    def count(self, tenant: str, pattern: str) -> Operation[int]:
        """Return the number of threads that match a glob. One round trip."""
        (row,) = yield from fetch(threads.COUNT(self.sql, tenant=tenant, pattern=like(pattern)))
        return row.total


class GraphsOfTenants:
    """Operations of one configuration, with a tenant for each call.

    Args:
        config: The options.
        tenant_of: Returns the tenant of a thread id.
    """

    def __init__(self, config: MySQLConfig, tenant_of: Callable[[str], str] | None = None) -> None:
        self.config = config
        self.tenancy = Tenancy(config, tenant_of)
        self.graphs = GraphOperations(config)
        self.schema = self.graphs.sql.schema

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self.graphs.attach(database)

    @property
    def turns(self) -> Turns:
        """The turns on threads."""
        return self.graphs.turns

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread: its tenant and its id."""
        thread_id = check_thread_id(str(thread_id))
        return ThreadKey(self.tenancy.of(thread_id), thread_id)


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=GraphsOfTenants)


class Tenanted(Generic[Ops]):
    """Mixin of the blocking and the asynchronous class."""

    _operations: Ops

    def tenant(self, tenant: str) -> AbstractContextManager[None]:
        """Calls inside ``with saver.tenant("acme"):`` belong to this tenant: a short name of `tenant_scope`."""
        return tenant_scope(self._operations.config, tenant)

    def ddl(self) -> list[str]:
        """Return the statements that create the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


class AsyncGraphs(Tenanted[Ops], AsyncTurns[Ops]):
    """Base of classes whose methods are awaited."""


class SyncGraphs(Tenanted[Ops], SyncTurns[Ops]):
    """Base of classes whose methods block. Safe to share between threads."""


def copy_thread(operations: GraphOperations, tenant: str, source: str, destination: str) -> Operation[bool]:
    """Copy a thread with all its checkpoints and writes; False if there is none.

    One round trip, on the server. With encryption several, as each row is bound to its thread; the copy is visible when
    it is complete.

    Raises:
        ThreadExists: The destination has checkpoints. Nothing was changed.
        EncryptionError: A row is encrypted, and the program has no keys. Nothing was changed.
        CorruptCheckpoint: With encryption: a row is damaged. Nothing was changed.
        VersionConflict: With encryption: the thread was changed whenever it was read. Nothing was changed.
    """
    if source == destination:
        raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
    if operations.config.encryption is None:
        return (yield from operations.removing.copy_thread(tenant, source, destination))
    config = operations.config.model_copy(update={"tenant": tenant})
    rows = Moving(tables(config.table_prefix), config)
    return (yield from transfer.copy_thread(rows, source, destination, config.ttl_s))
