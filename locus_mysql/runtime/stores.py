"""Base classes of the public stores: a database, possibly the store's own, and operations that run in it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from ..config import MySQLConfig
from ..dialect import Schema
from ..drivers.registry import find_driver
from ..engine.counters import Counters
from ..errors import ConfigError
from .database import Database, described
from .sealing import fetching_keys, refuse_clear_tables


class HasSchema(Protocol):
    """The operations of a store."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def schema(self) -> Schema:
        """The tables that the operations need."""


@runtime_checkable
class CountsCache(Protocol):
    """Operations with a cache of loaded data."""

    def count_in(self, counters: Counters) -> None:
        """Count the cache's hits and misses in these counters."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=HasSchema)
T = TypeVar("T")


class Store(Generic[Ops]):
    """Base of `AsyncStore` and `SyncStore`: everything that does not wait.

    Args:
        operations: The operations that the store's methods run; see `methods`.
        database: The database that runs them.
        owned: Whether `close` closes the database's connections.
    """

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        refuse_clear_tables(operations.config, operations.schema)
        if isinstance(operations, CountsCache):
            operations.count_in(database.counters)
        self._operations = operations
        self._owned = owned
        self.database = database

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({described(self.config)}, tenant={self.config.tenant!r})"


class AsyncStore(Store[Ops]):
    """Base of stores whose methods are awaited. The arguments are those of `Store`."""

    #: The class whose methods block, if its name is not this one's with ``Sync`` before it.
    _blocking_class: ClassVar[str | None] = None

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        find_driver(database.config.driver)  # a missing library is reported now, not at the first call
        super().__init__(operations, database, owned=owned)

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an `Operation` on the engine. Subclasses may run generators with further kinds of steps."""
        operations, engine = self._operations, self.database.asynchronous
        telemetry = self.database.telemetry
        steps = fetching_keys(operation, operations.config)
        if not telemetry.wanted:
            return await engine.run(steps, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return await engine.run(steps, operations.schema, operations.config.ddl_mode)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        blocking = self._blocking_class or f"Sync{type(self).__name__}"
        raise ConfigError(f"{type(self).__name__} is asynchronous: write `async with`, or use {blocking}.")

    def __exit__(self, *error: object) -> None: ...


class SyncStore(Store[Ops]):
    """Base of stores whose methods block. Safe to share between threads. The arguments are those of `Store`."""

    #: The class whose methods are awaited, if its name is not this one's without ``Sync``.
    _awaited_class: ClassVar[str | None] = None

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        driver = find_driver(database.config.driver)
        if not getattr(driver, "blocks", True):
            raise ConfigError(
                f"Driver {database.config.driver!r} has no synchronous side. Use driver='pymysql' or "
                f"'mysql-connector', or {self._awaited_class or type(self).__name__.removeprefix('Sync')}."
            )
        super().__init__(operations, database, owned=owned)

    def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            self.database.close()

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an `Operation` on the engine. Subclasses may run generators with further kinds of steps."""
        operations, engine = self._operations, self.database.synchronous
        telemetry = self.database.telemetry
        steps = fetching_keys(operation, operations.config)
        if not telemetry.wanted:
            return engine.run(steps, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return engine.run(steps, operations.schema, operations.config.ddl_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
