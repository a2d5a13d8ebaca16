"""What every public class of stores shares: a database, maybe its own, and operations that it runs there."""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from ..config import MySQLConfig
from ..dialect import Schema
from ..drivers.registry import find_driver
from ..engine.counters import Counters
from ..engine.operation import Operation
from ..errors import ConfigError
from .database import Database, described


class HasSchema(Protocol):
    """Operations of a public class."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def schema(self) -> Schema:
        """The tables they need."""


@runtime_checkable
class CountsCache(Protocol):
    """Operations that remember what they loaded."""

    def count_in(self, counters: Counters) -> None:
        """Count there how often that helped."""


O = TypeVar("O", bound=HasSchema)  # noqa: E741 - operations
T = TypeVar("T")


class AsyncStore(Generic[O]):
    """Base of classes whose methods are awaited.

    Args:
        operations: What the methods run.
        database: Where.
        owned: Whether `close` closes the database's connections.
    """

    #: The class whose methods block, if its name is not this one's with ``Sync`` before it.
    _blocking_class: ClassVar[str | None] = None

    def __init__(self, operations: O, database: Database, *, owned: bool) -> None:
        find_driver(database.config.driver)  # a missing library is told now, not at the first call
        if isinstance(operations, CountsCache):
            operations.count_in(database.counters)
        self._operations = operations
        self._owned = owned
        self.database = database

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    async def _run(self, operation: Operation[T]) -> T:
        operations, engine = self._operations, self.database.asynchronous
        telemetry = self.database.telemetry
        if not telemetry.wanted:
            return await engine.run(operation, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return await engine.run(operation, operations.schema, operations.config.ddl_mode)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        blocking = self._blocking_class or f"Sync{type(self).__name__}"
        raise ConfigError(f"{type(self).__name__} is asynchronous: write `async with`, or use {blocking}.")

    def __exit__(self, *error: object) -> None: ...

    def __repr__(self) -> str:
        return _shown(self, self.config)


class SyncStore(Generic[O]):
    """Base of classes whose methods block. Safe to share between threads.

    Args:
        operations: What the methods run.
        database: Where.
        owned: Whether `close` closes the database's connections.
    """

    #: The class whose methods are awaited, if its name is not this one's without ``Sync``.
    _awaited_class: ClassVar[str | None] = None

    def __init__(self, operations: O, database: Database, *, owned: bool) -> None:
        driver = find_driver(database.config.driver)
        if not getattr(driver, "blocks", True):
            raise ConfigError(
                f"Driver {database.config.driver!r} has no synchronous side. Use driver='pymysql' or "
                f"'mysql-connector', or {self._awaited_class or type(self).__name__.removeprefix('Sync')}."
            )
        if isinstance(operations, CountsCache):
            operations.count_in(database.counters)
        self._operations = operations
        self._owned = owned
        self.database = database

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            self.database.close()

    def _run(self, operation: Operation[T]) -> T:
        operations, engine = self._operations, self.database.synchronous
        telemetry = self.database.telemetry
        if not telemetry.wanted:
            return engine.run(operation, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return engine.run(operation, operations.schema, operations.config.ddl_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return _shown(self, self.config)


def _shown(store: object, config: MySQLConfig) -> str:
    return f"{type(store).__name__}({described(config)}, tenant={config.tenant!r})"
