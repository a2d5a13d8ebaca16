"""What the public classes over versions share: an engine that runs their operations, opening and closing.

The one place that changes when stores share a database.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, Self, TypeVar

from ..config import MySQLConfig
from ..database.surface import configure
from ..database.tenancy import Tenancy
from ..engine.asynchronous import AsyncEngine
from ..engine.operation import Operation
from ..engine.synchronous import SyncEngine
from .operations import VersionOperations


class HasVersions(Protocol):
    """Operations of a public class, over those of versions."""

    @property
    def tenancy(self) -> Tenancy:
        """Tells the tenant of a call."""

    @property
    def versions(self) -> VersionOperations:
        """The operations they are made of."""


O = TypeVar("O", bound=HasVersions)  # noqa: E741 - operations


class Surface(Generic[O]):
    """Base of both sides.

    Args:
        operations: What the methods run.
    """

    def __init__(self, operations: O) -> None:
        self._operations = operations

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.versions.config

    def tenant(self, tenant: str) -> AbstractContextManager[None]:
        """Calls inside ``with saver.tenant("acme"):`` belong to this tenant."""
        return self._operations.tenancy.scope(tenant)

    def ddl(self) -> list[str]:
        """The statements that make the tables, for a migration."""
        return self._operations.versions.ddl()

    def __repr__(self) -> str:
        config = self.config
        where = ", ".join(str(endpoint) for endpoint in config.endpoints)
        return f"{type(self).__name__}({where}/{config.database}, driver={config.driver!r}, tenant={config.tenant!r})"


class AsyncVersions(Surface[O]):
    """Base of classes whose methods are awaited.

    Args:
        operations: What the methods run.
    """

    def __init__(self, operations: O) -> None:
        super().__init__(operations)
        self._engine = AsyncEngine(self.config, operations.versions.sql)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class SyncVersions(Surface[O]):
    """Base of classes whose methods block. Safe to share between threads.

    Args:
        operations: What the methods run.
    """

    def __init__(self, operations: O) -> None:
        super().__init__(operations)
        self._engine = SyncEngine(self.config, operations.versions.sql)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class VersionsOfTenants:
    """Operations of one configuration, with a tenant for each call.

    Args:
        config: The options; or give them as keywords.
        tenant_of: Tells the tenant from a thread id.
        options: Options of `MySQLConfig`.
    """

    def __init__(
        self, config: MySQLConfig | None, tenant_of: Callable[[str], str] | None, options: dict[str, Any]
    ) -> None:
        settled = configure(config, options)
        self.tenancy = Tenancy(settled.tenant, tenant_of)
        self.versions = VersionOperations(settled)


def nothing() -> Operation[None]:
    """An operation that does nothing: running it makes sure of the tables."""
    return
    yield
