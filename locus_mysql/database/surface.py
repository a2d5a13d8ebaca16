"""What every public class shares: an engine that runs its operations, and opening and closing."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

from ..checkpoints.operations import CheckpointOperations
from ..config import MySQLConfig
from ..engine.asynchronous import AsyncEngine
from ..engine.synchronous import SyncEngine
from ..errors import ConfigError


class HasCheckpoints(Protocol):
    """Operations of a public class, over those of checkpoints."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def checkpoints(self) -> CheckpointOperations:
        """The operations they are made of."""


O = TypeVar("O", bound=HasCheckpoints)  # noqa: E741 - operations


class AsyncSurface(Generic[O]):
    """Base of classes whose methods are awaited.

    Args:
        operations: What the methods run.
    """

    def __init__(self, operations: O) -> None:
        self._operations = operations
        self._engine = AsyncEngine(operations.config, operations.checkpoints.sql)

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return _described(self, self.config)


class SyncSurface(Generic[O]):
    """Base of classes whose methods block. Safe to share between threads.

    Args:
        operations: What the methods run.
    """

    def __init__(self, operations: O) -> None:
        self._operations = operations
        self._engine = SyncEngine(operations.config, operations.checkpoints.sql)

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return _described(self, self.config)


def configure(config: MySQLConfig | None, options: dict[str, Any]) -> MySQLConfig:
    """The configuration given, or one of the options given."""
    if config is None:
        return MySQLConfig(**options)
    if options:
        raise ConfigError("Give either a MySQLConfig or options, not both.")
    return config


def _described(surface: object, config: MySQLConfig) -> str:
    """What is being talked to, without anything secret."""
    where = ", ".join(str(endpoint) for endpoint in config.endpoints)
    return f"{type(surface).__name__}({where}/{config.database}, driver={config.driver!r}, tenant={config.tenant!r})"
