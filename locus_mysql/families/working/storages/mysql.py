"""Sessions in MySQL: `MySQLStorage`."""

from __future__ import annotations

from functools import cached_property
from typing import Unpack

from pydantic import SecretStr

from ....config import Keywords, MySQLConfig
from ....drivers.registry import find_driver
from ....engine.at_fork import reset_at_fork
from ....runtime.arguments import check_tenant
from ....runtime.database import Database, share
from ....runtime.stores import AsyncStore, SyncStore
from ..calls import Call, Reply
from .fair_lock import Turns
from .mysql_operations import WorkingOperations


class _Blocking(SyncStore[WorkingOperations]):
    """The blocking side."""

    _awaited_class = "WorkingMemory"


class MySQLStorage:
    """Keeps sessions in MySQL: durable, shared by all processes. See `Storage`.

    A read is one round trip, and so is a write to a session to which this process wrote last; otherwise a write reads
    the session first.

    Args:
        where: A DSN, a `MySQLConfig` or a `Database`; or give options as keywords.
        options: Options of `MySQLConfig`.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
        DriverMissing: The client library is not installed.
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        self.database, self.config, self._owned = share(where, options)
        find_driver(self.config.driver)  # a missing library is reported now, not at the first call
        self._operations = WorkingOperations(self.config)
        self._turns = Turns()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork: new locks, as a thread of the parent may hold the old ones for ever."""
        self._turns = Turns()

    @cached_property
    def _awaited(self) -> AsyncStore[WorkingOperations]:
        return AsyncStore(self._operations, self.database, owned=self._owned)

    @cached_property
    def _blocking(self) -> SyncStore[WorkingOperations]:
        return _Blocking(self._operations, self.database, owned=self._owned)

    async def execute(self, call: Call) -> Reply:
        """See `Storage`."""
        if not call.writes:
            return await self._awaited._run(self._operations.execute(call))
        return await self._turns.run(call.address, lambda: self._awaited._run(self._operations.execute(call)))

    def execute_blocking(self, call: Call) -> Reply:
        """See `Storage`."""
        if not call.writes:
            return self._blocking._run(self._operations.execute(call))
        return self._turns.run_blocking(call.address, lambda: self._blocking._run(self._operations.execute(call)))

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove expired sessions of all tenants, each whole; returns their number.

        Args:
            limit: The maximum number of sessions to remove.
        """
        return await self._awaited._run(self._operations.sweep(limit))

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """The same, blocking."""
        return self._blocking._run(self._operations.sweep(limit))

    async def forget_tenant(self, tenant: str) -> int:
        """See `Storage`. Each session is removed whole, in a transaction of its own."""
        return await self._awaited._run(self._operations.forget_tenant(check_tenant(tenant)))

    def forget_tenant_blocking(self, tenant: str) -> int:
        """The same, blocking."""
        return self._blocking._run(self._operations.forget_tenant(check_tenant(tenant)))

    async def aclose(self) -> None:
        """Close all connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    def close(self) -> None:
        """Close the connections of the blocking side if this opened them; the next call opens new ones."""
        if self._owned:
            self.database.close()

    def __repr__(self) -> str:
        return f"MySQLStorage({self.database!r})"
