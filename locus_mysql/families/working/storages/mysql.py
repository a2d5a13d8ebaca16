"""Sessions in MySQL: `MySQLStorage`."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from functools import cached_property
from typing import Any, TypeVar, Unpack

from pydantic import SecretStr

from ....config import Keywords, MySQLConfig
from ....drivers.registry import find_driver
from ....engine.at_fork import reset_at_fork
from ....runtime.database import Database, share
from ....runtime.stores import AsyncStore, SyncStore
from .interface import TwoSided
from .mysql_operations import WorkingOperations

T = TypeVar("T")


class _Blocking(SyncStore[WorkingOperations]):
    """The blocking side."""

    _awaited_class = "WorkingMemory"


class MySQLStorage(TwoSided):
    """Keeps sessions in MySQL: durable, shared by all processes. See `Storage`.

    A read is one round trip, and so is a write to a session to which this process wrote last; otherwise a write reads
    the session first. Each session is removed whole, in a transaction of its own.

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
        super().__init__(self._operations)
        reset_at_fork(self)

    @cached_property
    def _awaited(self) -> AsyncStore[WorkingOperations]:
        return AsyncStore(self._operations, self.database, owned=self._owned)

    @cached_property
    def _blocking(self) -> SyncStore[WorkingOperations]:
        return _Blocking(self._operations, self.database, owned=self._owned)

    def _run(self, steps: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return self._awaited._run(steps)

    def _run_blocking(self, steps: Generator[Any, Any, T]) -> T:
        return self._blocking._run(steps)

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
