"""Base of the public classes over graphs: their tenancy, and the operations of each call's tenant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from ...config import MySQLConfig
from ...dialect import Schema
from ...engine.operation import Operation
from ...runtime.arguments import Tenancy, tenant_scope
from ...runtime.database import Database
from ...runtime.stores import AsyncStore, SyncStore
from .operations import GraphOperations


class HasGraphs(Protocol):
    """Operations of a public class, over those of graphs."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def schema(self) -> Schema:
        """The tables they need."""

    @property
    def tenancy(self) -> Tenancy:
        """Determines the tenant of a call."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=HasGraphs)


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
        """See `HasCaches.attach`."""
        self.graphs.attach(database)


class Tenanted(Generic[Ops]):
    """Mixin of the blocking and the asynchronous class."""

    _operations: Ops

    def tenant(self, tenant: str) -> AbstractContextManager[None]:
        """Calls inside ``with saver.tenant("acme"):`` belong to this tenant: a short name of `tenant_scope`."""
        return tenant_scope(self._operations.config, tenant)

    def ddl(self) -> list[str]:
        """Return the statements that create the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


class AsyncGraphs(Tenanted[Ops], AsyncStore[Ops]):
    """Base of classes whose methods are awaited."""


class SyncGraphs(Tenanted[Ops], SyncStore[Ops]):
    """Base of classes whose methods block. Safe to share between threads."""


def nothing() -> Operation[None]:
    """An operation that does nothing. Running it creates or checks the tables."""
    return
    yield
